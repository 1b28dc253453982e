"""Arrow and NumPy kernels for all formats, independent of tables and storage."""
