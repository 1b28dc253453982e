"""IPython magics, completion, the explorer, and the commands in a terminal, which need no IPython.

What is drawn of results is in `view`.
"""
