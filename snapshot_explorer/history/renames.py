"""The names of columns over the versions of a table."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, UnknownColumnError
from snapshot_explorer.core.records import FieldIds, Listing
from snapshot_explorer.formats import TableFormat, TableVersion

_Id = int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """The names of the columns of a reference version at earlier versions."""

    starts: tuple[int, ...]
    """The versions at which other schemas come into force, ascending."""
    names: tuple[Mapping[str, str | None], ...]
    """For each of these versions, the name of each column; None if it lacks the column."""

    def at(self, version: int) -> Mapping[str, str | None]:
        """Return the names at a version."""
        return self.names[max(0, bisect_right(self.starts, version) - 1)]


def column_names(
    table_format: TableFormat, starts: Sequence[int], reference: TableVersion, columns: Sequence[str]
) -> ColumnNames:
    """Return the names of columns at versions, traced from schema to schema back from the reference version.

    Columns match by what renames keep: the field id, or the name in data files. Where column mapping was removed, which
    rewrites all files with logical names, they match by these names.

    Args:
        starts: The versions at which schemas come into force, ascending.
        reference: The version that names the columns, the last of these or later.
    """
    number = reference.number
    known = [start for start in starts if number is None or start <= number]
    ids: dict[str, _Id] = {name: reference.field_ids[name].id for name in columns}
    names: list[Mapping[str, str | None]] = []
    newer = reference
    for start in reversed(known):
        older = table_format.version(start)
        ids = _ids_before(older, newer, ids)
        names.append(_names_of(older, ids))
        newer = older
    return ColumnNames(starts=tuple(known), names=tuple(names[::-1]) or (_names_of(reference, ids),))


def names_before(older: TableVersion, newer: TableVersion, columns: Sequence[str]) -> Mapping[str, str | None]:
    """Return the names of columns at an earlier version, if no schema between them removed column mapping."""
    return _names_of(older, _ids_before(older, newer, {name: newer.field_ids[name].id for name in columns}))


def _ids_before(older: TableVersion, newer: TableVersion, ids: Mapping[str, _Id]) -> dict[str, _Id]:
    if newer.schema.has_ids or not older.schema.has_ids:
        return dict(ids)
    older_ids = older.field_ids
    return {name: older_ids[str(item)].id if str(item) in older_ids else None for name, item in ids.items()}


def _names_of(version: TableVersion, ids: Mapping[str, _Id]) -> dict[str, str | None]:
    own = {item.id: name for name, item in version.field_ids.items()}
    return {name: None if item is None else own.get(item) for name, item in ids.items()}


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
    number, without_files = version.number, frozenset(listing.without_files)
    versions = [item for item in listing.reachable if item not in without_files]
    if number is None or number not in versions:
        return None
    for probe in _probes(versions):
        ids = _ids_at(table_format, probe, version, column)
        if ids is not None and ids.id is not None:
            between = versions[
                bisect_left(versions, min(probe, number)) : bisect_left(versions, max(probe, number)) + 1
            ]
            name_at = partial(_name_at, table_format, ids)
            return _sentence(name_at, column, between, listing, is_older=probe < number)
    return None


def _name_at(table_format: TableFormat, ids: FieldIds, version: int) -> str | None:
    """Return the name of a column, by its field id, at a version. Reads its schema."""
    return _names_of(table_format.version(version), {"": ids.id})[""]


def _ids_at(table_format: TableFormat, probe: int, version: TableVersion, column: str) -> FieldIds | None:
    """Return the field ids of a column at another version; None if it lacks the column.

    Also None if ids were removed between the versions: all files were then rewritten with logical names.
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


def _sentence(
    name_at: Callable[[int], str | None], column: str, versions: Sequence[int], listing: Listing, *, is_older: bool
) -> str | None:
    """Return a sentence on the change between the first of these versions and the last.

    Args:
        name_at: Returns the name of the column at a version; None if that lacks it.
        column: Its name at the first version if `is_older`, otherwise at the last.
        is_older: Whether the first version is the one that has the name.
    """
    index = bisect_left(versions, True, key=lambda version: (name_at(version) == column) is not is_older)  # noqa: FBT003
    if not 0 < index < len(versions):
        return None
    before, after = versions[index - 1], versions[index]
    when = f"{'by' if listing.gaps_between(before, after) else 'in'} version {after}"
    if not is_older:
        earlier = name_at(before)
        return None if earlier is None else f"{earlier} was renamed to {column} {when}"
    later, now = name_at(after), name_at(versions[-1])
    if later is None:
        return f"{column} was dropped {when}"
    sentence = f"{column} was renamed to {later} {when}"
    if now is None or now == later:
        return sentence
    return f"{sentence}, and is {now} in version {versions[-1]}"
