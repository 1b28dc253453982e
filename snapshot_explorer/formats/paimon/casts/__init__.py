"""Paimon's casts of values after a change of a column's type. Which columns are cast is decided in `files`."""
