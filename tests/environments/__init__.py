"""Environments in which the package must work: managed notebooks, the oldest and newest libraries, and other tools."""
