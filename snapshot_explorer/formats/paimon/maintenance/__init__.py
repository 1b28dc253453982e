"""Maintenance of Paimon tables: settings, snapshot expiry, and existing files."""
