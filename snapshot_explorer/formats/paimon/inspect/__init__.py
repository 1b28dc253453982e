"""Paimon's system tables, with Paimon's own column names. Columns that all formats share are in `frames`."""
