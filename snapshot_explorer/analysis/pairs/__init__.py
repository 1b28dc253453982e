"""Row diffs of two tables: paired columns, proofs from metadata, and plans."""
