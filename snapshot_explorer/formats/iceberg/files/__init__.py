"""Data files and delete files: parquet, ORC and Avro, with columns found by field id."""
