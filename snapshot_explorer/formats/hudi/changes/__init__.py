"""The rows that changed between versions of Hudi tables."""
