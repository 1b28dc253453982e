"""Avro object container files as Arrow columns. Knows no table format."""
