"""The commits of a table over versions: what is drawn as data, and its drawings.

The explorer draws the same data in its page.
"""
