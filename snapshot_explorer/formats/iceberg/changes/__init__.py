"""Rows that commits changed."""
