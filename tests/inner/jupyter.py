"""The names of inner modules of `jupyter` that tests use."""

from snapshot_explorer.jupyter.arguments import parse
from snapshot_explorer.jupyter.command import REMOVED, Arguments, Command, Option, Question, find_command
from snapshot_explorer.jupyter.command_line import LineToken, as_command, tokenize, without_semicolon
from snapshot_explorer.jupyter.commands.differences import DIFF_PARTS
from snapshot_explorer.jupyter.completion import MATCHER, matcher, suggestions
from snapshot_explorer.jupyter.explorer import recording
from snapshot_explorer.jupyter.explorer.contents import changed_rows, version_rows, view_requests
from snapshot_explorer.jupyter.explorer.contents.distributions import distributions
from snapshot_explorer.jupyter.explorer.contents.grid_rows import (
    Arrangement,
    arrange_rows,
    brushed_condition,
    grid_rows,
    page_of,
    with_json,
)
from snapshot_explorer.jupyter.explorer.contents.row_conditions import row_conditions
from snapshot_explorer.jupyter.explorer.environment import load_limits
from snapshot_explorer.jupyter.explorer.following import Timer
from snapshot_explorer.jupyter.explorer.grid_view import GridView
from snapshot_explorer.jupyter.explorer.page.scripts import script, text_of
from snapshot_explorer.jupyter.explorer.state import COMPARED, FILE_VIEWS, FILTERS, HEALTH, MEASURES, PARTS, TABS
from snapshot_explorer.jupyter.explorer.work import THREADS, Job, Work, running_loop
from snapshot_explorer.jupyter.help_text import usage
from snapshot_explorer.jupyter.magics import SnapshotMagics, spelling
from snapshot_explorer.jupyter.progress import CellProgress
from snapshot_explorer.jupyter.spelling import magic_line, quote_in_line
from snapshot_explorer.jupyter.tables import OpenTables
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.jupyter.variables import escape, expand
