"""Metadata tables with the columns of Delta's own tables. Columns that all formats share are in `frames`."""
