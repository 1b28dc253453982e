"""Proofs from metadata about the rows that a diff of two tables would read: that some differ, and in which partitions.

Equal numbers prove nothing, so only differences are concluded here. Numbers of rows and nulls count only if the
metadata has them for all files, and no row is merged or deleted in a way that it does not count. Bounds count only if
values of one table are outside of the other table's bounds, since a bound may be wider than the values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_cell
from snapshot_explorer.core import frames
from snapshot_explorer.core.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from snapshot_explorer.analysis.diff.diff_plan import RowDiffPlan, Side
    from snapshot_explorer.core.records import Split
    from snapshot_explorer.formats import TableVersion

    Ints = npt.NDArray[np.int64]

Values = tuple[pa.Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataProofs:
    """The proofs from the metadata of the files to read."""

    sentences: tuple[str, ...] = ()
    """Reasons why the rows differ."""
    partitions: pa.Table | None = None
    """PLANNED_PARTITIONS; None if the tables have no common partition column whose values all files have."""


def metadata_proofs(plan: RowDiffPlan, shared: Sequence[Split]) -> MetadataProofs:
    """Return the proofs from metadata. Reads the statistics of files; opens no data file.

    Args:
        plan: A plan without a condition, since a condition on rows is not evaluated on statistics.
        shared: The splits of B that are not read, since A has the same.
    """
    partitions = _partitions(plan, shared)
    sides = [_FileStatistics.of(side) for side in (plan.a, plan.b)]
    sentences: list[str] = []
    if sides[0] is not None and sides[1] is not None:
        sentences += _nulls(plan, (sides[0], sides[1]))
        sentences += _outside(plan, (sides[0], sides[1]))
    if partitions is not None:
        proofs = Counter(partitions["proof"].to_pylist())
        if proofs["different"]:
            sentences.append(
                f"The rows differ in {pluralize(proofs['different'], 'partition')} of {len(partitions):,}."
            )
        if proofs["equal"]:
            are, them = ("is", "it") if proofs["equal"] == 1 else ("are", "them")
            sentences.append(
                f"Of {pluralize(len(partitions), 'partition')}, {proofs['equal']:,} {are} equal: both have the same "
                f"files in {them}."
            )
    return MetadataProofs(sentences=tuple(sentences), partitions=partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileStatistics:
    """The statistics of the files to read, a row per file; no row of them is merged or deleted."""

    rows: pa.Array
    lower: pa.StructArray
    upper: pa.StructArray
    null_count: pa.StructArray
    names: frozenset[str]
    """The columns with known statistics: columns without a default for files that lack them."""

    @classmethod
    def of(cls, side: Side) -> _FileStatistics | None:
        """Return the statistics of the files to read of a side; None if they do not describe the rows."""
        splits = side.splits
        if not splits or not all(_has_all_rows(side.version, split) for split in splits):
            return None
        paths = Counter(path for split in splits for path in split.files)
        files = side.version.files(statistics=True)
        files = files.filter(pc.is_in(files["path"], pa.array(list(paths), pa.string()))).combine_chunks()
        if len(files) != paths.total() or pc.sum(files["rows"]).as_py() != side.rows or files["rows"].null_count:
            return None
        lower, upper, null_count = (_whole(files[name]) for name in ("lower", "upper", "null_count"))
        names = (field.name for field in lower.type)
        return cls(
            rows=_whole(files["rows"]),
            lower=lower,
            upper=upper,
            null_count=null_count,
            names=frozenset(name for name in names if not side.version.fills_missing_columns([name])),
        )

    def nulls(self, name: str) -> int | None:
        """Return the nulls of a column; None if unknown."""
        if name not in self.names:
            return None
        counts = self.null_count.field(name)
        return None if counts.null_count else pc.sum(counts).as_py()

    def bounds(self, name: str) -> _Bounds | None:
        """Return the bounds of a column in files with values; None if they are unknown, or may be rounded or cut."""
        dtype = None if name not in self.names else self.lower.type.field(name).type
        if dtype is None or not (pa.types.is_integer(dtype) or pa.types.is_date32(dtype)):
            return None
        values = pc.subtract(self.rows, self.null_count.field(name))
        has_values = pc.greater(values, 0)
        lower, upper, values = (
            part.filter(has_values) for part in (self.lower.field(name), self.upper.field(name), values)
        )
        if has_values.null_count or lower.null_count or upper.null_count:
            return None
        whole = pa.int32() if pa.types.is_date32(dtype) else dtype
        ends = [np.asarray(end.cast(whole).cast(pa.int64())) for end in (lower, upper)]
        return _Bounds(lower=ends[0], upper=ends[1], values=np.asarray(values), is_date=pa.types.is_date32(dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """The bounds of a column in files with values, as integers."""

    lower: Ints
    upper: Ints
    values: Ints
    """The number of values that are not null."""
    is_date: bool

    def values_outside(self, other: _Bounds) -> int:
        """Return how many values are in files whose bounds overlap with no file of the other side."""
        begun = np.searchsorted(np.sort(other.lower), self.upper, side="right")
        ended = np.searchsorted(np.sort(other.upper), self.lower, side="left")
        return int(self.values[begun == ended].sum())


def _has_all_rows(version: TableVersion, split: Split) -> bool:
    """Return whether a split has exactly the rows of its files: none is merged or deleted."""
    is_counted = split.rows is not None and split.live_rows == split.rows
    return split.raw or (is_counted and version.native_files.of(split) is not None)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _nulls(plan: RowDiffPlan, sides: tuple[_FileStatistics, _FileStatistics]) -> Iterator[str]:
    """Yield a sentence for the columns whose numbers of nulls differ."""
    different = []
    for name in plan.columns:
        if pa.types.is_nested(plan.schema.field(name).type):
            continue
        nulls = sides[0].nulls(plan.aligned.names_a[name]), sides[1].nulls(name)
        if None not in nulls and nulls[0] != nulls[1]:
            different.append(f"{name} ({nulls[0]:,} in A, {nulls[1]:,} in B)")
    if different:
        shown = ", ".join(different[:_MAX_NAMES])
        more = f" and {len(different) - _MAX_NAMES:,} more columns" if len(different) > _MAX_NAMES else ""
        yield f"The rows differ: the files to read have other numbers of nulls in {shown}{more}."


_MAX_NAMES = 3


def _outside(plan: RowDiffPlan, sides: tuple[_FileStatistics, _FileStatistics]) -> Iterator[str]:
    """Yield a sentence for each side with files whose values are outside of the bounds of all files of the other."""
    best: dict[int, tuple[int, str]] = {}
    for name in plan.columns:
        if name in plan.rules.absolute or name in plan.rules.relative:
            continue
        bounds = [sides[0].bounds(plan.aligned.names_a[name]), sides[1].bounds(name)]
        for index, (own, other) in enumerate((bounds, bounds[::-1])):
            if own is not None and other is not None and own.is_date == other.is_date:
                rows = own.values_outside(other)
                best[index] = max(best.get(index, (0, "")), (rows, name), key=lambda rows_and_name: rows_and_name[0])
    for index, (rows, name) in sorted(best.items()):
        own_side, other_side = "AB" if index == 0 else "BA"
        if rows:
            differ, values = ("differs", "its value") if rows == 1 else ("differ", "their values")
            yield (
                f"At least {pluralize(rows, 'row')} of {own_side} {differ}: no file to read of {other_side} has "
                f"{values} of {name}, by its bounds."
            )


def _partitions(plan: RowDiffPlan, shared: Sequence[Split]) -> pa.Table | None:
    """Return PLANNED_PARTITIONS by the partition columns that both tables have and compare exactly."""
    names_a = plan.aligned.names_a
    loose = {*plan.rules.absolute, *plan.rules.relative}
    names = [
        name
        for name in plan.b.version.schema.partition_keys
        if name in plan.columns and names_a[name] in plan.a.version.schema.partition_keys and name not in loose
    ]
    if not names or plan.rules.changes_texts:
        return None
    fields = [plan.schema.field(name) for name in names]
    groups: dict[Values, list[list[Split]]] = defaultdict(lambda: [[], [], []])
    parts = (
        (plan.a.version, plan.a.splits, [names_a[name] for name in names]),
        (plan.b.version, plan.b.splits, names),
        (plan.b.version, shared, names),
    )
    for index, (version, splits, own_names) in enumerate(parts):
        for split in splits:
            values = _values(version, split, own_names, fields)
            if values is None:
                return None
            groups[values][index].append(split)
    rows = []
    for values, (of_a, of_b, of_both) in groups.items():
        numbers = exact_rows(of_a), exact_rows(of_b)
        is_different = None not in numbers and numbers[0] != numbers[1]
        rows.append(
            {
                "partition": [
                    (name, format_cell(value).text if value.is_valid else None)
                    for name, value in zip(names, values, strict=True)
                ],
                "shared_files": _file_count(of_both),
                "files_a": _file_count(of_a),
                "files_b": _file_count(of_b),
                "rows_a": numbers[0],
                "rows_b": numbers[1],
                "proof": "equal" if not (of_a or of_b) else "different" if is_different else None,
            }
        )
    order = ("different", None, "equal")
    rows.sort(key=lambda row: (order.index(row["proof"]), repr(row["partition"])))
    return pa.Table.from_pylist(rows, frames.PLANNED_PARTITIONS)


def _values(version: TableVersion, split: Split, names: Sequence[str], fields: Sequence[pa.Field]) -> Values | None:
    """Return the values that partition columns have in all rows of a split, in the types to compare; None if unknown.

    Floats are unknown: NaN equals NaN, and 0.0 differs from -0.0.
    """
    native = version.native_files.of(split) or version.native_files.by_names(split)
    if native is None or native.partition is None:
        return None
    values = []
    for name, field in zip(names, fields, strict=True):
        if name not in native.partition.column_names or pa.types.is_floating(field.type):
            return None
        try:
            values.append(native.partition[name][0].cast(field.type))
        except pa.ArrowException:
            return None
    return tuple(values)


def exact_rows(splits: Sequence[Split]) -> int | None:
    """Return the number of rows of splits; None if the metadata does not count them."""
    counts = [split.rows if split.raw else split.live_rows for split in splits]
    return None if None in counts else sum(count or 0 for count in counts)


def _file_count(splits: Sequence[Split]) -> int:
    return len({path for split in splits for path in split.files})
