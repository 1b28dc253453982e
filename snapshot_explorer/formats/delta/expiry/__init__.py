"""What VACUUM would delete, which versions can be loaded, and the settings of maintenance."""
