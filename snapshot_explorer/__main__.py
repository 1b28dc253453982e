"""`python -m snapshot_explorer PATH`: a table's card and log in a terminal, or the tables below a folder.

`python -m snapshot_explorer COMMAND PATH ...` runs a command of `%snapshot`.
"""

import argparse
import io
import os
import shutil
import sys
from collections.abc import Sequence

from snapshot_explorer.table import read_overview

_INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ends, as shells write it."""
_CLOSED_PIPE = 141
"""The exit status of a program whose reader stops reading, as shells write it."""

try:
    from snapshot_explorer import __version__, formats
    from snapshot_explorer.core.errors import SnapshotExplorerError, TableNotFoundError
    from snapshot_explorer.core.hints import spell
    from snapshot_explorer.core.url_secrets import hide_url_secrets
    from snapshot_explorer.jupyter import terminal
    from snapshot_explorer.lake.discovery import find_tables
    from snapshot_explorer.opening import open_table
    from snapshot_explorer.results import Frame
except KeyboardInterrupt:  # loading them takes half a second
    sys.exit(_INTERRUPTED)

_DRAWN = 20
_WIDTHS = 40, 120
"""The minimum and the maximum width of text."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table's card and its newest commits, and return the exit status: 2 where the table cannot be read.

    If the folder is not a table, prints the tables below it. Text is as wide as the terminal, at most 120 columns.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        output = _run(words) if _is_command(words) else _read(_parser().parse_args(words))
        stream = sys.stderr if output.is_error else sys.stdout
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for terminals that lack the letters of a name
        stream.write(f"{output.text}\n")
        stream.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # such as with `| head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python reports an error at exit
        return _CLOSED_PIPE
    return output.status


def _is_command(words: Sequence[str]) -> bool:
    """Return whether the first word is a command, and not a folder: a command has a path behind it."""
    name, *others = words or [""]
    has_path = bool(others) and not others[0].startswith("-")
    is_folder = os.path.exists(name)  # noqa: PTH110 - any text
    return name.isidentifier() and (not is_folder or (name in terminal.names() and has_path))


def _run(words: Sequence[str]) -> terminal.Output:
    return terminal.run(words, room=_room())


def _room() -> int:
    """Return the width for text: the terminal's width, within bounds."""
    minimum, widest = _WIDTHS
    return max(minimum, min(widest, shutil.get_terminal_size((widest, 0)).columns))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m snapshot_explorer",
        description=f"Show what a {formats.titles('or')} table is and what its newest commits did, "
        "or which tables are below a folder. Only reads.",
        epilog="python -m snapshot_explorer COMMAND PATH ... runs a command of %snapshot: "
        f"{', '.join(terminal.names())}. COMMAND --help has its options and examples; --json prints JSON. The exit "
        "status is 0, 1 where a check fails, and 2 where something cannot be read.",
    )
    parser.add_argument(
        "path", metavar="PATH", help="the table's folder, one above it, or a URL such as s3://lake/shop.db"
    )
    parser.add_argument("--branch", metavar="B", help="the branch; the main one without it")
    parser.add_argument("--format", metavar="F", help=f"{formats.names()}; detected without it")
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=_DRAWN, help="the most commits (20)")
    parser.add_argument("--version", action="version", version=f"snapshot-explorer {__version__}")
    return parser


def _read(options: argparse.Namespace) -> terminal.Output:
    room, call = _room(), terminal.spelling(hide_url_secrets(options.path))
    try:
        table = open_table(options.path, branch=options.branch, format=options.format)
        read_overview(table)
        log = table.history(limit=options.limit)
    except SnapshotExplorerError as error:
        below = _tables_below(options.path) if isinstance(error, TableNotFoundError) else None
        if below is None:
            return terminal.Output(status=2, text=spell(error.message, call), is_error=True)
        return terminal.Output(status=0, text=terminal.text_of(below, call, room))
    shown = "\n\n".join(terminal.text_of(item, call, room) for item in (table, log))
    return terminal.Output(status=0, text=shown)


def _tables_below(path: str) -> Frame | None:
    try:
        result = find_tables(path)
    except SnapshotExplorerError:
        return None
    return result if result.num_rows else None


if __name__ == "__main__":
    status = main()
    if status == _INTERRUPTED:
        # Python would wait for threads, and they for a server that may never answer.
        os._exit(status)
    sys.exit(status)
