"""Paimon's casts of values, where a column's type has changed."""
