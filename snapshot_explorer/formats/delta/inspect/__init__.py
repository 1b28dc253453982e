"""Metadata tables with the columns of Delta's own tables."""
