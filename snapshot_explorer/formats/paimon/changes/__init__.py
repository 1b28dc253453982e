"""Rows that Paimon commits changed: changelogs, deltas, differences of states."""
