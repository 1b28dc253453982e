"""Row changes of Paimon commits: changelogs, deltas and differences of two versions.

The rows of one version are read in `scan`.
"""
