"""Questions about the versions of a table. Each is a function of its `History`, and returns a record.

Nothing here reads a format by itself, or draws.
"""
