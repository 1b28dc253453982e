"""Plans splits of Hudi tables, and reads and merges their rows. Files are decoded in `files`."""
