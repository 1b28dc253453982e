"""Splits and metadata as Spark DataFrames. PySpark is imported here alone, and only when Spark is used.

The data source and the stream are in `snapshot_explorer.spark`.
"""
