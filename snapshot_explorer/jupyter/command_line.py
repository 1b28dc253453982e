"""A line of `%snapshot`, split into words, in the form of a command: also `5`, `history`, `show tables`, `select ...`.

Quotes group the words that they enclose, and nothing else is special: a backslash is a letter (Windows
paths), and so is a lone apostrophe: every line can be split.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs import parse_range, parse_ref
from snapshot_explorer.jupyter.command import REMOVED, Command

ALIASES = MappingProxyType(
    {
        "history": ("log",),
        "versions": ("log",),
        "describe": ("show", "--schema"),
        "watch": ("explore", "--follow"),
        "diff3": ("diff", "--three-way"),
        "du": ("usage",),
        "expire": ("retention",),
        "vacuum": ("retention",),
    }
)
"""Other names of commands, and the words that each one means."""
_QUERY_STARTS = ("select", "with", "from", "values", "explain")
"""The first words of a query that needs no `sql` before it."""
_SHOW_TABLES = re.compile(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
_FLAG_VALUE = re.compile(r"--?[A-Za-z][\w-]*=(?=[\"'])")


@dataclass(frozen=True, slots=True)
class LineToken:
    """A word of a line."""

    text: str
    """Its text, without the quotes around it."""
    quote: str = ""
    """The quote around it, or around the value of `--flag=`; empty without one."""
    flag: str = ""
    """The flag of `--flag="quoted value"`; empty for other words."""
    start: int = field(default=0, compare=False)


def tokenize(line: str) -> tuple[LineToken, ...]:
    """Return the words of a line.

    Blanks separate words, but not within quotes, and not within `{...}`, which may contain an expression. A quote
    opens at the start of a word or of the value of `--flag=`, and closes where a blank or the end follows, so
    that the SQL in `'name = 'x''` keeps its own quotes. A quote that is never closed is a letter.
    """
    words = []
    at = _after_blanks(line, 0)
    while at < len(line):
        word, at = _word(line, at)
        words.append(word)
        at = _after_blanks(line, at)
    return tuple(words)


def without_semicolon(line: str) -> tuple[str, bool]:
    """Return the line without the semicolon that ends it, and whether there was one."""
    stripped = line.rstrip()
    return (stripped[:-1], True) if stripped.endswith(";") else (line, False)


def _after_blanks(line: str, at: int) -> int:
    while at < len(line) and line[at].isspace():
        at += 1
    return at


def _word(line: str, at: int) -> tuple[LineToken, int]:
    flag = _FLAG_VALUE.match(line, at)
    start = flag.end() if flag else at
    if line[start] in "\"'":
        closing = _closing_quote(line, start)
        if closing is not None:
            word = LineToken(line[start + 1 : closing], quote=line[start], start=at)
            return replace(word, flag=flag.group()[:-1]) if flag else word, closing + 1
    end = _end_of_bare_word(line, at)
    return LineToken(line[at:end], start=at), end


def _closing_quote(line: str, opening: int, also_before: str = "") -> int | None:
    """Return the position of the quote that closes the one at a position: the first followed by a blank or the end."""
    at = line.find(line[opening], opening + 1)
    while at != -1 and at + 1 < len(line) and not (line[at + 1].isspace() or line[at + 1] in also_before):
        at = line.find(line[opening], at + 1)
    return None if at == -1 else at


def _end_of_bare_word(line: str, start: int) -> int:
    at = start
    while at < len(line) and not line[at].isspace():
        at = _after_group(line, at, start)
    return at


def _after_group(line: str, at: int, start: int) -> int:
    """Return the position behind a letter, or behind the group in braces or quotes that it opens.

    Quotes inside a word group only in lists and pairs, as in `"order id",amount` and `dt="2026 01"`; they stay
    in the word.
    """
    closing: int | None = None
    if line[at] == "{":
        closing = line.find("}", at)
    elif line[at] in "\"'" and (at == start or line[at - 1] in "=,"):
        closing = _closing_quote(line, at, also_before=",")
    return (at if closing is None or closing == -1 else closing) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A line in the form of a command."""

    words: tuple[LineToken, ...]
    """The name of the command, if the line has one, and the words behind it."""
    body: str | None
    """The cell below the line, with the part of a query that is in the line."""
    has_query: bool = False
    """Whether the line contains a query without quotes."""


def as_command(
    line: str, body: str | None, *, commands: Sequence[Command], is_table: Callable[[str], bool]
) -> CommandLine:
    """Return a line in the form of a command.

    Args:
        line: The line behind `%snapshot`.
        body: The cell below it.
        commands: All commands.
        is_table: Whether an open table has that name.
    """
    words = tokenize(line)
    has_body = body is not None and bool(body.strip())
    if has_body and (not words or words[0].text.startswith("--") or words[0].text in ("-o", "-y")):
        words = (LineToken("sql"), *words)
    if words and not words[0].quote:
        words = _with_command(words, [command.name for command in commands], is_table)
    command = next((command for command in commands if words and command.name == words[0].text), None)
    if command is not None and command.begins_with_condition:
        return CommandLine(words=_with_condition(line, words, body or "", command, is_table), body=None)
    if command is None or command.name != "sql":
        return CommandLine(words=words, body=None if command is not None and command.name == "help" else body)
    if body is not None and _SHOW_TABLES.fullmatch(body) and (len(words) == 1 or words[1].text in ("-o", "--out")):
        return CommandLine(words=(LineToken("open"), *words[1:]), body=None)
    return _with_query(line, words, body, command)


