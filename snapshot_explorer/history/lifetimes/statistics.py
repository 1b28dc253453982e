"""`FileStatistics`: lifetimes with the statistics of the values in each file, read in the same pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import group_ids
from snapshot_explorer.core.records import Bounds, TableSchema
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.history.lifetimes.index import FileLifetimes
from snapshot_explorer.history.lifetimes.reading import FileSource, read_lifetimes

Mask = npt.NDArray[np.bool_]

_PARTS = ("lower", "upper", "null_count")
_IDENTITY = (pa.field("path", pa.string()), pa.field("level", pa.int32()), pa.field("deletion_vector", pa.string()))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    """When each data file was added and removed, and the statistics of its values."""

    lifetimes: FileLifetimes
    """When each file was added and removed."""
    bounds: Bounds
    """The statistics of the columns, a row per row of `lifetimes.intervals.rows`; null is unknown."""
    schemas: tuple[tuple[int, TableSchema], ...]
    """The schema in force from each of these versions on, ascending; consecutive schemas may be equal."""


def read_statistics(table_format: TableFormat, columns: Sequence[str], at: int) -> FileStatistics:
    """Return lifetimes with statistics of columns. One pass over the log, as for lifetimes.

    Args:
        columns: The columns, of the schema at version `at`.
    """
    reference = table_format.version(at)
    fields = [reference.arrow_schema.field(name) for name in columns]
    reader = _Reader(table_format, reference, fields)
    lifetimes = read_lifetimes(table_format, title="File lifetimes", source=reader)
    if not reader.has_statistics_of_changes:
        reader.read_states(lifetimes)
    # A known version after an unread one was read with its schema.
    schemas = tuple(item for item in sorted(reader.schemas.items()) if item[0] not in lifetimes.unread)
    bounds = _of_intervals(lifetimes, pa.concat_tables(reader.parts), fields)
    mapped = [index for index, (_, schema) in enumerate(schemas) if schema.has_ids]
    if mapped and not reference.schema.has_ids:
        # Column mapping was removed, which wrote all files again: a column of that name may have been another one.
        end = schemas[mapped[-1] + 1][0] if mapped[-1] + 1 < len(schemas) else at
        first = lifetimes.intervals.rows.column("first").to_numpy()
        bounds = _unknown_before(bounds, first >= np.searchsorted(np.asarray(lifetimes.versions, np.int64), end))
    return FileStatistics(lifetimes=lifetimes, bounds=bounds, schemas=schemas)


class _Reader(FileSource):
    """A table that reads statistics wherever lifetimes read files, and keeps them."""

    def __init__(self, table_format: TableFormat, reference: TableVersion, fields: Sequence[pa.Field]) -> None:
        super().__init__(table_format)
        self._columns = [field.name for field in fields]
        self._reference = reference
        self._fields = fields
        self.parts = [_schema(fields).empty_table()]
        """Path, level, deletion_vector and statistics of the files that were read."""
        self.schemas: dict[int, TableSchema] = {}
        """The schema in force from a version on."""
        self.has_statistics_of_changes = True
        """Whether statistics of added files were read with the changes."""

    def changes(self, versions: Sequence[int]) -> pa.Table:
        number = self._reference.number
        read = self.format.changes_with_statistics(versions, self._columns, versions[-1] if number is None else number)
        if read is None:
            self.has_statistics_of_changes = False
            changes = super().changes(versions)
            for version in versions:
                self.schemas[version] = self.format.version(version).schema
            return changes
        self._keep(read.added, self._columns)
        self.schemas |= dict(read.schemas)
        return read.changes

    def files(self, version: int) -> pa.Table:
        return self._state(self.format.version(version))

    def _state(self, version: TableVersion) -> pa.Table:
        files = version.files(statistics=True)
        if self.format.delete_files is not None:
            files = _without_deletions(files)
        if version.number is not None:
            self.schemas[version.number] = version.schema
        self._keep(files, _names(version, self._reference, self._columns))
        return files.drop_columns([name for name in (*_PARTS, "min_key", "max_key") if name in files.column_names])

    def read_states(self, lifetimes: FileLifetimes) -> None:
        """Read the statistics of versions so that each file is live at one of them, as far as they can be read."""
        rows = lifetimes.intervals.rows
        first, last = (rows.column(name).to_numpy() for name in ("first", "last"))
        last = np.minimum(last, len(lifetimes.versions))
        seen = -1
        failed: set[int] = set()
        for index in np.argsort(last, kind="stable").tolist():
            positions = range(int(last[index]) - 1, int(first[index]) - 1, -1)
            for position in positions if first[index] > seen else ():
                read = (
                    position not in failed
                    and read_apart(self._state_at, [lifetimes.versions[position]], self.format.storage).parts
                )
                if read:
                    seen = position
                    break
                failed.add(position)

    def _state_at(self, versions: Sequence[int]) -> pa.Table:
        return self._state(self.format.version(versions[0]))

    def _keep(self, files: pa.Table, names: Sequence[str | None]) -> None:
        """Keep the statistics of files for the columns with these names in them; None for a column that they lack."""
        if "lower" not in files.column_names:
            return  # the format has no statistics
        schema = self.parts[0].schema
        indices = _indices(files.schema.field("lower").type, schema.field("lower").type, names)
        level = single_chunk(files.column("level"))
        arrays = [
            single_chunk(files.column("path")),
            level,
            _distinguishing_vectors(level, single_chunk(files.column("deletion_vector"))),
            *(_of_fields(single_chunk(files.column(part)), schema.field(part).type, indices) for part in _PARTS),
        ]
        self.parts.append(pa.Table.from_arrays(arrays, schema=schema))


def _indices(bounds: pa.StructType, target: pa.StructType, names: Sequence[str | None]) -> list[int]:
    """Return the index of each column in the bounds; -1 if it is missing or had another type.

    If a column had another type, not even its null count is known: a cast may produce more nulls.
    """
    if bounds == target and [field.name for field in target] == names:
        return list(range(len(names)))
    indices = [-1 if name is None else bounds.get_field_index(name) for name in names]
    return [
        index if index >= 0 and bounds.field(index).type == field.type else -1
        for index, field in zip(indices, target, strict=True)
    ]


def _of_fields(values: pa.StructArray, target: pa.StructType, indices: Sequence[int]) -> pa.StructArray:
    """Return the fields of statistics at these indices, as a struct of the target type; null if the index is -1."""
    if values.type == target and list(indices) == list(range(len(target))):
        return values
    arrays = [
        values.field(index) if index >= 0 else pa.nulls(len(values), field.type)
        for index, field in zip(indices, target, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(target)) if arrays else pa.array([{}] * len(values), target)


def _schema(fields: Sequence[pa.Field]) -> pa.Schema:
    bounds = pa.struct([pa.field(field.name, field.type) for field in fields])
    counts = pa.struct([pa.field(field.name, pa.int64()) for field in fields])
    return pa.schema([*_IDENTITY, ("lower", bounds), ("upper", bounds), ("null_count", counts)])


def _distinguishing_vectors(level: pa.Array, vector: pa.Array) -> pa.Array:
    """Return the deletion vectors that distinguish files of one path: in formats without levels."""
    return pc.if_else(level.is_null(), vector, pa.scalar(None, pa.string()))


def _of_intervals(lifetimes: FileLifetimes, bounds: pa.Table, fields: Sequence[pa.Field]) -> Bounds:
    intervals = lifetimes.intervals
    level = single_chunk(intervals.rows.column("level"))
    vector = _distinguishing_vectors(level, single_chunk(intervals.rows.column("deletion_vector")))
    identities = pa.table([intervals.paths(intervals.rows), level, vector], schema=pa.schema(_IDENTITY))
    codes = group_ids(pa.concat_tables([identities, bounds.select(identities.column_names)]).columns)
    mine, theirs = codes[: len(identities)], codes[len(identities) :]
    distinct, firsts = np.unique(theirs, return_index=True)
    indices = np.minimum(np.searchsorted(distinct, mine), max(0, len(distinct) - 1))
    is_there = distinct[indices] == mine if len(distinct) else np.zeros(len(mine), np.bool_)
    chosen = pa.array(firsts[indices] if len(distinct) else np.zeros(len(mine), np.int64), mask=~is_there)

    def part(name: str) -> pa.Table:
        values = single_chunk(bounds.column(name)).take(chosen)
        names = [field.name for field in fields]
        return pa.Table.from_arrays(values.flatten(), names) if names else pa.table({"rows": chosen}).select([])

    rows = single_chunk(intervals.rows.column("rows"))
    return Bounds(lower=part("lower"), upper=part("upper"), null_count=part("null_count"), rows=rows)


def _without_deletions(files: pa.Table) -> pa.Table:
    for name in ("deletion_vector", "deleted_rows"):
        index = files.schema.get_field_index(name)
        files = files.set_column(index, files.field(index), pa.nulls(len(files), files.field(index).type))
    return files


def _names(version: TableVersion, reference: TableVersion, columns: Sequence[str]) -> list[str | None]:
    """Return the names of a reference version's columns at another version; None for columns that may be missing."""
    if version.schema.has_ids and not reference.schema.has_ids:
        # Column mapping was removed since: the name of a column has no meaning.
        return [None] * len(columns)
    ids, names_by_id = reference.field_ids, {item.id: name for name, item in version.field_ids.items()}
    return [names_by_id.get(ids[name].id) for name in columns]


def _unknown_before(bounds: Bounds, known: Mask) -> Bounds:
    """Return statistics with null in every row that is not known."""

    def part(values: pa.Table) -> pa.Table:
        mask = pa.array(known)
        columns = {
            name: pc.if_else(mask, single_chunk(values.column(name)), pa.scalar(None, values.schema.field(name).type))
            for name in values.column_names
        }
        return pa.table(columns) if columns else values

    return Bounds(
        lower=part(bounds.lower), upper=part(bounds.upper), null_count=part(bounds.null_count), rows=bounds.rows
    )
