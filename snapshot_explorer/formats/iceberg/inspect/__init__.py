"""Metadata tables with the columns of Iceberg's own tables."""
