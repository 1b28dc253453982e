"""Merging rows of equal key, by Paimon's merge engines and aggregate functions.

Which files are merged is planned in `scan`.
"""
