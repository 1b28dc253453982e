"""What the `snapshot-explorer` command does with its words: a table's card and log, or a command about it."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from snapshot_explorer import __version__, formats, samples
from snapshot_explorer.agents.access import CallLimits
from snapshot_explorer.core.errors import MissingDependencyError, SnapshotExplorerError, TableNotFoundError
from snapshot_explorer.core.hints import Hint, Message, spell
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake.discovery import find_tables
from snapshot_explorer.results import Frame
from snapshot_explorer.storage.allowed_roots import AllowedRoots
from snapshot_explorer.table import open_table, read_overview
from snapshot_explorer.terminal import commands
from snapshot_explorer.terminal.completion import SHELLS, script
from snapshot_explorer.terminal.notebook import start_notebook
from snapshot_explorer.terminal.output import paint_for, show

if TYPE_CHECKING:
    from snapshot_explorer.agents.server import AgentServer

_INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ends, as shells write it."""
_CLOSED_PIPE = 141
"""The exit status of a program whose reader stops reading, as shells write it."""
_PROGRAM = "snapshot-explorer"
_DRAWN = 20
_WIDTHS = 40, 120
"""The minimum and the maximum width of text."""
_EXACT = "--exact"
_NO_PAGER = "--no-pager"
_HTML = "--html"
_DEMO = "orders"
"""The sample that is shown without a name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what the words ask for, and return the exit status: 2 where something cannot be read.

    Words are a path, or a command, its path and its arguments; without words, the commands are listed. Text is as wide
    as the terminal, at most 120 columns, and goes through a pager there, as git does it.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    has_pager = _NO_PAGER not in words
    words = [word for word in words if word != _NO_PAGER]
    try:
        output = _output(words)
        if output.text:
            show(
                output.text, sys.stderr if output.is_error else sys.stdout, has_pager=has_pager and not output.is_error
            )
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # such as with `| head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python reports an error at exit
        return _CLOSED_PIPE
    return output.status


def run() -> None:
    """Run the command of the shell, and end the process with its exit status."""
    status = main()
    if status == _INTERRUPTED:
        # Python would wait for threads, and they for a server that may never answer.
        os._exit(status)
    sys.exit(status)


def _output(words: Sequence[str]) -> commands.Output:
    programs = _programs()
    try:
        if not words:
            return commands.Output(status=0, text=commands.overview(list(programs)))
        # A folder of that name does not hide a command with arguments: agents start `mcp` where they work.
        if words[0] in programs and (len(words) > 1 or not os.path.exists(words[0])):  # noqa: PTH110 - any text
            options, others = programs[words[0]].parse_known_args(words[1:])
            return _run_program(words[0], options, others)
        if _is_command(words):
            return commands.run(words, room=_room(), paint=paint_for(sys.stdout))
        if any(word.partition("=")[0] == _HTML for word in words[1:]):
            return commands.run(["explore", *words], room=_room())
        return _read(_parser().parse_args(words))
    except SystemExit as end:  # argparse has printed help, or an error
        return commands.Output(status=int(end.code or 0), text="")


def _is_command(words: Sequence[str]) -> bool:
    """Return whether the first word is a command, and not a folder: a command has a path behind it."""
    name, *others = words
    has_path = bool(others) and not others[0].startswith("-")
    is_folder = os.path.exists(name)  # noqa: PTH110 - any text
    return name.isidentifier() and (not is_folder or (name in commands.names() and has_path))


def _room() -> int:
    """Return the width for text: the terminal's width, within bounds."""
    minimum, widest = _WIDTHS
    return max(minimum, min(widest, shutil.get_terminal_size((widest, 0)).columns))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description=commands.overview(list(_programs())),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"A path is of a {formats.titles('or')} table, or of a folder above tables. The exit status is 0,\n"
        "1 where a check fails, 2 where something cannot be read, such as a table of a lake, 130 after Ctrl-C, and\n"
        "141 where the reader of a pipe stops. In a terminal, text goes through PAGER, or less. NO_COLOR=1 turns\n"
        "colors off.",
    )
    parser.add_argument(
        "path", metavar="PATH", help="the table's folder, one above it, or a URL such as s3://lake/shop.db"
    )
    parser.add_argument("--branch", metavar="B", help="the branch; the main one without it")
    parser.add_argument("--format", metavar="F", help=f"{formats.names()}; detected without it")
    parser.add_argument("--relocate", metavar="OLD=NEW", action="append", default=[], help="see log --help")
    parser.add_argument("--storage-options", metavar="FILE", help="a JSON file of storage options; see log --help")
    parser.add_argument(_HTML, metavar="FILE", help="write the explorer into a file; see explore --help")
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=_DRAWN, help="the most commits (20)")
    parser.add_argument(_EXACT, action="store_true", help="count the rows of commits by reading those that differ")
    parser.add_argument(_NO_PAGER, action="store_true", help="print without a pager")
    parser.add_argument("--version", action="version", version=f"{_PROGRAM} {__version__}")
    return parser


