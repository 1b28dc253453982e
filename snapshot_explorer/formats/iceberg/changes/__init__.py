"""Rows that commits changed. The rows of one version are read in `scan`."""
