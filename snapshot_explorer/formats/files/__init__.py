"""Data files of parquet and ORC as Arrow. The formats supply the columns, their conversions and what is recorded."""
