"""Parse text, numbers and times into refs, and suggest corrections for invalid ones."""

import difflib
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import SupportsIndex

from snapshot_explorer.core.errors import InvalidRefError
from snapshot_explorer.core.milliseconds import from_millis
from snapshot_explorer.core.refs.records import (
    EXAMPLES,
    LONGEST_NAME,
    NUMBERED,
    YESTERDAY,
    AsOf,
    Earliest,
    Latest,
    OfBranch,
    Ref,
    Tag,
    Version,
    brief_repr,
    format_steps,
    format_time,
    parse_time,
    split_steps,
    start_of_day,
)

_LONGEST = 1000
"""The maximum length of a ref, in characters."""


def parse_ref(
    ref: object,
    *,
    now: datetime | None = None,
    tags: Callable[[], Mapping[str, int]] | None = None,
    branches: Callable[[], Collection[str]] | None = None,
) -> Ref:
    """Return the ref for a text, a version number or a time. Reads nothing.

    Args:
        ref: Text as described in `snapshot_explorer.core.refs`, an int, a datetime or date (UTC without a zone), or a
            ref, which is returned unchanged.
        now: The time from which `@2h` counts back; by default the current time.
        tags: Called only if the text is not a valid ref, to suggest a tag of that name.
    """
    if isinstance(ref, Version | Latest | Earliest | Tag | OfBranch | AsOf):
        return ref
    if isinstance(ref, date):
        return AsOf(time=ref if isinstance(ref, datetime) else datetime(ref.year, ref.month, ref.day, tzinfo=UTC))
    if isinstance(ref, SupportsIndex) and not isinstance(ref, bool):
        return _version_ref(operator.index(ref))
    if not isinstance(ref, str):
        raise InvalidRefError(
            f"A value of type {type(ref).__name__} is not a valid ref. Use a number, a text or a datetime. {EXAMPLES}"
        )
    if len(ref) > _LONGEST:
        raise InvalidRefError(f"{brief_repr(ref)} is not a valid ref: it has {len(ref):,} characters. {EXAMPLES}")
    return _parse(ref.strip(), now, _Names(tags, branches))


def parse_range(text: object) -> tuple[Ref, Ref]:
    """Return the two refs of `A..B`. A missing side is earliest or latest. Reads nothing."""
    if not isinstance(text, str) or len(text) > 2 * _LONGEST:
        description = brief_repr(text) if isinstance(text, str) else f"A value of type {type(text).__name__}"
        raise InvalidRefError(f"{description} is not a range of versions. Write two refs, such as 3..17 or 17..latest.")
    # Dots inside a quoted name do not separate refs.
    bare = re.sub(r'(?i:tag|branch): *"(?:[^"]|"")*"', lambda quoted: "x" * len(quoted[0]), text)
    runs = [run.span() for run in re.finditer(r"\.{2,}", bare)]
    if not runs:
        spanned = _SPAN.fullmatch(text.strip())
        raise InvalidRefError(
            f"{brief_repr(text)} is not a range of versions: it has no `..`. "
            + (
                f"Did you mean {spanned[1]}..{spanned[2]}?"
                if spanned
                else "Write two refs, such as 3..17 or 17..latest."
            )
        )
    (start, end), more = runs[0], runs[1:]
    if more or end - start > 2:  # noqa: PLR2004 - two dots
        raise InvalidRefError(
            f"{brief_repr(text)} is not a range of versions: it must contain `..` exactly once. "
            'Write two refs, such as 3..17. Quote a name that contains dots: tag:"a..b".'
        )
    first, last = text[:start].strip(), text[end:].strip()
    return parse_ref(first or "earliest"), parse_ref(last or "latest")


def parse_time_bound(value: str | datetime, *, start: bool, now: datetime | None = None) -> datetime | None:
    """Return the time that limits a range of commits; None if it is not a time. Reads nothing.

    Args:
        value: A datetime, or the text of a time, with or without `@`.
        start: Whether the range starts there: `yesterday` and `today` then are the start of the day, else its end.
    """
    word = value.strip().removeprefix("@").lower() if isinstance(value, str) else ""
    if word in (YESTERDAY, _TODAY):
        day = start_of_day(now) - timedelta(days=word == YESTERDAY)
        return day if start else day + timedelta(days=1, microseconds=-1)
    try:
        ref = parse_ref(value, now=now)
    except InvalidRefError:
        return None
    return ref.time if isinstance(ref, AsOf) and not ref.back else None


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a table's tags and branches, read where a text is not a valid ref."""

    tags: Callable[[], Mapping[str, int]] | None
    branches: Callable[[], Collection[str]] | None


def _parse(text: str, now: datetime | None, names: _Names) -> Ref:
    base, back = split_steps(text)
    ref = _match_ref(base.strip(), back, now)
    if ref is None:
        raise InvalidRefError(
            f"{brief_repr(text)} is not a valid ref. {_advice(text, base.strip(), back, names)}{EXAMPLES}"
        )
    return ref


