"""Arrow and NumPy kernels for all formats, independent of tables and storage.

Rules of one format are in its folder; what reads a whole data file is in `formats.files`.
"""
