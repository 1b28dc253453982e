"""Metadata tables of a DuckLake table."""
