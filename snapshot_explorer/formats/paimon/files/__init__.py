"""Paimon's data files: Parquet, ORC, Avro and blobs, deletion vectors, schema evolution.

Which files a version has is planned in `scan`.
"""
