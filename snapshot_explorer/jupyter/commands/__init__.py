"""The commands of `%snapshot`: a module per question of the help, with their arguments, help, examples and functions.

To add one, write it in the module of its question and put its record into `COMMANDS`. Completion and `%snapshot help`
read it there.
"""

from collections.abc import Sequence

from snapshot_explorer.jupyter.command import Command
from snapshot_explorer.jupyter.commands.differences import DIFF, PROFILE
from snapshot_explorer.jupyter.commands.discovery import EXPLORE, HELP, LAKE, OPEN, STATUS
from snapshot_explorer.jupyter.commands.history import BRANCHES, LOG, SHOW, TAGS
from snapshot_explorer.jupyter.commands.loading import LOAD, REPORT, SQL
from snapshot_explorer.jupyter.commands.rows import BISECT, BLAME, REPAIR, TRACE
from snapshot_explorer.jupyter.commands.soundness import CHECK, HEALTH, ORPHANS, VERIFY
from snapshot_explorer.jupyter.commands.stored import FILES, INSPECT, MANIFESTS, RETENTION, USAGE

COMMANDS: Sequence[Command] = (
    *(OPEN, STATUS, LAKE, EXPLORE, HELP),
    *(LOG, SHOW, TAGS, BRANCHES),
    *(DIFF, PROFILE),
    *(BLAME, BISECT, TRACE, REPAIR),
    *(HEALTH, CHECK, VERIFY, ORPHANS),
    *(FILES, MANIFESTS, INSPECT, RETENTION, USAGE),
    *(LOAD, SQL, REPORT),
)
"""In the order of the help, which groups them by their question."""
