"""Delta Lake tables."""
