"""Frames of an Iceberg table, from its metadata. What they are made of is parsed in `metadata`."""
