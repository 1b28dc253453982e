"""The commands of `%snapshot`: one module per command, with its arguments, help, examples and function.

To add one, write its module and put its record into `COMMANDS`. Completion and `%snapshot help` read it there.
"""

from collections.abc import Sequence

from snapshot_explorer.jupyter.command import Command
from snapshot_explorer.jupyter.commands.bisect import BISECT
from snapshot_explorer.jupyter.commands.blame import BLAME
from snapshot_explorer.jupyter.commands.branches import BRANCHES
from snapshot_explorer.jupyter.commands.check import CHECK
from snapshot_explorer.jupyter.commands.diff import DIFF
from snapshot_explorer.jupyter.commands.explore import EXPLORE
from snapshot_explorer.jupyter.commands.files import FILES
from snapshot_explorer.jupyter.commands.health import HEALTH
from snapshot_explorer.jupyter.commands.help import HELP
from snapshot_explorer.jupyter.commands.inspect import INSPECT
from snapshot_explorer.jupyter.commands.lake import LAKE
from snapshot_explorer.jupyter.commands.load import LOAD
from snapshot_explorer.jupyter.commands.log import LOG
from snapshot_explorer.jupyter.commands.manifests import MANIFESTS
from snapshot_explorer.jupyter.commands.open import OPEN
from snapshot_explorer.jupyter.commands.orphans import ORPHANS
from snapshot_explorer.jupyter.commands.profile import PROFILE
from snapshot_explorer.jupyter.commands.repair import REPAIR
from snapshot_explorer.jupyter.commands.report import REPORT
from snapshot_explorer.jupyter.commands.retention import RETENTION
from snapshot_explorer.jupyter.commands.show import SHOW
from snapshot_explorer.jupyter.commands.sql import SQL
from snapshot_explorer.jupyter.commands.status import STATUS
from snapshot_explorer.jupyter.commands.tags import TAGS
from snapshot_explorer.jupyter.commands.trace import TRACE
from snapshot_explorer.jupyter.commands.usage import USAGE
from snapshot_explorer.jupyter.commands.verify import VERIFY

COMMANDS: Sequence[Command] = (
    OPEN,
    STATUS,
    LAKE,
    EXPLORE,
    HELP,
    LOG,
    SHOW,
    TAGS,
    BRANCHES,
    DIFF,
    PROFILE,
    BLAME,
    BISECT,
    TRACE,
    REPAIR,
    HEALTH,
    CHECK,
    VERIFY,
    ORPHANS,
    FILES,
    MANIFESTS,
    INSPECT,
    RETENTION,
    USAGE,
    LOAD,
    SQL,
    REPORT,
)
"""In the order of the help, which groups them by their question."""
