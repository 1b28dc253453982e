"""Data files and delete files: parquet, ORC and Avro, with columns found by field id.

Which files a version has is planned in `scan`.
"""
