"""The names of inner modules of `history` that tests use."""

from snapshot_explorer.history.management import log
from snapshot_explorer.history.resolving import resolve, resolve_range
