"""Avro object container files as Arrow columns. Independent of table formats."""
