"""The content of the page: the timeline, the grid, panes and buttons, and the script that they run."""
