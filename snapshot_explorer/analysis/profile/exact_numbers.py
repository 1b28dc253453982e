"""The numbers of columns at versions, from rows. Each file, or group of files that are merged, is read once."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.profile.column_numbers import LACKING, UNORDERED, FileRanges, is_sortable
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Bounds, Split
from snapshot_explorer.engines import local
from snapshot_explorer.engines.collations import collation_of
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.history import History, column_names


def read_ranges(
    source: History, versions: Sequence[int], reference: TableVersion, columns: Sequence[str]
) -> tuple[FileRanges, Mapping[str, list[str | None]]]:
    """Return ranges of positions of groups of files with exact statistics, and why numbers are unknown.

    Args:
        reference: The version whose schema names the columns.

    Returns:
        The ranges, and for each column and version why its numbers are unknown, None if they are exact.
    """
    reader = _Reader(reference, columns)
    whys: dict[str, list[str | None]] = {name: [None] * len(versions) for name in columns}
    readable = read_apart(source.schemas, versions, source.format.storage)
    schemas = [(number, schema) for group, part in readable.parts for number, schema in zip(group, part, strict=True)]
    starts = [
        number for (number, own), (_, before) in zip(schemas, [(0, None), *schemas], strict=False) if own != before
    ]
    called = column_names(source.format, starts, reference, columns)
    with step("Reading versions", total=len(versions)) as reading:
        for index, number in enumerate(versions):
            try:
                if number in readable.unread:
                    raise readable.unread[number]
                version = source.format.version(number)
                names = called.at(number)
                reader.read(version, index, names)
            except UNREADABLE as error:
                reader.unreadable(index)
                for why in whys.values():
                    why[index] = Message("cannot be read: ", error)
            else:
                for name, own_name in names.items():
                    whys[name][index] = LACKING if own_name is None else reader.unordered.get(name)
            reading.advance()
    return reader.ranges(len(versions)), whys


class _Reader:
    """Numbers of groups of files, by the identity of their splits."""

    def __init__(self, reference: TableVersion, columns: Sequence[str]) -> None:
        self._fields = [reference.arrow_schema.field(name) for name in columns]
        self.unordered = {field.name: UNORDERED for field in self._fields if collation_of(field) is not None}
        """Why the minimum and maximum of some columns are unknown."""
        self._numbers: dict[Hashable, int] = {}
        self._rows: list[int | None] = [None]
        """Groups by number; number 0 is a group that cannot be read."""
        self._parts: dict[str, list[pa.Table]] = {field.name: [_unknown(field)] for field in self._fields}
        self._open: dict[int, int] = {}
        """By number, the position since which each group of the last version is live."""
        self._ranges: list[tuple[int, int, int]] = []

    def read(self, version: TableVersion, index: int, names: Mapping[str, str | None]) -> None:
        splits = [part for split in version.plan(None).splits for part in version.split_by_file(split)]
        live: set[int] = set()
        for split in splits:
            if split.identity not in self._numbers:
                self._rows.append(self._read(version, split, names))
                self._numbers[split.identity] = len(self._rows) - 1
            live.add(self._numbers[split.identity])
        self._update_ranges(live, index)

    def unreadable(self, index: int) -> None:
        self._update_ranges({0}, index)

    def _update_ranges(self, live: set[int], index: int) -> None:
        """Close the ranges of groups that a version lacks, and open ranges for its new groups."""
        for number in [item for item in self._open if item not in live]:
            self._ranges.append((number, self._open.pop(number), index))
        for number in live:
            self._open.setdefault(number, index)

    def _read(self, version: TableVersion, split: Split, names: Mapping[str, str | None]) -> int:
        present = [name for name in names.values() if name is not None]
        rows = local.to_arrow(version, [split], scan_of(version.arrow_schema, present))
        for field in self._fields:
            name = names[field.name]
            column = None if name is None else rows[name]
            self._parts[field.name].append(_unknown(field) if column is None else _numbers(column, field))
        return int(rows.num_rows)

    def ranges(self, count: int) -> FileRanges:
        self._ranges += [(number, begin, count) for number, begin in self._open.items()]
        numbers, first, last = (np.asarray([item[part] for item in self._ranges], np.int64) for part in range(3))
        chosen = pa.array(numbers)
        of_columns = {name: pa.concat_tables(parts).take(chosen) for name, parts in self._parts.items()}
        lower, upper, nulls, valueless = (
            pa.table({name: rows[part] for name, rows in of_columns.items()})
            for part in ("min", "max", "nulls", "valueless")
        )
        rows = pa.array(self._rows, pa.int64()).take(chosen)
        bounds = Bounds(lower=lower, upper=upper, null_count=nulls, rows=rows)
        no_vectors = pa.nulls(len(rows), pa.int64())
        return FileRanges(first=first, last=last, count=count, bounds=bounds, deleted=no_vectors, valueless=valueless)


def _unknown(field: pa.Field) -> pa.Table:
    return _row(field, None, None, None)


def _row(field: pa.Field, nulls: int | None, minimum: pa.Scalar | None, maximum: pa.Scalar | None) -> pa.Table:
    def column(value: pa.Scalar | None) -> pa.Array:
        return pa.nulls(1, field.type) if value is None else pa.repeat(value, 1)

    is_valueless = minimum is not None and not minimum.is_valid
    return pa.table(
        {
            "nulls": pa.array([nulls], pa.int64()),
            "min": column(minimum),
            "max": column(maximum),
            "valueless": pa.array([is_valueless]),
        }
    )


def _numbers(column: pa.ChunkedArray, field: pa.Field) -> pa.Table:
    """Return the numbers of a column in some files; unknown if the field's type cannot represent its values."""
    nulls = column.null_count
    if column.type != field.type:
        try:
            column = column.cast(field.type)
        except pa.ArrowException:
            return _row(field, nulls, None, None)
    if pa.types.is_floating(field.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
    if not is_sortable(field.type) and not pa.types.is_boolean(field.type):
        return _row(field, nulls, None, None)
    ends = pc.min_max(column)
    return _row(field, nulls, ends["min"], ends["max"])
