"""Expiry of snapshots, maintenance settings, and what is missing."""
