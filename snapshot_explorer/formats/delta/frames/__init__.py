"""Frames of a Delta table, from the metadata of its log. What they are made of is parsed in `metadata`."""
