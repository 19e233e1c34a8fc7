"""Histories of a few jobs under Delta's isolation levels, and an oracle independent of Delta.

statements  the statements, each with what it means in plain Python
early       statements whose source has read the table before they begin
workloads   what jobs do: random changes, a bank, lists, predicates that others' rows move into, and
            sources that have read early
generate    a history from a seed
orders      which serial orders of the jobs that succeeded explain what is in the table
check       compares a table with the oracle, and each loss under row_level with the rows
"""
