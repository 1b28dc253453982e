"""The effect of VACUUM, the versions that can be loaded, and the maintenance settings. Nothing is deleted here."""
