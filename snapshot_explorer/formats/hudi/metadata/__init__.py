"""Metadata of a Hudi table: properties, timeline, commit metadata and file groups.

No frames and no rows: `frames` and `scan` make them of it.
"""
