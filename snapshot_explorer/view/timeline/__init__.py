"""The commits of a table over versions: what is drawn as data, and its drawings."""