def _programs() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands that are not about one table, by name."""
    demo = argparse.ArgumentParser(prog=f"{_PROGRAM} demo", description="Show a sample table, and what to try on it.")
    demo.add_argument("sample", metavar="SAMPLE", nargs="?", default=_DEMO, help=f"{', '.join(samples.names())}")
    notebook = argparse.ArgumentParser(
        prog=f"{_PROGRAM} notebook",
        description="Start JupyterLab with a new notebook that opens a table or a lake. It gets all other options.",
    )
    notebook.add_argument("path", metavar="PATH", help="the table's folder, or one above tables, or a URL")
    notebook.add_argument("--file", metavar="FILE", help="the notebook to write; by default a new one in this folder")
    notebook.add_argument("--storage-options", metavar="FILE", help="a JSON file of storage options, which it reads")
    completion = argparse.ArgumentParser(
        prog=f"{_PROGRAM} completion",
        description="Print a script that completes commands and options in a shell. Needs shtab.",
        epilog=f'bash: eval "$({_PROGRAM} completion bash)" in ~/.bashrc. zsh: {_PROGRAM} completion zsh > a folder '
        f"of fpath/_{_PROGRAM}. fish: {_PROGRAM} completion fish > ~/.config/fish/completions/{_PROGRAM}.fish",
    )
    completion.add_argument("shell", choices=SHELLS)
    help_parser = argparse.ArgumentParser(prog=f"{_PROGRAM} help", description="List the commands, or explain one.")
    help_parser.add_argument("command", metavar="COMMAND", nargs="?", help="the command; by default all")
    return {
        "demo": demo,
        "notebook": notebook,
        "mcp": _mcp_parser(),
        "completion": completion,
        "help": help_parser,
    }


def _mcp_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{_PROGRAM} mcp",
        description="Serve the questions as tools to agents, by the Model Context Protocol, read-only.",
        epilog="Over stdio, which agents start themselves; with --http at http://127.0.0.1:PORT/mcp. Needs the SDK.",
    )
    limits = CallLimits()
    parser.add_argument(
        "--allow", metavar="PATH", action="append", default=[], help="a folder or URL; nothing outside is read"
    )
    parser.add_argument("--http", metavar="PORT", type=int, help="serve streamable HTTP on this port of 127.0.0.1")
    parser.add_argument("--storage-options", metavar="FILE", help="a JSON file of storage options, for remote folders")
    for name, default, meaning in (
        ("rows", limits.rows, "rows of an answer"),
        ("seconds", limits.seconds, "the time of a call"),
        ("bytes", limits.size_bytes, "bytes of data files that a call may read"),
        ("requests", limits.requests, "files and folders that a call may request from a store"),
    ):
        help_text = f"{meaning}; by default {default:,.0f}"
        parser.add_argument(f"--max-{name}", metavar="N", type=type(default), default=default, help=help_text)
    return parser


def _run_program(name: str, options: argparse.Namespace, others: Sequence[str]) -> commands.Output:
    if others and name != "notebook":
        _programs()[name].error(f"unrecognized arguments: {' '.join(others)}")
    try:
        match name:
            case "demo":
                return _demo(options.sample)
            case "help":
                return _output([options.command, "--help"] if options.command else [])
            case "mcp":
                roots = AllowedRoots.of(options.allow)
                limits = CallLimits(
                    rows=options.max_rows,
                    seconds=options.max_seconds,
                    size_bytes=options.max_bytes,
                    requests=options.max_requests,
                )
                storage_options = commands.storage_options_in(options.storage_options)
                server = _server_class()(roots, options=storage_options, limits=limits)
                server.run() if options.http is None else server.run("streamable-http", port=options.http)
                return commands.Output(status=0, text="")
            case "notebook":
                file = options.storage_options or os.environ.get(commands.STORAGE_OPTIONS_VARIABLE)
                status = start_notebook(options.path, options_file=file, file=options.file, words=others)
                return commands.Output(status=status, text="")
        return commands.Output(status=0, text=script(options.shell, list(_programs().values())))
    except SnapshotExplorerError as error:
        call = commands.spelling(hide_url_secrets(options.path) if name == "notebook" else None)
        return commands.Output(status=2, text=spell(error.message, call), is_error=True)


def _server_class() -> "type[AgentServer]":
    """Return the class of the server for agents. Raises MissingDependencyError without the SDK."""
    try:
        from snapshot_explorer.agents.server import AgentServer  # noqa: PLC0415 - no other command needs it
    except ImportError as error:
        raise MissingDependencyError(
            "mcp needs the SDK of the Model Context Protocol, which is not installed. Install it: "
            "pip install 'snapshot-explorer[mcp]'."
        ) from error
    return AgentServer


def _demo(name: str) -> commands.Output:
    """Return the card and the log of a sample, in the folder of the package: what is shown can be typed."""
    folder = Path(samples.__file__).parent / name
    path = str(folder) if name in samples.names() else samples.path(name)
    output = _read(_parser().parse_args([path, _EXACT]))
    if name != _DEMO:
        return output
    hints = (
        Hint("table.diff_rows", {"a": 7, "b": 8}),
        Hint("table.bisect", {"condition": "count(*) filter (where amount < 0) > 0"}),
        Hint("table.blame", {"where": "order_id = 42"}),
    )
    lines = [spell(Message(hint), commands.spelling(path)) for hint in hints]
    text = "\n".join([output.text, "", "At 3 in the morning a job turned amounts negative. To find out more:", *lines])
    return commands.Output(status=output.status, text=text)


def _read(options: argparse.Namespace) -> commands.Output:
    call, paint = commands.spelling(hide_url_secrets(options.path)), paint_for(sys.stdout)
    try:
        storage_options = commands.storage_options_in(options.storage_options)
        table = open_table(
            options.path,
            branch=options.branch,
            format=options.format,
            storage_options=storage_options,
            relocate=commands.relocated(options.relocate),
        )
        read_overview(table)
        log = table.history(limit=options.limit, exact=options.exact)
    except (UsageError, SnapshotExplorerError) as error:
        is_absent = isinstance(error, TableNotFoundError)
        below = _tables_below(options.path, options.storage_options) if is_absent else None
        if below is None:
            return commands.Output(status=2, text=spell(error.message, call), is_error=True)
        text = commands.text_of(below, call, _room(), paint=paint)
        return commands.Output(status=commands.status_of(below), text=text)
    shown = "\n\n".join(commands.text_of(item, call, _room(), paint=paint) for item in (table, log))
    return commands.Output(status=0, text=shown)


def _tables_below(path: str, options_file: str | None) -> Frame | None:
    try:
        result = find_tables(path, storage_options=commands.storage_options_in(options_file))
    except SnapshotExplorerError:
        return None
    return result if result.num_rows else None
