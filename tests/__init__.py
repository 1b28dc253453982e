"""Tests, the scripts that made their tables, and benchmarks."""
