"""Tokenize a query: words, quoted names, strings and comments.

The rules follow DuckDB and the standard: `''` is a quote within a string, a backslash is an ordinary character
(except in E'...'), `"..."` and backquotes enclose names, `$$...$$` encloses a string, `/* */` can be nested.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs import Earliest, Ref, Tag, parse_ref

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
    """The start of the token, in characters."""

    @property
    def end(self) -> int:
        """The end of the token."""
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
        raise InvalidArgumentError(f"The query cannot be read{position_of(text, at)}.")
    group: Kind = next(name for name in ("space", "comment", "text", "name", "number", "word", "sign") if match[name])
    if group == "sign" and match.group() in _OPENERS:
        opened = _OPENERS[match.group()]
        raise InvalidArgumentError(
            f"A {opened} is opened{position_of(text, at)}, but never closed. Close it with {match.group()}; "
            f"within it, write this sign twice."
        )
    return Token(group, match.group(), at)


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if mark.group() == "/*" else -1
        if not depth:
            return start + mark.end()
    raise InvalidArgumentError(f"A comment is opened{position_of(text, start)}, but never closed. Close it with */.")


def position_of(text: str, at: int) -> str:
    """Return a position in the text as a phrase: line and column."""
    before = text[:at]
    return f" at line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"


def near(text: str, at: int | None) -> str:
    """Return a position in the text as a phrase, with the word at it; empty if the position is unknown."""
    if at is None or not 0 <= at <= len(text):
        return ""
    word = re.match(r"[\w$]+|\S", text[at:])
    return position_of(text, at) + (f" ({word.group()})" if word else "")


_BY_VERSION = ("VERSION", "SYSTEM_VERSION")
_BY_TIME = ("TIMESTAMP", "SYSTEM_TIME")
_AT = re.compile(r"[\w:~^@]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A time-travel clause."""

    ref: Ref
    """The requested version."""
    size: int
    """The number of its tokens, without spaces and comments."""
    number_as_text: str | None = None
    """The number if it is in quotes, and so may also be the name of a tag."""


def is_clause(following: Sequence[Token]) -> bool:
    """Return whether the tokens begin with a clause such as `[for] version as of`."""
    words = [token.keyword for token in following[:4]]
    words = words[1:] if words[:1] == ["FOR"] else words[:3]
    return words[:1] != [] and words[0] in (*_BY_VERSION, *_BY_TIME) and words[1:3] == ["AS", "OF"]


def parse_clause(query: str, following: Sequence[Token], now: datetime) -> Clause | None:
    """Return the clause at the start of the tokens after a table name, or None."""
    if not is_clause(following):
        return None
    skipped = 4 if following[0].keyword == "FOR" else 3
    by_time = following[skipped - 3].keyword in _BY_TIME
    value = following[skipped] if len(following) > skipped else None
    if by_time and value and value.keyword in ("TIMESTAMP", "DATE") and len(following) > skipped + 1:
        skipped, value = skipped + 1, following[skipped + 1]
    is_plain = value is not None and (value.kind == "number" or (value.kind == "text" and value.text[0] in "'$"))
    if value is None or not is_plain:
        at = value.start if value else len(query)
        wants = "a time in quotes, such as '2026-11-01T12:00:00Z' or '2h'" if by_time else "17, 'latest~2' or 'tag:v1'"
        word = following[skipped - 3 if following[skipped - 1].keyword == "OF" else skipped - 4].text
        raise InvalidArgumentError(f"{word} AS OF needs a version{position_of(query, at)}. Write {wants} there.")
    if by_time:
        return Clause(ref=_time(value, now), size=skipped + 1)
    quoted_number = value.value.strip() if value.kind == "text" and value.value.strip().isdecimal() else None
    return Clause(ref=_version(value, now), size=skipped + 1, number_as_text=quoted_number)


def period_words(following: Sequence[Token]) -> tuple[bool, str] | None:
    """Return whether tokens such as `for system_time from` are about times, and their last word; None for others.

    The last word is empty if none of the three words of a period follows.
    """
    words = [token.keyword for token in following[:3]]
    if words[:1] != ["FOR"] or words[1:2] == [] or words[1] not in (*_BY_TIME, *_BY_VERSION):
        return None
    return words[1] in _BY_TIME, next((word for word in words[2:] if word in ("ALL", "FROM", "BETWEEN")), "")


def parse_point(query: str, following: Sequence[Token], at: int, *, by_time: bool, now: datetime) -> tuple[Ref, int]:
    """Return the ref at a place among tokens, and the place behind it.

    Args:
        by_time: Whether it is a time; text that is none may be a ref.
    """
    if by_time and at + 1 < len(following) and following[at].keyword in ("TIMESTAMP", "DATE"):
        at += 1
    value = following[at] if at < len(following) else None
    if value is None or value.kind not in ("number", "text"):
        where = position_of(query, value.start if value else len(query))
        raise InvalidArgumentError(f"A version or a time is missing{where}. Write 17, 'latest~2' or '2026-11-01'.")
    if not by_time:
        return _version(value, now), at + 1
    try:
        return _time(value, now), at + 1
    except InvalidArgumentError:
        if value.kind == "number":
            raise
        return parse_ref(value.value.strip(), now=now), at + 1


def _time(value: Token, now: datetime) -> Ref:
    """Return the ref for a time: text as in refs, or seconds since 1970."""
    if value.kind == "text":
        text = value.value.strip()
        return parse_ref(text if text.startswith("@") else f"@{text}", now=now)
    try:
        return parse_ref(datetime.fromtimestamp(int(value.text), UTC))
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidArgumentError(
            f"{value.text} is not a time. A number is whole seconds since 1970-01-01 UTC; in quotes: '2026-11-01'."
        ) from error


def _version(value: Token, now: datetime) -> Ref:
    """Return the ref for a number or text.

    Text that is not a valid ref is the name of a tag, and so are short forms, but HEAD and numbers below 0: engines
    read `VERSION AS OF 'v1'` and `VERSION AS OF '2026-11-01'` as tags.
    """
    text = value.value.strip()
    try:
        ref = parse_ref(text, now=now)
        written = "" if isinstance(ref, Tag | Earliest) else ref.written
        return Tag(name=value.value) if written and not re.match(r"(?i)head|-", written) else ref
    except InvalidArgumentError:
        if value.kind == "number" or not text or re.match(r"(?i)tag:|branch:|@|latest|earliest|-|\d+\s*[~^]", text):
            raise
        return Tag(name=value.value)


def parse_at_sign(query: str, name: Token, now: datetime) -> tuple[Ref, int] | None:
    """Return the ref of `orders@17`, written without spaces after a name, and its end, or None."""
    if query[name.end : name.end + 1] != "@":
        return None
    match = _AT.match(query, name.end + 1)
    if match is None:
        raise InvalidArgumentError(
            f"{name.text}@ needs a version{position_of(query, name.end)}. Write {name.text}@17, {name.text}@latest~2, "
            f"or {name.text} version as of 'tag:v1'."
        )
    return parse_ref(match.group(), now=now), match.end()
