"""Row diffs: which rows differ between two versions, read, compared and returned."""
