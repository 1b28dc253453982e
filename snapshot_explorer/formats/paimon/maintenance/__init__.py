"""Maintenance of Paimon tables: settings, expiry of snapshots, which files exist."""
