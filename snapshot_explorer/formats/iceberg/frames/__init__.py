"""Frames of an Iceberg table, from its metadata."""
