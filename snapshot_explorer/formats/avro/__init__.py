"""Avro object container files as Arrow columns. Independent of table formats.

Each format maps the columns to its own records.
"""
