"""The Delta log: listing, segments, checkpoints, commits, replay, schema, protocol.

No frames and no rows: `frames` and `scan` make them of it.
"""
