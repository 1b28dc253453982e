"""Metadata of Iceberg tables: metadata files, manifest lists, manifests, schemas, partition specs and values.

No frames and no rows: `frames` and `scan` make them of it.
"""