def _match_ref(base: str, back: int, now: datetime | None) -> Ref | None:  # noqa: PLR0911 - one per form
    word = base.lower()
    if word == "latest":
        return Latest(back=back)
    if word == "head":
        return Latest(back=back, written=base)
    if word == "earliest":
        return Earliest(back=back)
    if re.fullmatch(r"[0-9]+", base):
        return Version(number=int(base), back=back)
    if re.fullmatch(r"v[0-9]{1,19}", word):
        return Version(number=int(base[1:]), back=back, written=base)
    if re.fullmatch(r"-0*[1-9][0-9]{0,8}", base):
        return Latest(back=-int(base) - 1 + back, written=base)
    if word.startswith("tag:"):
        name = _name(base[4:].strip())
        return None if name is None else Tag(name=name, back=back)
    if word.startswith("branch:"):
        numbered = NUMBERED.search(base)
        name = _name((base[7 : numbered.start()] if numbered else base[7:]).strip())
        return None if name is None else OfBranch(name=name, number=int(numbered[1]) if numbered else None, back=back)
    if base == MAIN:
        return OfBranch(name=MAIN, back=back, written=base)
    is_marked = base.startswith("@")
    time = parse_time(base[1:].strip() if is_marked else base, now)
    return None if time is None else AsOf(time=time, back=back, written="" if is_marked else base)


def _advice(text: str, base: str, back: int, names: _Names) -> str:
    """Return a suggestion, with a space after it; empty if there is none."""
    known = names.tags() if names.tags is not None else {}
    if text in known or base in known:
        return f"Did you mean {Tag(name=text) if text in known else Tag(name=base, back=back)}? "
    branches = names.branches() if names.branches is not None else ()
    if text in branches or base in branches:
        head = OfBranch(name=text) if text in branches else OfBranch(name=base, back=back)
        return f"Did you mean {head}? "
    for candidate in candidates(base, back):
        if _match_ref(*split_steps(candidate), None) is not None:
            return f"Did you mean {candidate}? "
    if spanned := _SPAN.fullmatch(text):
        return f"Did you mean the range {spanned[1]}..{spanned[2]}? "
    if named := re.match("(tag|branch):", base.lower()):
        return f'A {named[1]} name has 1 to 255 characters. Inside quotes, double each quote: {named[0]}"NAME". '
    if ".." in base:
        return "Expected one ref, got a range. "
    if names.tags is None and 0 < len(base) <= LONGEST_NAME and base.isprintable() and "@" not in base:
        return f"For a tag, write {Tag(name=base, back=back)}; for a branch, {OfBranch(name=base, back=back)}. "
    return ""


def _name(name: str) -> str | None:
    """Return the name without its quotes; None if it is not valid."""
    if name.startswith('"'):
        inner = name[1:-1]
        if len(name) < 2 or not name.endswith('"') or '"' in inner.replace('""', ""):  # noqa: PLR2004 - two quotes
            return None
        name = inner.replace('""', '"')
    return name if 0 < len(name) <= LONGEST_NAME else None


def _version_ref(number: int) -> Version:
    if number < 0:
        # Not counted from the newest, as the text is: `version - 1` of version 0 would be the newest one.
        raise InvalidRefError(f"{number} is not a version. Did you mean {Latest(back=-number - 1)}? {EXAMPLES}")
    return Version(number=number)


MAIN = "main"
"""The branch that tables are opened at."""
_TODAY = "today"
_LATEST = ("latest", "newest", "head", "last", "current", "now", "tip", "end")
_EARLIEST = ("earliest", "oldest", "first", "start", "begin", "beginning")
_SPAN = re.compile(r"([0-9]{1,19}) ?(?:-|:|to|,) ?([0-9]{1,19})")
"""Two versions as other programs write a range."""
_NUMBERED = re.compile(r"(?:v|version|snapshot|snap|id|#|=)[ :=_#-]*(\d{1,19})", re.ASCII)
_DATED = re.compile(r"(\d{4})[-/.]?(\d{1,2})(?:[-/.]?(\d{1,2}))?", re.ASCII)


def candidates(base: str, back: int) -> Iterator[str]:
    """Yield possible corrections, the most likely first. Some of them are not valid refs.

    Args:
        base: The text without the steps at its end.
    """
    word = base.lower().strip()
    if not word and back:
        yield f"latest{format_steps(back)}"
    if parent := re.fullmatch(r"([^^]*)\^([0-9]{1,9})", word):
        yield f"{parent[1]}{format_steps(int(parent[2]) + back)}"
    if numbered := _NUMBERED.fullmatch(word):
        yield f"{int(numbered[1])}{format_steps(back)}"
    for time in _times(word.removeprefix("@")):
        yield f"@{time}{format_steps(back)}"
    if re.fullmatch(r"@[0-9]{1,9}", word):
        yield f"{int(word[1:])}{format_steps(back)}"
    for near in difflib.get_close_matches(word[:40].removeprefix("@"), (*_LATEST, *_EARLIEST), n=1, cutoff=0.75):
        yield f"{'latest' if near in _LATEST else 'earliest'}{format_steps(back)}"


def _times(word: str) -> Iterator[str]:
    yield word
    if word == _TODAY:
        yield "1d"
    if dated := _DATED.fullmatch(word):
        yield f"{dated[1]}-{int(dated[2]):02}-{int(dated[3] or 1):02}"
    if re.fullmatch(r"[0-9]{13}", word):  # milliseconds since 1970, as Paimon writes times
        yield format_time(from_millis(int(word)))
