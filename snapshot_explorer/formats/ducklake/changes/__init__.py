"""Rows that DuckLake commits changed, by their row ids."""
