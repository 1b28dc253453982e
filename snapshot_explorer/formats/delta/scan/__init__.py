"""From a Delta version to its rows: statistics, skipped files, splits, reading a split."""
