"""The content of the page: the timeline, the grid, panes and buttons, and the script that they run.

What it shows is computed in `contents` and `view`.
"""
