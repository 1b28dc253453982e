"""Hints as the lines of a surface that has commands, from the commands' records: `%snapshot` lines, and a shell's."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from snapshot_explorer.core.hints import Hint, python_call
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.jupyter.command import OUT, Argument, Call, Command, Option
from snapshot_explorer.jupyter.command_line import tokenize
from snapshot_explorer.jupyter.variables import escape

_PLAIN = re.compile(r"[\w./:@~^=,][\w./:@%+~^=,-]*")
"""A value that needs no quotes in a line."""
_ARGUMENTS_ALONE = Call(verb="")


class _UnspellableError(Exception):
    """A command has no words for an argument of a hint."""


def magic_line(hint: Hint, commands: Sequence[Command], *, command: Command | None = None) -> str:
    """Return a hint as a line of `%snapshot`, or arguments alone as options; in Python if no command has them.

    Args:
        command: The command that runs, whose options spell arguments alone; by default the first command that has them.
    """
    words = command_words(hint, commands, quote=quote_in_line, command=command)
    if words is None:
        return python_call(hint)
    return " ".join(words[1:] if not hint.verb else [f"%snapshot {words[0]}", *words[1:]])


def command_words(
    hint: Hint, commands: Sequence[Command], *, quote: Callable[[str], str | None], command: Command | None = None
) -> list[str] | None:
    """Return a hint as the name of a command and its quoted words; None if no command has words for it.

    Args:
        quote: Quotes a value as a word; None if no quotes fit it.
        command: The command that runs; see `magic_line`.
    """
    running = [command] if command is not None and not hint.verb else commands
    for item in running:
        calls = item.calls if hint.verb else (*item.calls, _ARGUMENTS_ALONE)
        for call in calls:
            if hint.verb in ("", call.verb):
                try:
                    return [item.name, *_Words(item, call, hint, quote).all()]
                except _UnspellableError:
                    continue
    return None


def quote_in_line(value: str) -> str | None:
    """Return a value as a word of a `%snapshot` line; None if no quotes fit it, or if it has invisible characters."""
    escaped = escape(value)
    if escaped is None or sanitize(value) != value:
        return None
    if _PLAIN.fullmatch(escaped) and value != "as":
        return escaped
    for mark in ("'", '"') if '"' in value else ('"', "'"):
        quoted = f"{mark}{escaped}{mark}"
        # In a line, a quote closes where a blank follows.
        if [token.text for token in tokenize(f"{quoted} -")] == [escaped, "-"]:
            return quoted
    return None


class _Words:
    """The words of a command for one hint."""

    def __init__(self, command: Command, call: Call, hint: Hint, quote: Callable[[str], str | None]) -> None:
        self._command = command
        self._call = call
        self._is_whole = bool(hint.verb)
        self._result = hint.result
        self._quote = quote
        self._values: dict[str, list[object]] = {}
        for name, value in hint.arguments.items():
            place = self._place(name)
            if place and (name not in call.defaults or call.defaults[name] != value):
                self._values.setdefault(place, []).append(value)

    def all(self) -> Iterator[str]:
        """Yield the words: the arguments in order, the flag that selects the call, and the options."""
        if self._is_whole:
            yield from self._arguments()
            if self._result and self._command.option(OUT.flags[-1]) is not None:
                yield f"{OUT.keyword} {self._result}"
            if self._call.flag:
                yield self._call.flag
        for option in self._command.options:
            if (values := self._values.pop(option.flags[-1], None)) is not None:
                yield from self._option(option, values[0])
        if self._values:
            raise _UnspellableError

    def _place(self, name: str) -> str:
        """Return the name of the argument, or the last flag of the option, of a parameter."""
        argument = next((item.name for item in self._command.arguments if item.name.lower() == name), None)
        place = self._call.names.get(name, argument or f"--{name.replace('_', '-')}")
        option = self._command.option(place)
        return place if option is None else option.flags[-1]

    def _arguments(self) -> Iterator[str]:
        for argument in self._command.arguments:
            values = self._values.pop(argument.name, None)
            if values is None and not argument.required:
                continue
            yield self._argument(argument, [...] if values is None else values)

    def _argument(self, argument: Argument, values: Sequence[object]) -> str:
        if any(_is_open(value) for value in values):
            return self._call.placeholders.get(argument.name, argument.name)
        texts = [text for value in values for text in _texts(value)]
        if not texts or (len(texts) > 1 and argument.value_type != "range"):
            raise _UnspellableError
        return self._quoted("..".join(texts))

    def _option(self, option: Option, value: object) -> Iterator[str]:
        flag = option.flags[-1]
        if option.metavar is None:
            if value is not (not flag.startswith("--no-")):
                raise _UnspellableError
            yield flag
        elif _is_open(value):
            yield f"{flag} {option.metavar}"
        elif option.is_variable or option.is_secret or (isinstance(value, Mapping) and not option.repeated):
            raise _UnspellableError
        else:
            texts = _texts(value)
            for text in texts if option.repeated else [",".join(texts)]:
                yield f"{flag} {self._quoted(text)}"

    def _quoted(self, text: str) -> str:
        word = self._quote(text)
        if word is None:
            raise _UnspellableError
        return word


def _is_open(value: object) -> bool:
    """Return whether a value is left to the user."""
    if isinstance(value, Mapping):
        return any(_is_open(item) for item in value.values())
    return value is ... or (isinstance(value, list | tuple) and any(_is_open(item) for item in value))


def _texts(value: object) -> list[str]:
    """Return a value as texts of the command line, before they are quoted.

    Raises:
        _UnspellableError: A line cannot have it.
    """
    match value:
        case Hint():
            return _texts(value.arguments)
        case Mapping():
            return [f"{_name(name)}={text}" for name, item in value.items() for text in _texts(item)]
        case list() | tuple():
            if not value:
                raise _UnspellableError
            return [",".join(map(_name, value))]
        case str() if value:
            return [value]
        case int() if not isinstance(value, bool):
            return [str(value)]
    raise _UnspellableError


def _name(value: object) -> str:
    """Return an item of a list with commas."""
    text = str(value)
    if not text.strip() or text != text.strip() or re.search("[,=\"']", text):
        raise _UnspellableError
    return text
