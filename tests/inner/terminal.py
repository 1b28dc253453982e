"""The names of inner modules of `terminal` that tests use."""

from snapshot_explorer.terminal.commands import names
from snapshot_explorer.terminal.program import main
