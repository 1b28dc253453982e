"""Paimon's system tables, with Paimon's own column names."""
