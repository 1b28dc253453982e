"""Row diffs of two tables: their columns paired, what their metadata proves, and what is read."""
