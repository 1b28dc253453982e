"""Metadata of a Hudi table: properties, timeline, commit metadata and file groups."""
