"""The `snapshot-explorer` command: the commands of `%snapshot` in a terminal, and what surrounds them there.

Commands are in `jupyter/commands`, drawings in `view`.
"""
