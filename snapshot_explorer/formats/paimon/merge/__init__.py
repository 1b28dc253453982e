"""Merging rows of equal key, by Paimon's merge engines and aggregate functions."""
