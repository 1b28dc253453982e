"""What `expire_snapshots` would delete, and the settings of maintenance."""
