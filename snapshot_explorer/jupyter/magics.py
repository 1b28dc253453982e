"""`%snapshot`: the magic, its settings, and how errors look."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from IPython.core.error import UsageError as IPythonUsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, needs_local_scope, no_var_expand
from traitlets import Bool, Bunch, Enum, Int, TraitError, Unicode, validate

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, spell
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.arguments import parse
from snapshot_explorer.jupyter.command import HELP, Arguments, Command, CommandSettings, Invocation, find_command
from snapshot_explorer.jupyter.command_line import ALIASES, CommandLine, LineToken, as_command, without_semicolon
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.jupyter.cost import DEFAULT_LIMITS, ENGINES
from snapshot_explorer.jupyter.help_text import HelpText, command_help, overview, read_only_sentence
from snapshot_explorer.jupyter.progress import ShellProgress
from snapshot_explorer.jupyter.spelling import magic_line
from snapshot_explorer.jupyter.tables import OpenTables, is_variable_name
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.jupyter.variables import UserVariables, expand
from snapshot_explorer.jupyter.zones import zone_of
from snapshot_explorer.table import Table
from snapshot_explorer.view import DRAWN_ROWS

NAMES = ("snapshot", "snap")
"""The name of the magic, and its short name."""
_TIME_OF_DAY = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_TARGET = re.compile(r"\s*([^\W\d]\w*)\s*<<(.*)", re.DOTALL)


@magics_class
class SnapshotMagics(Magics):
    """The settings of %snapshot."""

    display_limit = Int(DRAWN_ROWS, min=1, help="Rows shown of a frame, and commits that `log` reads without -n.").tag(
        config=True
    )
    load_row_limit = Int(DEFAULT_LIMITS.rows, min=0, help="Rows above which `load` needs --limit or --yes.").tag(
        config=True
    )
    load_size_limit = Int(
        DEFAULT_LIMITS.size_bytes, min=0, help="Bytes above which `load` needs --limit or --yes (1 MB is 1,000,000)."
    ).tag(config=True)
    engine = Enum(ENGINES, "pandas", help="What `load` returns without --engine.").tag(config=True)
    time_zone = Unicode(
        "UTC", help="The zone in which the explorer shows times beside UTC, such as Europe/Berlin; local for your own."
    ).tag(config=True)
    progress = Bool(default_value=True, help="Show the progress of work that takes longer than a second.").tag(
        config=True
    )
    debug = Bool(default_value=False, help="Show the traceback of every error, as --debug does for one line.").tag(
        config=True
    )

    @validate("time_zone")
    def _check_time_zone(self, proposal: Bunch) -> str:
        name: str = proposal.value
        try:
            zone_of(name)
        except InvalidArgumentError as error:
            raise TraitError(str(error)) from error
        return name

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._shell = shell
        self.tables = OpenTables(shell.user_ns)
        self._shown_once: set[str] = set()
        self.shown_progress = ShellProgress(shell, lambda: self.progress)

    # IPython's annotation of the decorator loses the type of the decorated method.
    @line_magic(NAMES[1])
    @line_magic(NAMES[0])  # type: ignore[arg-type]
    @no_var_expand
    @needs_local_scope
    def snapshot(self, line: str, local_ns: Mapping[str, object] | None = None) -> object:
        """Run a command. The list of commands, assigned below, replaces this docstring."""
        local_ns = UserVariables(dict(local_ns or {}), self._shell.user_ns)
        return self._run_line(line, None, local_ns)

    snapshot.__doc__ = overview(COMMANDS)  # type: ignore[assignment]  # as above

    @cell_magic(NAMES[1])
    @cell_magic(NAMES[0])  # type: ignore[arg-type]
    @no_var_expand
    @needs_local_scope
    def snapshot_cell(self, line: str, cell: str, local_ns: Mapping[str, object] | None = None) -> object:
        """Run the command of the line with the cell below it: `%%snapshot sql` and a query."""
        local_ns = UserVariables(dict(local_ns or {}), self._shell.user_ns)
        return self._run_line(line, cell, local_ns)

    def _run_line(self, line: str, body: str | None, variables: Mapping[str, object]) -> object:
        try:
            return self._result_of(line, body, variables)
        except UsageError as error:
            # IPython's own class itself: a traceback is shown for subclasses.
            raise IPythonUsageError(sanitize(spell(error.message, spelling()))) from error.__cause__

    def _result_of(self, line: str, body: str | None, variables: Mapping[str, object]) -> object:
        content, is_silenced = without_semicolon(line)
        if match := _TARGET.fullmatch(content):
            content = match[2]
        written = self._written(content, body, variables)
        body = written.body
        if written.has_query:
            is_silenced = False  # the semicolon is the query's own
        command, arguments = self._parsed(written.words, variables)
        if arguments.has("help"):
            return HelpText(command_help(command))
        if body is not None and not command.accepts_body:
            takers = " and ".join(f"%%snapshot {item.name}" for item in COMMANDS if item.accepts_body)
            raise UsageError(
                f"%snapshot {command.name} is a line of its own: write it with one %. Cells begin with {takers}."
            )
        target = arguments.get("out") or (match[1] if match else None)
        if target is not None and not is_variable_name(target):
            raise UsageError(f"{target!r} cannot be the name of a variable. Use letters, digits and _.")
        result = self._run(command, arguments, variables, body, is_silenced=is_silenced)
        if target is not None:
            self._shell.user_ns[target] = result
        is_kept = target is not None or (is_silenced and self._is_shown(line))
        return None if is_kept else result

    def _written(self, line: str, body: str | None, variables: Mapping[str, object]) -> CommandLine:
        return as_command(line, body, commands=COMMANDS, is_table=self._is_table(variables))

    def _is_table(self, variables: Mapping[str, object]) -> Callable[[str], bool]:
        return lambda name: name in self.tables.all() or isinstance(variables.get(name), Table)

    def _parsed(self, words: Sequence[LineToken], variables: Mapping[str, object]) -> tuple[Command, Arguments]:
        """Return the command that the words name and its arguments; without a word, `status` or `help`."""
        if not words:
            words = (LineToken("status" if self.tables.all() else "help"),)
        word, *others = words
        if word.text in HELP.flags:
            word = LineToken("help")
        if word.text[:1] == "{" and (value := expand(word.text, variables)) != word.text:
            word, *others = (*self._written(value, None, variables).words, *others)
        if word.text in self.tables.all() and word.text not in {command.name for command in COMMANDS}:
            raise UsageError(
                f"{word.text} is a table, not a command. Try %snapshot status {word.text} or %snapshot log {word.text}."
            )
        tables = self.tables.all()
        sentence = read_only_sentence([item.text for item in (word, *others)], tables.get(self.tables.current or ""))
        if sentence is not None:
            raise UsageError(sanitize(sentence))
        command = find_command(COMMANDS, word.text, aliases=list(ALIASES))
        arguments = parse(
            command,
            others,
            expand=lambda text: expand(text, variables),
            is_table=self._is_table(variables),
            variables=variables,
        )
        return command, arguments

    def _run(
        self,
        command: Command,
        arguments: Arguments,
        variables: Mapping[str, object],
        body: str | None,
        *,
        is_silenced: bool,
    ) -> object:
        invocation = Invocation(
            arguments=arguments,
            commands=COMMANDS,
            tables=self.tables,
            variables=variables,
            settings=CommandSettings(
                display_limit=self.display_limit,
                load_row_limit=self.load_row_limit,
                load_size_limit=self.load_size_limit,
                engine=self.engine,
            ),
            show_line=_show_nothing if is_silenced else self._show_line,
            show_once=_show_nothing if is_silenced else self._show_once,
            cell_body=body,
        )
        try:
            result = command.run(invocation)
            for note in _time_notes(command, invocation):
                invocation.show_line(note)
            return result  # noqa: TRY300 - what follows handles errors of all of it
        except SnapshotExplorerError as error:
            if self.debug or arguments.has("debug"):
                raise
            message = spell(error.message, spelling(command))
            raise UsageError(sanitize(" ".join(message.split()))) from error

    def _show_line(self, line: str) -> None:
        self._shell.display_pub.publish({"text/plain": sanitize(spell(line, spelling()))})

    def _show_once(self, line: str) -> None:
        """Show a line beside the result unless it was shown before."""
        if line not in self._shown_once:
            self._shown_once.add(line)
            self._show_line(line)

    def _is_shown(self, line: str) -> bool:
        """Return whether the cell would show the result of the line: whether its value is unused.

        A semicolon suppresses the output, but `df = %snapshot load;` must still assign.
        """
        history = self._shell.history_manager
        cell = (history.input_hist_parsed if history else [""])[-1]
        bare = rf"^\s*get_ipython\(\)\.run_line_magic\('(?:{'|'.join(NAMES)})', {re.escape(repr(line))}\)\s*$"
        return re.search(bare, cell, re.MULTILINE) is not None


def _time_notes(command: Command, invocation: Invocation) -> Iterator[str]:
    """Yield why a time with an hour selects its version, where the next one was committed soon after."""
    ref, between = invocation.arguments.get("ref"), invocation.arguments.get("a..b")
    for text in [ref, *(between or "").split("..")] if command.accepts_table else []:
        if text and _TIME_OF_DAY.search(text) and (note := history_of(invocation.table()).time_note(text)):
            yield note


def spelling(command: Command | None = None) -> Callable[[Hint], str]:
    """Return how hints are spelled in a notebook: as lines of `%snapshot`.

    Args:
        command: The command that runs, for arguments alone.
    """
    return partial(magic_line, commands=COMMANDS, command=command)


def _show_nothing(line: str) -> None:
    """Show nothing: replaces showing a line in a silenced cell."""
