"""Breaks the rules of the code one by one, and asks that a test fails for each: `make mutants`.

`mutations.toml` has the list. Nothing of the tree is edited: all happens in a copy.
"""
