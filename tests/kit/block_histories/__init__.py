"""Random histories of atomic blocks over three tables, and an oracle that knows no Delta.

generate  blocks from a seed: appends to lists (as Elle does it) and transfers between accounts
run       runs them step by step, in threads, and in another process
cycles    the dependencies between blocks, and the circles among them that isolation forbids
check     compares what blocks have read, and what is in the tables at the end
"""
