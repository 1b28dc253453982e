"""Deletes: positions in delete files and deletion vectors, equality deletes, and the files that they apply to.

The rows are read in `scan`.
"""
