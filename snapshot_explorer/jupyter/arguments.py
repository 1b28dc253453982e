"""Parse the words of a line into the arguments of a command, or raise one line that names the invalid part.

argparse does not fit: it refuses values that begin with a dash (`--where "-x > 3"`), cannot distinguish a quoted word
from a flag, has no did-you-mean, and its messages do not suggest what to type instead.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from types import MappingProxyType

from snapshot_explorer.analysis.given import KNOWN_ENDINGS, is_rows
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.refs import parse_ref
from snapshot_explorer.core.refs.records import format_steps, split_steps
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.jupyter.command import COMMON_OPTIONS, Arguments, Command, Option
from snapshot_explorer.jupyter.command_line import LineToken
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.jupyter.variables import value_of_name

_OF_TABLE = re.compile(r"([A-Za-z_]\w*)@(.+)", re.DOTALL)


def parse(
    command: Command,
    words: Sequence[LineToken],
    *,
    expand: Callable[[str], str],
    is_table: Callable[[str], bool],
    variables: Mapping[str, object] = MappingProxyType({}),
) -> Arguments:
    """Return the command's arguments and options; options may come before, between and after arguments.

    Args:
        command: The command, whose arguments and options are accepted.
        expand: Replaces the user's variables in a value. The result is never parsed as a flag.
        is_table: Whether an open table has that name: it may then be the first argument.
        variables: The user's variables. The bare name of a variable may be used where a ref, a number or a time is
            expected.
    """
    return _Parser(command, words, expand, is_table, variables).parse()


class _Parser:
    def __init__(
        self,
        command: Command,
        words: Sequence[LineToken],
        expand: Callable[[str], str],
        is_table: Callable[[str], bool],
        variables: Mapping[str, object],
    ) -> None:
        self._command = command
        self._line = tuple(words)
        self._words = list(words)
        self._expand = expand
        self._is_table = is_table
        self._variables = variables
        self._values: dict[str, str] = {}
        self._repeated: dict[str, list[str]] = {}
        self._positionals: list[str] = []

    def parse(self) -> Arguments:
        while self._words:
            self._consume(self._words.pop(0))
        if "help" not in self._values:
            self._extract_table()
            self._positionals = self._range_or_limit(self._positionals)
            self._assign_positionals()
            self._replace_names()
        return Arguments(values=self._values, repeated={name: tuple(values) for name, values in self._repeated.items()})

    def _consume(self, word: LineToken) -> None:
        if word.flag:
            self._set(self._find_option(word.flag), word)
        elif word.quote or not _looks_like_a_flag(word.text):
            option = None if word.quote else self._option_of_keyword(word.text)
            if option is None:
                self._positionals.append(self._expand(word.text))
            else:
                self._set(option, self._next_value(option, word.text))
        else:
            self._consume_flag(word)

    def _consume_flag(self, word: LineToken) -> None:
        flag, equals, value = word.text.partition("=")
        glued = self._command.option(flag[:2])
        if glued and glued.metavar and self._command.option(flag) is None and not flag.startswith("--"):
            # -n20, as git accepts it.
            self._set(glued, LineToken(word.text[2:]))
            return
        option = self._find_option(flag)
        if option.metavar is None and equals:
            raise UsageError(f"{flag} takes no value. Leave out what follows the equals sign.")
        if option.metavar is None:
            self._values[option.name] = ""
        else:
            self._set(option, LineToken(value) if equals else self._next_value(option, flag))

    def _find_option(self, flag: str) -> Option:
        option = self._command.option(flag)
        if option is not None:
            return option
        flags = {text.lstrip("-"): text for known in self._command.all_options for text in known.flags}
        # Without the dashes, which make any two flags similar.
        near = get_close_matches(flag.lstrip("-"), flags, 1)
        hint = f"Did you mean {flags[near[0]]}?" if near else f"Options: {', '.join(flags.values())}."
        raise UsageError(f"{self._command.prefix} has no option {flag}. {hint}")

    def _option_of_keyword(self, text: str) -> Option | None:
        """Return the option whose keyword the word is; one of the command's own only after a first argument."""
        option = next((option for option in self._command.all_options if option.keyword == text), None)
        return option if self._positionals or (option in COMMON_OPTIONS and self._words) else None

    def _next_value(self, option: Option, flag: str) -> LineToken:
        following = self._words[0] if self._words else None
        is_flag = following and not following.quote and self._command.option(following.text.partition("=")[0])
        if following is None or is_flag:
            raise UsageError(f"{flag} needs a value: {flag} {option.metavar}.")
        return self._words.pop(0)

    def _set(self, option: Option, word: LineToken) -> None:
        value = _variable(option, word.text) if option.is_secret else self._expand(word.text)
        if option.repeated:
            self._repeated.setdefault(option.name, []).append(value)
        elif option.name in self._values:
            raise UsageError(f"{option.flags[-1]} is repeated. Write it once.")
        else:
            self._values[option.name] = value

    def _extract_table(self) -> None:
        """Remove the table from a first argument `orders`, and out of refs such as `orders@17`."""
        if self._command.accepts_two_tables:
            self._positionals = self._without_rows(self._positionals)
        if not self._command.accepts_table:
            return
        if self._command.accepts_two_tables:
            self._positionals = self._of_two_tables(self._positionals)
        if self._positionals and self._is_table(self._positionals[0]):
            self._set_table(self._positionals.pop(0))
        about_versions = [argument.value_type in ("ref", "range") for argument in self._command.arguments]
        for position, (value, holds_refs) in enumerate(zip(self._positionals, about_versions, strict=False)):
            if holds_refs:
                sides = value.split("..", 1)
                self._positionals[position] = "..".join(self._without_table(side) for side in sides)
        for name in [option.name for option in self._command.options if option.value_type == "range"]:
            if name in self._values:
                sides = self._values[name].split("..", 1)
                self._values[name] = "..".join(self._without_table(side) for side in sides)

    def _without_rows(self, values: list[str]) -> list[str]:
        """Return the values without a last one that names a DataFrame or files, which is set as `given`."""
        if not values or "twins" in self._values or not self._names_rows(values[-1]):
            return values
        self._values["given"] = values[-1]
        return values[:-1]

    def _names_rows(self, text: str) -> bool:
        value = self._variables.get(text, text)
        if not isinstance(value, str | PathLike):
            return is_rows(value)
        if self._is_table(text) or _OF_TABLE.fullmatch(text):
            return False
        path = str(value)
        if "/" not in path and not path.lower().endswith(KNOWN_ENDINGS):
            return False
        try:
            parse_ref(text)
        except InvalidArgumentError:
            return True
        return False

    def _of_two_tables(self, values: list[str]) -> list[str]:
        """Return the refs in `orders@7 copy@3` as a range, and set both tables; other values as they are.

        A table without a ref means its latest version.
        """
        sides = values[:2] if len(values) > 1 else [side for value in values for side in value.split("..", 1)]
        matches = [_OF_TABLE.fullmatch(f"{side}@latest" if self._is_table(side) else side) for side in sides]
        named = [(side[1], side[2]) for side in matches if side is not None]
        if len(named) != 2 or named[0][0] == named[1][0]:  # noqa: PLR2004 - two sides
            return values
        self._set_table(named[0][0])
        self._values["other"] = named[1][0]
        return ["..".join(ref for _, ref in named), *values[2:]]

    def _range_or_limit(self, values: list[str]) -> list[str]:
        """Return the arguments with `3 4` as the range `3..4`; a single `5` or `-5` of a log is its limit.

        The single number is a version if the command accepts a second one, as `diff` does.
        """
        arguments, limit = self._command.arguments, self._command.option("--limit")
        if not arguments or arguments[0].value_type != "range" or any(".." in value for value in values):
            return values
        if len(values) == 2:  # noqa: PLR2004 - two sides
            return ["..".join(values)]
        number = (value_of_name(values[0], self._variables) or values[0]) if len(values) == 1 else ""
        is_taken = limit is None or limit.name in self._values or len(arguments) > 1
        if limit is None or is_taken or not re.fullmatch(r"-?[0-9]{1,9}", number):
            return values
        self._values[limit.name] = number.removeprefix("-")
        return []

    def _replace_names(self) -> None:
        """Replace the bare names of variables by their values, where a ref, a number or a time is expected."""
        types = {item.name.lower(): item.value_type for item in self._command.arguments}
        types |= {item.name: item.value_type for item in self._command.all_options}
        for name, text in self._values.items():
            match types.get(name):
                case "ref" | "time":
                    self._values[name] = self._ref(text)
                case "range":
                    self._values[name] = "..".join(self._ref(side) for side in text.split("..", 1))
                case "number":
                    self._values[name] = value_of_name(text, self._variables) or text

    def _ref(self, text: str) -> str:
        """Return a ref with the bare name of a variable in it replaced by its value."""
        base, back = split_steps(text.strip())
        value = value_of_name(base.removeprefix("@"), self._variables)
        if value is None:
            return text
        is_time = base.startswith("@") and not value.startswith("@")
        named = f"{'@' * is_time}{value}{format_steps(back)}"
        try:
            ref = parse_ref(text)
        except InvalidArgumentError:
            return named
        if getattr(ref, "written", "") and value != base:
            raise UsageError(
                f"{base} is ambiguous: it reads as {ref}, and is a variable of yours with the value {sanitize(value)}. "
                f"Write {ref} or {{{base}}}."
            )
        return text

    def _without_table(self, ref: str) -> str:
        match = _OF_TABLE.fullmatch(ref)
        if match is None:
            return ref
        self._set_table(match[1])
        return match[2]

    def _set_table(self, name: str) -> None:
        previous = self._values.setdefault("table", name)
        if previous != name:
            raise UsageError(f"Two tables are named, {previous} and {name}. A command acts on one.")

    def _assign_positionals(self) -> None:
        """Assign the values without flags to arguments."""
        arguments = self._command.arguments
        for argument, value in zip(arguments, self._positionals, strict=False):
            self._values[argument.name.lower()] = value
        if len(self._positionals) > len(arguments):
            raise UsageError(self._unquoted_condition() or self._too_many(self._positionals[len(arguments)]))
        missing = next((argument for argument in arguments[len(self._positionals) :] if argument.required), None)
        if missing:
            raise UsageError(
                f"{self._command.prefix} needs {missing.name}, {missing.meaning}. Example: {self._command.examples[0]}"
            )

    def _unquoted_condition(self) -> str:
        """Return a message if the line has `--where` and a condition with blanks but no quotes; otherwise nothing."""
        texts = [word.text for word in self._line]
        if "--where" not in texts:
            return ""
        begin = texts.index("--where") + 1
        rest = self._line[begin:]
        size = next((at for at, word in enumerate(rest) if not word.quote and _looks_like_a_flag(word.text)), len(rest))
        if size < 2 or rest[0].quote:  # noqa: PLR2004 - one word needs no quotes
            return ""
        condition = " ".join(f"{word.quote}{word.text}{word.quote}" for word in rest[:size])
        quoted = f"'{condition}'" if '"' in condition else f'"{condition}"'
        words = " ".join([*texts[:begin], quoted, *texts[begin + size :]])
        return f"A condition with blanks needs quotes: {self._command.prefix} {words}"

    def _too_many(self, value: str) -> str:
        arguments = self._command.arguments
        if self._command.accepts_table and not arguments and "table" not in self._values:
            return Message(
                f"{self._command.prefix} takes no argument but the name of an open table, and {value!r} is none. ",
                Hint("open_table"),
                " lists them.",
            )
        takes = f"{arguments[0].name} only" if arguments else "no argument"
        # A command that accepts secrets may have received one in the wrong place.
        extra = "there" if any(option.is_secret for option in self._command.options) else repr(value)
        return (
            f"{self._command.prefix} takes {takes}; {extra} is one too many. "
            "Put a value with blanks in quotes, in single ones if it contains double ones."
        )


def _looks_like_a_flag(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and (text[1].isalpha() or text[1] == "-")


def _variable(option: Option, text: str) -> str:
    """Return the name of a variable, even if it was written as `{name}` or `$name`; the value is not read."""
    name = text.strip("{}$ ")
    if not name.isidentifier():
        raise UsageError(
            f"{option.flags[-1]} takes the name of a variable that holds a dict, not the dict itself: a line stays in "
            f"the notebook and in the history, and secrets must not. Write the dict in a variable, then "
            f"{option.flags[-1]} {option.metavar}."
        )
    return name
