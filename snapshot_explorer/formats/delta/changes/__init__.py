"""Rows that Delta commits changed, from change data files or derived from files and deletion vectors.

The rows of one version are read in `scan`.
"""
