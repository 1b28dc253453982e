"""Numbers of columns over versions, and the versions at which the numbers jump."""
