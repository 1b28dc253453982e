"""Arrow and NumPy kernels that any format may need. They know no table and no storage."""
