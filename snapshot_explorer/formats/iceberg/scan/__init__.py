"""From an Iceberg version to its rows: skipped files, splits, reading a split. Files are decoded in `files`."""
