"""Maintenance of Delta tables: settings, VACUUM, which versions can still be loaded."""
