"""Plan and read the rows of a DuckLake version: skipped files, splits, inlined rows."""
