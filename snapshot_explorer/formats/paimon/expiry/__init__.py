"""The effect of `expire_snapshots`, and the maintenance settings. Nothing is deleted here."""
