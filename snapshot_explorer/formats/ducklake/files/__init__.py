"""Data files and delete files as Arrow: columns by field id, deleted positions, row ids."""
