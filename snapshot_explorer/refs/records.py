"""The refs as records, each with the one text that stands for it."""

from dataclasses import dataclass
from datetime import datetime

from snapshot_explorer.errors import InvalidRefError
from snapshot_explorer.refs.times import EXAMPLES, brief_repr, format_time, utc

LONGEST_TAG = 255
"""Characters of a tag's name: it is a part of a file name."""
_GREATEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version by its number."""

    number: int
    """Paimon snapshot id or Delta version."""
    back: int = 0
    """How many existing versions before it."""

    def __post_init__(self) -> None:
        _check_number(self.number, "version")
        _check_number(self.back, "number of steps")

    def __str__(self) -> str:
        return f"{self.number}{steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """The newest version."""

    back: int = 0
    """How many existing versions before it."""

    def __post_init__(self) -> None:
        _check_number(self.back, "number of steps")

    def __str__(self) -> str:
        return f"latest{steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Earliest:
    """The oldest version that exists."""

    back: int = 0
    """How many existing versions before it: more than none is never found, but can be written."""

    def __post_init__(self) -> None:
        _check_number(self.back, "number of steps")

    def __str__(self) -> str:
        return f"earliest{steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """The version that a tag names."""

    name: str
    """The tag's name, any text."""
    back: int = 0
    """How many existing versions before it."""

    def __post_init__(self) -> None:
        _check_number(self.back, "number of steps")
        if not 0 < len(self.name) <= LONGEST_TAG:
            raise InvalidRefError(f"A tag's name has 1 to {LONGEST_TAG} characters, not {len(self.name)}. {EXAMPLES}")

    def __str__(self) -> str:
        name = self.name
        plain = split_steps(name)[0] == name == name.strip() and ".." not in name and '"' not in name
        # A dot at the end would run into the dots of a range.
        plain = plain and not name.endswith(".")
        return f"tag:{name if plain else quote_name(name)}{steps(self.back)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """The last version that was committed at a time or before it."""

    time: datetime
    """The time, aware; kept as UTC."""
    back: int = 0
    """How many existing versions before it."""

    def __post_init__(self) -> None:
        _check_number(self.back, "number of steps")
        object.__setattr__(self, "time", utc(self.time))

    def __str__(self) -> str:
        return f"@{format_time(self.time)}{steps(self.back)}"


Ref = Version | Latest | Earliest | Tag | AsOf


def split_steps(text: str) -> tuple[str, int]:
    """Return the text without the `~N` and `^` at its end, and how many steps they are."""
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


def steps(back: int) -> str:
    """Return how so many steps back are written."""
    return f"~{back}" if back else ""


def quote_name(name: str) -> str:
    """Return a tag's name in quotes."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _check_number(number: int, what: str) -> None:
    if not 0 <= number <= _GREATEST:
        raise InvalidRefError(f"{brief_repr(number)} is not a {what}: it is not in 0 to {_GREATEST}. {EXAMPLES}")
