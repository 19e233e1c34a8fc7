"""Random histories of overlapping jobs, and the results that the documents require.

documents   the two matrices, read by hand, and the verdict that follows from them
model       rows, and what a job does to them
columns     the columns of a table, in SQL and as readers give them
jobs        the statements, each with what it means in plain Python
foreign     commits of another writer, put into the log
templates   the tables that histories begin with
generate    a history from a seed
run         lets a history happen, commits in its order
oracle      the serial replay and the verdicts
check       compares the table with the oracle
ranges      compares ranges of versions with the oracle's rows
times       compares SHOW HISTORY with the oracle
physical    reads the table's log without Spark or `deltalake`
report      a failing history, shrunk and as SQL
stock       what a session of plain Delta reads in tables that were kept
"""
