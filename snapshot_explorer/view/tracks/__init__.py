"""Lines with marks on them: rows, files, branches, actions and tables over versions or over time."""
