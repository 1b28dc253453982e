"""The Delta log: listing, segments, checkpoints, commits, replay, schema, protocol."""
