"""Paimon's system tables, with the columns that its own users know."""
