"""Frames of a Paimon table, from its metadata."""
