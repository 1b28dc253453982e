"""Lines with marks on them: rows, files, branches, actions and tables over versions or over time.

Marks are data, which `tracks` draws for plotly and passes to the explorer's page.
"""
