"""The files that expiring snapshots would free, scheduled files, files that exist."""
