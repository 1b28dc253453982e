"""Row changes of Paimon commits: changelogs, deltas and differences of two versions."""
