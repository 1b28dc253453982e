"""Paimon's data files: parquet, ORC, Avro and blobs, deletion vectors, schema evolution."""
