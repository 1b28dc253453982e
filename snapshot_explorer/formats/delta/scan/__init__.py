"""Plan and read the rows of a Delta version: statistics, skipped files, splits. Files are decoded in `files`."""
