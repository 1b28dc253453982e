"""Where rows are read and conditions are evaluated.

Which files a version has, and how a split is decoded, is in `formats`; what the rows answer is in `analysis`.
"""
