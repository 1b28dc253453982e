"""`diff` and `diff3`: the rows that differ between snapshots of any tables and formats, DataFrames and files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import pyarrow as pa

from snapshot_explorer.analysis.diff import RowDiff, RowDiffPlan, row_diff_by
from snapshot_explorer.analysis.pairs import PairRequest, PairSide, given_side, plan_pair, three_way_diff
from snapshot_explorer.analysis.repair import RepairRequest, merge_statement
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.history import History, OpenBranch
from snapshot_explorer.table import Snapshot, parts_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.diff import Tolerance
    from snapshot_explorer.analysis.pairs import MergeStatement, ThreeWayDiff


_WITH_BASE = Hint("", {"base": ...})
Rows: TypeAlias = "Snapshot | str | os.PathLike[str] | object"
"""A snapshot, the path of files, or a DataFrame."""


@overload
def diff(
    a: Rows,
    b: Rows,
    key: Sequence[str] | str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] | None = None,
    where: str | None = None,
    tolerance: Tolerance = None,
    relative_tolerance: Tolerance = None,
    ignore_case: bool = False,
    trim: bool = False,
    engine: str | SparkSession | None = None,
    preview: Literal[False] = False,
    memory_limit: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> RowDiff: ...
@overload
def diff(
    a: Rows,
    b: Rows,
    key: Sequence[str] | str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] | None = None,
    where: str | None = None,
    tolerance: Tolerance = None,
    relative_tolerance: Tolerance = None,
    ignore_case: bool = False,
    trim: bool = False,
    engine: str | SparkSession | None = None,
    preview: Literal[True],
    memory_limit: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> RowDiffPlan: ...
@reports_lacking_resources
def diff(  # noqa: PLR0913 - the sides and the rules of the comparison
    a: Rows,
    b: Rows,
    key: Sequence[str] | str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] | None = None,
    where: str | None = None,
    tolerance: Tolerance = None,
    relative_tolerance: Tolerance = None,
    ignore_case: bool = False,
    trim: bool = False,
    engine: str | SparkSession | None = None,
    preview: bool = False,
    memory_limit: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> RowDiff | RowDiffPlan:
    """Return the rows that differ between two sets of rows: inserted, deleted and updated.

    Either side is a snapshot of a table, whatever its format, or other rows:

    - a DataFrame of pandas or polars, an Arrow table, a DuckDB relation, or anything else with `__arrow_c_stream__`.
      Its rows are held in memory. Levels of a pandas index that have names are columns. NaN in a NumPy column of pandas
      is null; columns with Arrow's types, as `to_pandas()` returns them, have both
    - a DataFrame of Spark, with `engine="spark"`
    - the path or URL of a Parquet, ORC, Avro, CSV or Arrow file, or of a folder of them, as text. Folders such as
      `day=2026-11-01` are columns. Texts in CSV files and in names of folders are read as the types of the columns that
      they are compared with; a text that is no such value is an error, and only an empty one without quotes is null

    The rows of A less `RowDiff.before` plus `RowDiff.after` are the rows of B in the columns that are compared, as
    multisets. Within one table, `Table.diff_rows` also follows renamed columns.

    Columns are paired by name, without regard to case where that is unambiguous, and have the names of B. Columns that
    one table lacks are listed and not compared. Types that store the same values in different ways are compared in a
    type that has both: integers of any width, decimals of any scale, timestamps of any unit and zone (without a zone,
    as UTC), text and binary, structs by the names of their fields. Other types are refused before rows are read. Values
    are compared as by `Table.diff_rows`.

    A data file that both tables have, such as a clone's file, is not read if metadata proves that its rows are the same
    in both. If one table finds columns by ids and the other by names, the proof reads the footers of local files;
    remote files are read.

    Args:
        a: The rows before the changes.
        b: The rows after the changes, whose names are used.
        key: The columns that identify a row, unique and not null in each table; by default the primary key, if it is
            the same in both. Without a key (`[]`), whole rows are compared and none is updated.
        columns: Columns of A by their names there, with their names in B: `{"id": "order_id"}`.
        exclude: Columns that are not compared, by their names in either table.
        where: A condition in DuckDB's SQL, with the names of B. Compares the rows of each table that match.
        tolerance: The maximum difference of numbers outside of the key: one for all, or by column. It is exact for
            integers and decimals.
        relative_tolerance: The same, as a share of the number that is further from 0. Either is enough.
        ignore_case: Whether texts are equal if they differ only in case, in the key too. Not in nested columns.
        trim: Whether white space around texts does not matter; likewise.
        engine: As for `Table.diff_rows`: `local` (the default), `spark` or a session.
        preview: Return the plan: the proofs from common files and from numbers of rows, nulls, bounds and partitions,
            the size of the read, and the maximum number of rows that can differ. Reads no rows.
        memory_limit: As for `Table.diff_rows`.
        storage_options: The credentials for a path of files; the names of fsspec's file system.

    Raises:
        InvalidArgumentError: A column, the condition or a tolerance is not valid, the tables have no common column, or
            the key has nulls or is not unique.
        SnapshotNotFoundError: A version has expired.
        UnsupportedFeatureError: A version needs a feature that is not supported, or columns have types that are not
            equivalent; the message names all of them.
        CorruptTableError: A file is missing or damaged; the message names it.
    """
    request = PairRequest(
        key=key,
        columns=columns,
        exclude=exclude,
        where=where,
        tolerance=tolerance,
        relative_tolerance=relative_tolerance,
        ignore_case=ignore_case,
        trim=trim,
    )
    plan = plan_pair(*_sides(a, b, columns, storage_options), request, statistics=preview)
    return plan if preview else row_diff_by(engine, plan, memory_limit=memory_limit)


@reports_lacking_resources
def diff3(  # noqa: PLR0913 - the sides and the rules of the comparison
    base: Rows | None,
    ours: Rows,
    theirs: Rows,
    key: Sequence[str] | str | None = None,
    *,
    exclude: Sequence[str] | None = None,
    where: str | None = None,
    memory_limit: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> ThreeWayDiff:
    """Return the rows that two sides changed since a common base, by key and by cell, and where they conflict.

    For write-audit-publish (main, the branch with new data, and where they parted), clones and restored copies. Reads
    what differs between the base and each side; files that they share are not read. Nothing is merged or written.

    Args:
        base: The rows that both sides began with, as in `diff`; None for the newest version that the branches of two
            snapshots of one table both have.
        ours: The rows that the changes of the other side would be brought to.
        theirs: The rows of the other side.
        key: The columns that identify a row, by the names of the base; by default the primary key, if all three have
            the same.
        exclude: Columns that are not compared. Columns that not all three have are listed, and not compared either.
        where: A condition in DuckDB's SQL. Compares the rows of each version that match.
        memory_limit: As for `Table.diff_rows`, for each side.
        storage_options: As for `diff`.

    Raises:
        InvalidArgumentError: There is no key, or it has nulls or is not unique; or there is no common version.
        UnsupportedFeatureError: Columns have types that are not equivalent.
        CorruptTableError: A file is missing or damaged; the message names it.
    """
    given = [_side_of(side) if isinstance(side, Snapshot) else None for side in (ours, theirs)]
    start = _common_version(*given) if base is None else _side_of(base) if isinstance(base, Snapshot) else None
    known = next((side for side in (start, *given) if side is not None), None)
    like = None if known is None else known.version.arrow_schema
    sides = [
        side or given_side(value, like, storage_options)
        for side, value in zip((start, *given), (base, ours, theirs), strict=True)
    ]
    request = PairRequest(key=key, exclude=exclude, where=where)
    result = three_way_diff(sides[0], sides[1], sides[2], request, memory_limit=memory_limit)
    return replace(result, writer=partial(_write_merge, ours)) if isinstance(ours, Snapshot) else result


def _write_merge(ours: Snapshot, diff: ThreeWayDiff, name: str | None) -> MergeStatement:
    parts = parts_of(ours)
    branch = OpenBranch(
        parts.loaded.path, parts.table_format, name=parts.name, branch=parts.branch, note_level=logging.INFO
    )
    version = parts.loaded.version
    request = RepairRequest(
        source=History(branch),
        now=version,
        then=version,
        undone=version,
        where=None,
        key=[diff.names_in_ours[column] for column in diff.key],
        engine_name=name,
    )
    return merge_statement(request, diff)


def _common_version(ours: PairSide | None, theirs: PairSide | None) -> PairSide:
    """Return the newest version that the branches of two snapshots both have, and neither is older than."""
    if ours is None or theirs is None or ours.format is None or theirs.format is None or ours.path != theirs.path:
        raise InvalidArgumentError(
            Message("The base is only known for two branches of one table. For others, pass ", _WITH_BASE)
        )
    shared = ours.format.branches.shared_versions(theirs.format.branches) if ours.branch != theirs.branch else {}
    newest = ours.version.number, theirs.version.number
    numbers = [
        number
        for number, there in shared.items()
        if newest[0] is not None and newest[1] is not None and number <= newest[0] and there <= newest[1]
    ]
    if not numbers:
        raise InvalidArgumentError(
            Message(
                "The two sides have no common version before them: they are on one branch, or on branches that share "
                "none. Pass a base: ",
                _WITH_BASE,
            )
        )
    return replace(ours, version=ours.format.version(max(numbers)))


def _sides(
    a: object, b: object, columns: Mapping[str, str] | None, storage_options: Mapping[str, Any] | None
) -> tuple[PairSide, PairSide]:
    """Return the sides of the diff. Rows without types of their own get the types of the snapshot beside them."""
    snapshots = [_side_of(value) if isinstance(value, Snapshot) else None for value in (a, b)]
    schema_a, schema_b = (None if side is None else side.version.arrow_schema for side in snapshots)
    renames = columns if isinstance(columns, Mapping) else {}
    like_a = schema_b and _renamed(schema_b, {new: old for old, new in renames.items()})
    like_b = schema_a and _renamed(schema_a, renames)
    return (
        snapshots[0] or given_side(a, like_a, storage_options),
        snapshots[1] or given_side(b, like_b, storage_options),
    )


def _renamed(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    return pa.schema([field.with_name(names.get(field.name, field.name)) for field in schema])


def _side_of(snapshot: Snapshot) -> PairSide:
    parts = parts_of(snapshot)
    loaded = parts.loaded
    return PairSide(
        path=loaded.path, name=parts.name, branch=parts.branch, format=parts.table_format, version=loaded.version
    )
