"""Helpers of tests of Iceberg tables."""
