"""A query's text, cut into tokens: what is a word, a quoted name, a string or a comment.

The rules are DuckDB's and the standard's: `''` is a quote within a string, a backslash is a letter (but in E'...'),
`"..."` and backquotes hold names, `$$...$$` holds a string, `/* */` may be nested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from snapshot_explorer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """A part of a query's text; the tokens of a query, joined, are its text."""

    kind: Kind
    """What it is."""
    text: str
    """How it is written."""
    start: int
    """Where it starts, in characters."""

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """Return a bare word in capitals; empty for all else."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """Return the name or the string that it means, without quotes; of others the text."""
        if self.kind == "name":
            return self.text[1:-1].replace(self.text[0] * 2, self.text[0])
        if self.kind != "text":
            return self.text
        if self.text[0] == "$":
            tag = self.text.index("$", 1) + 1
            return self.text[tag:-tag]
        return self.text[1:-1].replace("''", "'")


def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a query.

    Raises:
        InvalidArgumentError: A string, a quoted name or a comment is never closed.
    """
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
    found = _TOKEN.match(text, at)
    if found is None:  # every character is at least a sign
        raise InvalidArgumentError(f"The query cannot be read{place(text, at)}.")
    kind: Kind = next(name for name in ("space", "comment", "text", "name", "number", "word", "sign") if found[name])
    if kind == "sign" and found.group() in _OPENERS:
        what = _OPENERS[found.group()]
        raise InvalidArgumentError(
            f"A {what} is opened{place(text, at)}, but never closed. Close it with {found.group()}; "
            f"the sign itself is written twice within it."
        )
    return Token(kind, found.group(), at)


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if mark.group() == "/*" else -1
        if not depth:
            return start + mark.end()
    raise InvalidArgumentError(f"A comment is opened{place(text, start)}, but never closed. Close it with */.")


def place(text: str, at: int) -> str:
    """Return where in the text a position is, as the part of a sentence that follows a word."""
    before = text[:at]
    return f" at line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"


def near(text: str, at: int | None) -> str:
    """Return where in the text a position is, with the word that stands there; empty if the position is not known."""
    if at is None or not 0 <= at <= len(text):
        return ""
    word = re.match(r"[\w$]+|\S", text[at:])
    return place(text, at) + (f" ({word.group()})" if word else "")
