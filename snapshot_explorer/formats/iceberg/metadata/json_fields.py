"""Checked access to the fields of a JSON object in a metadata file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.storage.location import shorten

_MIN, _MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class JsonObject:
    """A JSON object with its location, for messages. A null field is absent."""

    raw: Mapping[str, Any]
    path: str
    json_path: str = ""
    """The path in the file, such as `snapshots[3]`; empty for the whole document."""

    def named(self, name: str) -> str:
        """Return the name of a field, for messages."""
        return f"{self.json_path}.{name}" if self.json_path else name

    def optional_integer(self, name: str) -> int | None:
        """Return an integer of 64 bits; None if absent."""
        value = self.raw.get(name)
        return None if value is None else integer(value, self.path, self.named(name))

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer of 64 bits, or the default; required without one."""
        value = self.optional_integer(name)
        if value is None:
            value = default
        if value is None:
            raise _missing(self, name, "an integer")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return text; None if absent."""
        value = self.raw.get(name)
        if value is not None and not isinstance(value, str):
            raise wrong(self.path, self.named(name), "text", value)
        return value

    def text(self, name: str) -> str:
        """Return text, which is required."""
        value = self.optional_text(name)
        if value is None:
            raise _missing(self, name, "text")
        return value

    def texts(self, name: str) -> Mapping[str, str]:
        """Return an object whose values are text; empty if absent."""
        value = self.raw.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise wrong(self.path, self.named(name), "an object of texts", value)
        if not all(isinstance(item, str) for item in value.values()):
            # Some writers store numbers and booleans as they are.
            return {key: item if isinstance(item, str) else _as_text(item) for key, item in value.items()}
        return value

    def list(self, name: str) -> list[Any]:
        """Return a list; empty if absent."""
        value = self.raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise wrong(self.path, self.named(name), "a list", value)
        return value

    def objects(self, name: str) -> Iterator["JsonObject"]:
        """Yield the objects of a list; none if absent."""
        for index, value in enumerate(self.list(name)):
            yield self._inner(value, f"{name}[{index}]")

    def members(self, name: str) -> Iterator[tuple[str, "JsonObject"]]:
        """Yield the names and values of an object of objects; none if absent."""
        value = self.raw.get(name)
        if value is None:
            return
        if not isinstance(value, dict):
            raise wrong(self.path, self.named(name), "an object", value)
        for key, item in value.items():
            yield key, self._inner(item, f"{name}[{shorten(repr(key))}]")

    def _inner(self, value: Any, index: str) -> "JsonObject":
        if not isinstance(value, dict):
            raise wrong(self.path, self.named(index), "an object", value)
        return JsonObject(value, self.path, self.named(index))


def integer(value: Any, path: str, field: str) -> int:
    """Return a value of a metadata file that must be an integer."""
    if type(value) is int:
        if not _MIN <= value <= _MAX:
            raise refusal(features.LARGE_NUMBERS, path=path, value=value, field=field)
        return value
    if isinstance(value, float) and abs(value) >= _MAX:
        raise refusal(features.LARGE_NUMBERS, path=path, value=value, field=field)
    raise wrong(path, field, "an integer", value)


def wrong(path: str, field: str, expected: str, actual: object) -> CorruptTableError:
    """Return the error for a field of another type."""
    return CorruptTableError(
        f"{path} is damaged: {field} must be {expected}, found {shorten(repr(actual)[:400])}. Compare it with a "
        "copy of the table, or open another metadata file of it."
    )


def _missing(where: JsonObject, name: str, expected: str) -> CorruptTableError:
    return CorruptTableError(
        f"{where.path} is damaged: {where.named(name)}, {expected}, is missing. Compare it with a copy of the table, "
        "or open another metadata file of it."
    )


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
