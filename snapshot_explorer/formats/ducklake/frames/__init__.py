"""Frames of a DuckLake table, from the rows of its catalog."""
