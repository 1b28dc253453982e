"""Paimon's data files: Parquet, ORC, Avro and blobs, deletion vectors, schema evolution."""
