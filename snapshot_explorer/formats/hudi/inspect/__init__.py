"""Metadata tables of Hudi tables, under the names of Hudi."""
