"""Tokenize a query: words, quoted names, strings and comments.

The rules are those of DuckDB and the standard: `''` is a quote within a string, a backslash is an ordinary character
(except in E'...'), `"..."` and backquotes enclose names, `$$...$$` encloses a string, `/* */` can be nested.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from snapshot_explorer.errors import InvalidArgumentError

Kind = Literal["space", "comment", "word", "name", "text", "number", "sign"]

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>--[^\r\n]*)
    |(?P<text>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)
    |(?P<name>"(?:[^"]|"")*" | `(?:[^`]|``)*`)
    |(?P<number>(?:\d[\d_]*(?:\.[\d_]*)? | \.\d[\d_]*)(?:[eE][+-]?\d+)?\w*)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_OPENERS = {"'": "string", '"': "quoted name", "`": "quoted name"}


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a query's text. The concatenated tokens of a query are its text."""

    kind: Kind
    text: str
    start: int
    """Where it starts, in characters."""

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """Return an unquoted word in upper case; empty for other tokens."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """Return the unquoted name or string; for other tokens the text."""
        if self.kind == "name":
            return self.text[1:-1].replace(self.text[0] * 2, self.text[0])
        if self.kind != "text":
            return self.text
        if self.text[0] == "$":
            tag = self.text.index("$", 1) + 1
            return self.text[tag:-tag]
        return self.text[1:-1].replace("''", "'")


def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a query."""
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            token = Token("comment", text[at : _end_of_comment(text, at)], at)
        else:
            token = _token(text, at)
        yield token
        at = token.end


def _token(text: str, at: int) -> Token:
    match = _TOKEN.match(text, at)
    if match is None:  # every character is at least a sign
        raise InvalidArgumentError(f"The query cannot be read{place(text, at)}.")
    group: Kind = next(name for name in ("space", "comment", "text", "name", "number", "word", "sign") if match[name])
    if group == "sign" and match.group() in _OPENERS:
        what = _OPENERS[match.group()]
        raise InvalidArgumentError(
            f"A {what} is opened{place(text, at)}, but never closed. Close it with {match.group()}; "
            f"within it, write this sign twice."
        )
    return Token(group, match.group(), at)


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if mark.group() == "/*" else -1
        if not depth:
            return start + mark.end()
    raise InvalidArgumentError(f"A comment is opened{place(text, start)}, but never closed. Close it with */.")


def place(text: str, at: int) -> str:
    """Return a position in the text as a phrase: line and column."""
    before = text[:at]
    return f" at line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"


def near(text: str, at: int | None) -> str:
    """Return a position in the text as a phrase, with the word at it; empty if the position is unknown."""
    if at is None or not 0 <= at <= len(text):
        return ""
    word = re.match(r"[\w$]+|\S", text[at:])
    return place(text, at) + (f" ({word.group()})" if word else "")
