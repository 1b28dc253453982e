"""Delta's data files: parquet with column mapping, deletion vectors, old calendars."""
