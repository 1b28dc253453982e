"""Paimon's metadata: schemas, snapshots, manifest lists, manifests, partitions, statistics."""
