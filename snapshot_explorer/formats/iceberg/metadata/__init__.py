"""Metadata of Iceberg tables: metadata files, manifest lists, manifests, schemas, partition specs and values."""
