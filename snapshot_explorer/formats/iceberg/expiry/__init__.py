"""The effect of `expire_snapshots`, and the maintenance settings."""
