"""Paimon's metadata: schemas, snapshots, manifest lists, manifests, partitions, statistics.

No frames and no rows: `frames` and `scan` make them of it.
"""
