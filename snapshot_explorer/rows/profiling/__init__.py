"""Numbers of columns over versions, and the versions where they jump."""
