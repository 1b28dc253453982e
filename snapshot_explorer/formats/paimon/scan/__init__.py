"""From a Paimon version to its rows: live files, skipped files, splits, reading a split.

Files are decoded in `files`.
"""
