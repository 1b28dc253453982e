"""Metadata tables with the columns of Iceberg's own tables. Columns that all formats share are in `frames`."""