def _with_command(
    words: tuple[LineToken, ...], names: Sequence[str], is_table: Callable[[str], bool]
) -> tuple[LineToken, ...]:
    """Return the words of a short form, such as `5` or `3..4`, with its command first; others as they are."""
    first, *others = words
    text = first.text
    if text.endswith("?") and not others:
        return (LineToken("help"), *([LineToken(text.rstrip("?"))] if text.rstrip("?") else []))
    if text == "show" and others and (noun := _noun_behind_show(others, names)) and not is_table(others[0].text):
        return _with_command((noun, *others[1:]), names, is_table)
    if text in names or is_table(text):
        return words
    if text in ALIASES:
        return (*map(LineToken, ALIASES[text]), *others)
    if text.lower() in _QUERY_STARTS:
        return (LineToken("sql"), *words)
    if ".." in text:
        return (LineToken("diff"), *words) if _parses(parse_range, text) else words
    table, at, ref = text.partition("@")
    if not _parses(parse_ref, ref if at and is_table(table) else text):
        return words
    two = len(others) == 1 and not others[0].text.startswith("-") and _parses(parse_ref, others[0].text)
    return (LineToken("diff" if two else "show"), *words)


def _noun_behind_show(words: Sequence[LineToken], names: Sequence[str]) -> LineToken | None:
    """Return the word that replaces `show history` or `show tables`; None where `show` itself is the command."""
    noun = words[0]
    if noun.text == "tables" and (len(words) == 1 or words[1].text.startswith("-")):
        return LineToken("open")
    is_command = noun.text in names or noun.text in ALIASES or noun.text in REMOVED
    return noun if is_command and not noun.quote else None


def _with_condition(
    line: str, words: tuple[LineToken, ...], body: str, command: Command, is_table: Callable[[str], bool]
) -> tuple[LineToken, ...]:
    """Return the words of a command with its condition as one word: `amount < 0`, `"order id" = 3`, or the cell."""
    begin = 2 if len(words) > 1 and is_table(words[1].text) else 1
    while begin < len(words) and not words[begin].quote and (option := command.option(words[begin].text)):
        begin += 2 if option.metavar else 1
    end = next((at for at in range(begin, len(words)) if _is_option(words[at])), len(words))
    if end - begin > 2 and words[end - 2].text == "as" and words[end - 1].text.isidentifier():  # noqa: PLR2004 - as NAME
        end -= 2
    if end - begin < 2 and not body.strip():  # noqa: PLR2004 - one word is a condition
        return words
    first, after = (words[at].start if at < len(words) else len(line) for at in (begin, end))
    text = f"{line[first:after]}\n{body}".strip()
    return (*words[:begin], LineToken(text, quote='"'), *words[end:])


def _is_option(word: LineToken) -> bool:
    """Return whether a word is an option: not a negative number or a part of an expression."""
    return not word.quote and (word.text in ("-t", "-o", "-h") or bool(re.match("--[a-z]", word.text)))


def _parses(parse: Callable[[object], object], text: str) -> bool:
    try:
        parse(text)
    except InvalidArgumentError:
        return False
    return True


def _with_query(line: str, words: tuple[LineToken, ...], body: str | None, command: Command) -> CommandLine:
    """Return the words of `sql` with a query that has no quotes as one word, or in the body where there is one."""
    name, *others = words
    at = 0
    while at < len(others) and others[at].text.startswith("-") and not others[at].quote:
        option = command.option(others[at].text)
        at += 2 if option and option.metavar else 1
    before, query = others[:at], others[at:]
    after: list[LineToken] = []
    while query and (count := _option_at_the_end(query, command)):
        after = [*query[-count:], *after]
        query = query[:-count]
    is_one_word = len(query) == 1 and (query[0].quote or query[0].text.startswith("{"))
    asks_for_help = len(others) <= 2 and others[-1].text == "-h" if others else False  # noqa: PLR2004 - no query is a word
    if not query or is_one_word or asks_for_help:
        return CommandLine(words=words, body=body)
    text = line[query[0].start : after[0].start if after else len(line)].strip()
    if body is None and _SHOW_TABLES.fullmatch(text):
        return CommandLine(words=(LineToken("open"), *before, *after), body=None, has_query=True)
    if body is not None:
        return CommandLine(words=(name, *before, *after), body=f"{text}\n{body}", has_query=True)
    return CommandLine(words=(name, *before, LineToken(text, quote='"'), *after), body=None, has_query=True)


def _option_at_the_end(words: Sequence[LineToken], command: Command) -> int:
    """Return how many words at the end of a query are an option; 0 if none are.

    Short flags do not count. They could be a part of the query: `a -y` is an expression.
    """
    last = words[-1]
    if last.quote:
        return 0
    bare = [option.flags[-1] for option in command.all_options if not option.metavar]
    with_value = [option.flags[-1] for option in command.all_options if option.metavar]
    if last.text in bare or last.text.startswith(tuple(f"{flag}=" for flag in with_value)):
        return 1
    return 2 if len(words) > 1 and words[-2].text in with_value and not words[-2].quote else 0
