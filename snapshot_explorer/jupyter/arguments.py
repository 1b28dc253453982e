"""Parse the words of a line into the arguments of a command, or raise one line that names what does not fit.

argparse does not fit: it refuses values that begin with a dash (`--where "-x > 3"`), cannot tell a quoted word
from a flag, has no did-you-mean, and its messages do not say what to type instead.
"""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from IPython.core.error import UsageError

from snapshot_explorer.jupyter.command import Arguments, Command, Option
from snapshot_explorer.jupyter.tokens import Token

_OF_TABLE = re.compile(r"([A-Za-z_]\w*)@(.+)", re.DOTALL)


def parse(
    command: Command, words: Sequence[Token], *, expand: Callable[[str], str], is_table: Callable[[str], bool]
) -> Arguments:
    """Return the command's arguments and options; options may come before, between and after arguments.

    Args:
        command: The command, whose arguments and options are accepted.
        words: The words behind the command's own.
        expand: Puts the user's variables into a value. What it returns is never taken for a flag.
        is_table: Whether an open table has that name: it may then be the first argument.

    Raises:
        UsageError: A flag is unknown, a value is missing, or there are too many arguments or too few.
    """
    return _Parser(command, words, expand, is_table).parse()


class _Parser:
    def __init__(
        self,
        command: Command,
        words: Sequence[Token],
        expand: Callable[[str], str],
        is_table: Callable[[str], bool],
    ) -> None:
        self._command = command
        self._words = list(words)
        self._expand = expand
        self._is_table = is_table
        self._values: dict[str, str] = {}
        self._repeated: dict[str, list[str]] = {}
        self._positionals: list[str] = []

    def parse(self) -> Arguments:
        while self._words:
            self._consume(self._words.pop(0))
        if "help" not in self._values:
            self._extract_table()
            self._assign_positionals()
        return Arguments(values=self._values, repeated={name: tuple(values) for name, values in self._repeated.items()})

    def _consume(self, word: Token) -> None:
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

    def _consume_flag(self, word: Token) -> None:
        flag, equals, value = word.text.partition("=")
        glued = self._command.option(flag[:2])
        if glued and glued.metavar and self._command.option(flag) is None and not flag.startswith("--"):
            # -n20, as git accepts it.
            self._set(glued, Token(word.text[2:]))
            return
        option = self._find_option(flag)
        if option.metavar is None and equals:
            raise UsageError(f"{flag} takes no value. Leave out what follows the equals sign.")
        if option.metavar is None:
            self._values[option.name] = ""
        else:
            self._set(option, Token(value) if equals else self._next_value(option, flag))

    def _find_option(self, flag: str) -> Option:
        option = self._command.option(flag)
        if option is not None:
            return option
        flags = {text.lstrip("-"): text for known in self._command.all_options for text in known.flags}
        # Without the dashes, which would make any two alike.
        near = get_close_matches(flag.lstrip("-"), flags, 1)
        hint = f"Did you mean {flags[near[0]]}?" if near else f"Options: {', '.join(flags.values())}."
        raise UsageError(f"%snapshot {self._command.name} has no option {flag}. {hint}")

    def _option_of_keyword(self, text: str) -> Option | None:
        """Return the option whose keyword the word is; only after a first argument."""
        if not self._positionals:
            return None
        return next((option for option in self._command.options if option.keyword == text), None)

    def _next_value(self, option: Option, flag: str) -> Token:
        following = self._words[0] if self._words else None
        is_flag = following and not following.quote and self._command.option(following.text.partition("=")[0])
        if following is None or is_flag:
            raise UsageError(f"{flag} needs a value: {flag} {option.metavar}.")
        return self._words.pop(0)

    def _set(self, option: Option, word: Token) -> None:
        value = _variable(option, word.text) if option.is_secret else self._expand(word.text)
        if option.repeated:
            self._repeated.setdefault(option.name, []).append(value)
        elif option.name in self._values:
            raise UsageError(f"{option.flags[-1]} is repeated. Write it once.")
        else:
            self._values[option.name] = value

    def _extract_table(self) -> None:
        """Remove the table from a first argument `orders`, and out of refs such as `orders@17`."""
        if not self._command.accepts_table:
            return
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

    def _without_table(self, ref: str) -> str:
        found = _OF_TABLE.fullmatch(ref)
        if found is None:
            return ref
        self._set_table(found[1])
        return found[2]

    def _set_table(self, name: str) -> None:
        given = self._values.setdefault("table", name)
        if given != name:
            raise UsageError(f"Two tables are named, {given} and {name}. A command acts on one.")

    def _assign_positionals(self) -> None:
        """Assign the values without flags to arguments."""
        arguments = self._command.arguments
        for argument, value in zip(arguments, self._positionals, strict=False):
            self._values[argument.name.lower()] = value
        if len(self._positionals) > len(arguments):
            raise UsageError(self._too_many(self._positionals[len(arguments)]))
        missing = next((argument for argument in arguments[len(self._positionals) :] if argument.required), None)
        if missing:
            raise UsageError(
                f"%snapshot {self._command.name} needs {missing.name}, {missing.meaning}. "
                f"Example: {self._command.examples[0]}"
            )

    def _too_many(self, value: str) -> str:
        arguments = self._command.arguments
        if self._command.accepts_table and not arguments and "table" not in self._values:
            return (
                f"%snapshot {self._command.name} takes no argument but the name of an open table, and {value!r} is "
                "none. %snapshot tables lists them."
            )
        takes = f"{arguments[0].name} only" if arguments else "no argument"
        # A command that accepts secrets may have received one in the wrong place.
        extra = "there" if any(option.is_secret for option in self._command.options) else repr(value)
        return (
            f"%snapshot {self._command.name} takes {takes}; {extra} is one too many. Put a value with blanks in quotes."
        )


def _looks_like_a_flag(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and (text[1].isalpha() or text[1] == "-")


def _variable(option: Option, text: str) -> str:
    """Return the name of a variable, also where it was written as `{name}` or `$name`; the value is not looked at."""
    name = text.strip("{}$ ")
    if not name.isidentifier():
        raise UsageError(
            f"{option.flags[-1]} takes the name of a variable that holds a dict, not the dict itself: a line stays in "
            f"the notebook and in the history, and secrets must not. Write the dict in a variable, then "
            f"{option.flags[-1]} {option.metavar}."
        )
    return name
