"""Settings in a table's properties or options: sizes and counts, and notes on values that are not valid."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from snapshot_explorer.core.errors import CorruptTableError

_SIZE = re.compile(r"\s*([0-9]{1,18})\s*([a-z]*)\s*", re.IGNORECASE)
_POWERS = {
    name: power
    for power, names in enumerate(
        (
            ("", "b", "bytes"),
            ("k", "kb", "kib", "kibibytes"),
            ("m", "mb", "mib", "mebibytes"),
            ("g", "gb", "gib", "gibibytes"),
            ("t", "tb", "tib", "tebibytes"),
        )
    )
    for name in names
}
_MAX = 2**62

T = TypeVar("T", int, float)


def parse_bytes(text: str) -> int | None:
    """Return a size in bytes, at least 1; None if the text is not a size. A kb is 1,024 bytes.

    Source: paimon MemorySize; spark JavaUtils.byteStringAs.
    """
    match = _SIZE.fullmatch(text)
    power = _POWERS.get(match[2].lower()) if match else None
    if match is None or power is None:
        return None
    size = int(match[1]) * 1024**power
    return size if 0 < size <= _MAX else None


def parse_count(text: str, maximum: int = 2**31 - 1) -> int | None:
    """Return a number of at least 1; None if the text is not such a number, or it exceeds the maximum."""
    text = text.strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(maximum)) else 0
    return number if 0 < number <= maximum else None


def parse_keyword(settings: Mapping[str, str], name: str, default: str = "") -> str:
    """Return the value of a setting that is a keyword, in lower case."""
    return settings.get(name, default).strip().lower()


def parse_flag(settings: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Return whether a setting is true."""
    return parse_keyword(settings, name, "true" if default else "false") == "true"


class SettingsReader:
    """Reads settings, each with its source in words."""

    def __init__(self, values: Mapping[str, str], *, noun: str, engine: str) -> None:
        """Read nothing yet.

        Args:
            noun: What the format calls a setting: option or property.
        """
        self._values = values
        self._noun = noun
        self._default = f"{engine}'s default"
        self.notes: list[str] = []
        """A sentence for each setting whose value is not valid, and that is therefore not used."""

    def of(
        self, name: str, default: T, parse: Callable[[str], T | None], default_source: str | None = None
    ) -> tuple[T, str]:
        """Return the value of a setting and its source."""
        source = default_source or self._default
        text = self._values.get(name)
        if text is None:
            return default, f"{source}; the {self._noun} {name} is not set"
        value = parse(text)
        if value is None:
            self.notes.append(f"The {self._noun} {name}={text[:50]!r} is not valid; its default is used.")
            return default, source
        return value, f"the table's {self._noun} {name}"

    def required_count(self, name: str, default: int, maximum: int = 2**31 - 1) -> int:
        """Return the value of a setting on which expiry depends. Raise if it is not valid."""
        text = self._values.get(name)
        count = default if text is None else parse_count(text, maximum)
        if count is None:
            raise CorruptTableError(
                f"The table's {self._noun} {name} must be 1 or more, got {str(text)[:40]!r}. Set the {self._noun} "
                "again to see what expires."
            )
        return count

    def source_of(self, name: str, *, is_requested: bool) -> str:
        """Return the source of a value: the request, the table or the engine's default."""
        if is_requested:
            return "as requested"
        return f"the table's {name}" if name in self._values else f"{self._default} of {name}"
