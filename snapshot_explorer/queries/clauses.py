"""Parse the time-travel clause after a table name: `version as of 17`, `for timestamp as of '2026-11-01'`, `@17`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.queries.tokens import Token, place
from snapshot_explorer.refs import Earliest, Ref, Tag, parse_ref

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


def clause(query: str, following: Sequence[Token], now: datetime) -> Clause | None:
    """Return the clause at the start of the tokens after a table name; None if there is none."""
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
        raise InvalidArgumentError(f"{word} AS OF needs a version{place(query, at)}. Write {wants} there.")
    if by_time:
        return Clause(ref=_time(value, now), size=skipped + 1)
    quoted_number = value.value.strip() if value.kind == "text" and value.value.strip().isdecimal() else None
    return Clause(ref=_version(value, now), size=skipped + 1, number_as_text=quoted_number)


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


def at_sign(query: str, name: Token, now: datetime) -> tuple[Ref, int] | None:
    """Return the ref of `orders@17`, written without spaces after a name, and its end; None if there is none."""
    if query[name.end : name.end + 1] != "@":
        return None
    match = _AT.match(query, name.end + 1)
    if match is None:
        raise InvalidArgumentError(
            f"{name.text}@ needs a version{place(query, name.end)}. Write {name.text}@17, {name.text}@latest~2, or "
            f"{name.text} version as of 'tag:v1'."
        )
    return parse_ref(match.group(), now=now), match.end()
