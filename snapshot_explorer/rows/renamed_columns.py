"""The other name of an unknown column: whether a column of another version was renamed or dropped."""

from __future__ import annotations

from bisect import bisect_left
from contextlib import contextmanager
from typing import TYPE_CHECKING

from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError, UnknownColumnError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.model import FieldIds, Listing

_MAX_PROBED = 5
"""Versions that are searched for the column: the first, the last, and some between."""


@contextmanager
def naming_renamed_columns(table_format: TableFormat, version: Callable[[], TableVersion]) -> Iterator[None]:
    """Say in the error for an unknown column which name the column has at the version, if another version has it.

    Args:
        version: Returns the version whose columns are named; called after an error only.
    """
    try:
        yield
    except UnknownColumnError as error:
        try:
            sentence = renamed_column(table_format, version(), error.column)
        except SnapshotExplorerError:
            raise error from None
        if sentence is None:
            raise
        raise InvalidArgumentError(error.with_hint(f"{sentence}.")) from None


def renamed_column(table_format: TableFormat, version: TableVersion, column: str) -> str | None:
    """Return a sentence on the name of a column at a version, or when it was dropped; None if it cannot be stated.

    Reads the schemas of a few versions, and about log2(n) more if one of them has the column.
    """
    listing = table_format.listing(0)
    number, stateless = version.number, frozenset(listing.stateless)
    versions = [item for item in listing.reachable if item not in stateless]
    if number is None or number not in versions:
        return None
    for probe in _probes(versions):
        ids = _ids_at(table_format, probe, version, column)
        if ids is not None and ids.id is not None:
            between = versions[
                bisect_left(versions, min(probe, number)) : bisect_left(versions, max(probe, number)) + 1
            ]
            return _sentence(_Names(table_format, ids), column, between, listing, is_older=probe < number)
    return None


class _Names:
    """The name of a column, by its field id, at each version. Reads a schema for each."""

    def __init__(self, table_format: TableFormat, ids: FieldIds) -> None:
        self._format = table_format
        self._id = ids.id

    def at(self, version: int) -> str | None:
        """Return the name; None if the version lacks the column."""
        fields = self._format.version(version).field_ids
        return next((name for name, ids in fields.items() if ids.id == self._id), None)


def _ids_at(table_format: TableFormat, probe: int, version: TableVersion, column: str) -> FieldIds | None:
    """Return the field ids of a column at another version; None if it lacks the column.

    None too where ids were removed between the versions, which wrote all files again under the names that users see.
    """
    other = table_format.version(probe)
    older, newer = (other, version) if probe < (version.number or 0) else (version, other)
    if older.schema.has_ids and not newer.schema.has_ids:
        return None
    return other.field_ids.get(column)


def _probes(versions: Sequence[int]) -> list[int]:
    """Return some versions: the first, the last, the one in the middle and those in the middle of the halves."""
    last = len(versions) - 1
    indices = dict.fromkeys([0, last, last // 2, last // 4, last * 3 // 4])
    return [versions[index] for index in indices][:_MAX_PROBED]


def _sentence(names: _Names, column: str, versions: Sequence[int], listing: Listing, *, is_older: bool) -> str | None:
    """Return a sentence on the change between the first of these versions and the last.

    Args:
        column: Its name at the first version if `is_older`, otherwise at the last.
        versions: All versions from the one to the other.
        is_older: Whether the first version is the one that has the name.
    """
    index = bisect_left(versions, True, key=lambda version: (names.at(version) == column) is not is_older)  # noqa: FBT003
    if not 0 < index < len(versions):
        return None
    before, after = versions[index - 1], versions[index]
    when = f"{'by' if listing.gaps_between(before, after) else 'in'} version {after}"
    if not is_older:
        earlier = names.at(before)
        return None if earlier is None else f"{earlier} was renamed to {column} {when}"
    later, now = names.at(after), names.at(versions[-1])
    if later is None:
        return f"{column} was dropped {when}"
    sentence = f"{column} was renamed to {later} {when}"
    if now is None or now == later:
        return sentence
    return f"{sentence}, and is {now} in version {versions[-1]}"
