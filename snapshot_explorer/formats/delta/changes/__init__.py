"""Rows that Delta commits changed: change data files, or what files and deletion vectors imply."""
