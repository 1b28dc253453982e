"""Apache Iceberg tables, read by path from their metadata files, without a catalog."""
