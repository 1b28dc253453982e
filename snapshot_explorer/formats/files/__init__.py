"""Parquet and ORC data files as Arrow. The formats supply the columns, their conversions and the recorded metadata."""
