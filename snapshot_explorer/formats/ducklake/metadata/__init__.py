"""The catalog: its database, names, versions of a table, columns, types and paths."""
