"""Refs as records. `str` returns the canonical text of each."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from snapshot_explorer.core.errors import InvalidRefError

LONGEST_NAME = 255
"""The maximum length of the name of a tag or branch, in characters: it is part of a file name."""
_MAX_NUMBER = 2**63 - 1
NUMBERED = re.compile(r"@([0-9]+)$")
"""The number behind the name of a branch: `branch:audit@5`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    back: int = 0
    """The number of existing versions to go back; for the earliest version only 0 matches."""
    written: str = field(default="", compare=False, repr=False)
    """The text without steps if it may also be the name of a tag, such as `v5` or `main`; otherwise empty."""

    def __post_init__(self) -> None:
        _check_number(self.back, "number of steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(_Steps):
    """A version by its number."""

    number: int
    """Paimon snapshot id or Delta version."""

    def __post_init__(self) -> None:
        _Steps.__post_init__(self)
        _check_number(self.number, "version")

    def __str__(self) -> str:
        return f"{self.number}{format_steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest(_Steps):
    """The newest version."""

    def __str__(self) -> str:
        return f"latest{format_steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Earliest(_Steps):
    """The oldest version that exists."""

    def __str__(self) -> str:
        return f"earliest{format_steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag(_Steps):
    """The version of a tag."""

    name: str

    def __post_init__(self) -> None:
        _Steps.__post_init__(self)
        _check_name(self.name, "tag")

    def __str__(self) -> str:
        return f"tag:{_spelled_name(self.name)}{format_steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfBranch(_Steps):
    """A version of a branch, whichever branch is open: the newest one, or one by its number in the branch."""

    name: str
    """The name of the branch; `main` is the main one."""
    number: int | None = None
    """The version's number in the branch; None for the newest one."""

    def __post_init__(self) -> None:
        _Steps.__post_init__(self)
        _check_name(self.name, "branch")
        if self.number is not None:
            _check_number(self.number, "version")

    def __str__(self) -> str:
        name = quote_name(self.name) if NUMBERED.search(self.name) else _spelled_name(self.name)
        return f"branch:{name}{'' if self.number is None else f'@{self.number}'}{format_steps(self.back)}"

    @property
    def own_ref(self) -> "Version | Latest":
        """Return the ref of the version in the history of the branch."""
        return Latest(back=self.back) if self.number is None else Version(number=self.number, back=self.back)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf(_Steps):
    """The last version committed at or before a time."""

    time: datetime
    """The time, aware, in UTC."""

    def __post_init__(self) -> None:
        _Steps.__post_init__(self)
        object.__setattr__(self, "time", to_utc(self.time))

    def __str__(self) -> str:
        return f"@{format_time(self.time)}{format_steps(self.back)}"


Ref = Version | Latest | Earliest | Tag | OfBranch | AsOf
RefLike = int | str | datetime | Ref
"""An argument for a version: its number, the text of a ref, a time, or a ref."""


def is_newest_state(ref: Ref) -> bool:
    """Return whether a ref means the newest state of a branch, not a version of it as its commit left it."""
    return isinstance(ref, Latest) and not ref.back


def split_steps(text: str) -> tuple[str, int]:
    """Return the text without the `~N` and `^` at its end, and the number of steps that these add up to."""
    back = 0
    while text:
        if text.endswith("^"):
            text, back = text[:-1], back + 1
            continue
        shorter = text.rstrip("0123456789")
        if not shorter.endswith("~"):
            break
        back += int(text[len(shorter) :] or 1)
        text = shorter[:-1]
    return text, back


def format_steps(back: int) -> str:
    """Return a number of steps back as text."""
    return f"~{back}" if back else ""


def quote_name(name: str) -> str:
    """Return the name of a tag or branch in quotes."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _spelled_name(name: str) -> str:
    """Return the name of a tag or branch as refs contain it: in quotes where other characters would change."""
    plain = split_steps(name)[0] == name == name.strip() and ".." not in name and '"' not in name
    # A dot at the end would merge with the dots of a range.
    return name if plain and not name.endswith(".") else quote_name(name)


def _check_name(name: str, noun: str) -> None:
    if not 0 < len(name) <= LONGEST_NAME:
        raise InvalidRefError(f"A {noun} name must have 1 to {LONGEST_NAME} characters, got {len(name)}. {EXAMPLES}")


def _check_number(number: int, noun: str) -> None:
    if not 0 <= number <= _MAX_NUMBER:
        raise InvalidRefError(f"{brief_repr(number)} is not a valid {noun}: it must be 0 to {_MAX_NUMBER}. {EXAMPLES}")


EXAMPLES = "Refs look like 17, latest, earliest, latest~2, 17^, tag:v1, branch:dev, @2026-11-01 or @2h."
YESTERDAY = "yesterday"
_SECONDS = MappingProxyType({"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800})
_SPAN = r"(\d+) ?(s|m|h|d|w|secs?|mins?|hours?|days?|weeks?|seconds?|minutes?)"
_AGO = re.compile(rf"(?:{_SPAN} ?)+(?:ago)?", re.ASCII)
"""Lower case only: a capital M could mean months."""
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?)? ?(Z|[+-]\d\d:?\d\d)?", re.ASCII | re.IGNORECASE
)


def parse_time(text: str, now: datetime | None) -> datetime | None:
    """Return the time that a text names; None if it is not a time. `yesterday` is the end of that day, in UTC."""
    try:
        if text.lower() == YESTERDAY:
            return start_of_day(now) - timedelta(microseconds=1)
        if _TIME.fullmatch(text):
            compact = re.sub(r" (?=Z|[+-]\d\d:?\d\d$)", "", text.upper())
            return to_utc(datetime.fromisoformat(compact))
        if _AGO.fullmatch(text):
            spans = re.findall(_SPAN, text, re.ASCII)
            seconds = sum(int(count) * _SECONDS[unit[0]] for count, unit in spans)
            return to_utc(now or datetime.now(UTC)) - timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
    return None


def start_of_day(now: datetime | None) -> datetime:
    """Return the time at which the current day began, in UTC."""
    return to_utc(now or datetime.now(UTC)).replace(hour=0, minute=0, second=0, microsecond=0)


def to_utc(time: datetime) -> datetime:
    """Return a time as a plain datetime in UTC. A naive one is assumed to be in UTC."""
    try:
        aware = time.astimezone(UTC) if time.tzinfo else time
        # Field by field: pandas.Timestamp is a datetime too, and so is NaT, which has no fields.
        return datetime(
            aware.year, aware.month, aware.day, aware.hour, aware.minute, aware.second, aware.microsecond, tzinfo=UTC
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRefError(
            f"{brief_repr(time)} is not a time. Use one in the years 1 to 9999. {EXAMPLES}"
        ) from error


def format_time(time: datetime) -> str:
    """Return a time in UTC as text, in the form of refs and messages."""
    return time.isoformat().replace("+00:00", "Z")


def brief_repr(text: object) -> str:
    """Return an input as text for a message: one line of limited length."""
    if isinstance(text, int) and text.bit_length() > 100:  # noqa: PLR2004 - Python refuses to print very long numbers
        return f"A number of {text.bit_length():,} bits"
    try:
        text_repr = ascii(text) if not isinstance(text, str) or not text.isprintable() else repr(text)
    except RecursionError:
        return "a value with too many levels"
    return text_repr if len(text_repr) <= 80 else f"{text_repr[:77]}..."  # noqa: PLR2004 - a line
