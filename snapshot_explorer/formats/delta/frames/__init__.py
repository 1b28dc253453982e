"""Frames of a Delta table, from the metadata of its log."""
