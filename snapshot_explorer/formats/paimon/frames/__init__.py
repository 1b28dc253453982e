"""Frames of a Paimon table, from its metadata. What they are made of is parsed in `metadata`."""
