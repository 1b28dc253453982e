"""Metadata tables of Hudi tables, under the names of Hudi. Columns that all formats share are in `frames`."""
