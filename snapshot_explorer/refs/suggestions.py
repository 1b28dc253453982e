"""What somebody meant who wrote what is not a valid ref."""

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from snapshot_explorer.refs.records import steps
from snapshot_explorer.refs.times import shown

_LATEST = ("latest", "newest", "head", "last", "current", "now", "tip", "end")
_EARLIEST = ("earliest", "oldest", "first", "start", "begin", "beginning")
_NUMBERED = re.compile(r"(?:v|version|snapshot|snap|id|#|=)[ :=_#-]*(\d{1,19})", re.ASCII)
_DATED = re.compile(r"(\d{4})[-/.]?(\d{1,2})(?:[-/.]?(\d{1,2}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def candidates(base: str, back: int) -> Iterator[str]:
    """Yield texts that may be meant, likely ones first; not all of them are refs.

    Args:
        base: What was written, without the steps at its end.
        back: The steps.
    """
    word = base.lower().strip()
    if not word and back:
        yield f"latest{steps(back)}"
    if parent := re.fullmatch(r"([^^]*)\^([0-9]{1,9})", word):
        yield f"{parent[1]}{steps(int(parent[2]) + back)}"
    if numbered := _NUMBERED.fullmatch(word):
        yield f"{int(numbered[1])}{steps(back)}"
    if re.fullmatch(r"-[0-9]{1,9}", word) and int(word):
        yield f"latest{steps(-int(word) - 1 + back)}"
    for time in _times(word.removeprefix("@")):
        yield f"@{time}{steps(back)}"
    if re.fullmatch(r"@[0-9]{1,9}", word):
        yield f"{int(word[1:])}{steps(back)}"
    for near in difflib.get_close_matches(word[:40].removeprefix("@"), (*_LATEST, *_EARLIEST), n=1, cutoff=0.75):
        yield f"{'latest' if near in _LATEST else 'earliest'}{steps(back)}"


def _times(word: str) -> Iterator[str]:
    yield word
    if word in ("yesterday", "today"):
        yield "1d"
    if dated := _DATED.fullmatch(word):
        yield f"{dated[1]}-{int(dated[2]):02}-{int(dated[3] or 1):02}"
    if re.fullmatch(r"[0-9]{13}", word):  # milliseconds since 1970, as Paimon writes times
        yield shown(_EPOCH + timedelta(milliseconds=int(word)))
