"""Delta's data files: parquet with column mapping, deletion vectors, old calendars.

Which files a version has is planned in `scan`.
"""
