"""`diff`: the rows that differ between two snapshots of any tables and formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from snapshot_explorer.analysis.rows import PairRequest, PairSide, RowDiff, RowDiffPlan, plan_pair, row_diff_by
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.snapshot import Snapshot, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.rows import Tolerance


@overload
def diff(
    a: Snapshot,
    b: Snapshot,
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
) -> RowDiff: ...
@overload
def diff(
    a: Snapshot,
    b: Snapshot,
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
) -> RowDiffPlan: ...
@reports_lacking_resources
def diff(  # noqa: PLR0913 - the sides and the rules of the comparison
    a: Snapshot,
    b: Snapshot,
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
) -> RowDiff | RowDiffPlan:
    """Return the rows that differ between two snapshots of any tables and formats: inserted, deleted and updated.

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
        a: The snapshot before the changes.
        b: The snapshot after the changes, whose names are used.
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

    Raises:
        InvalidArgumentError: A column, the condition or a tolerance is not valid, the tables have no common column, or
            the key has nulls or is not unique.
        SnapshotNotFoundError: A version has expired.
        UnsupportedFeatureError: A version needs a feature that is not supported, or columns have types that are not
            equivalent; the message names all of them.
        CorruptTableError: A file is missing or damaged; the message names it.
    """
    for snapshot in (a, b):
        if not isinstance(snapshot, Snapshot):
            raise InvalidArgumentError(
                Message(
                    f"diff compares snapshots, got {type(snapshot).__name__}. A snapshot is ",
                    Hint("table.at", {"ref": 7}),
                    " or ",
                    Hint("table.at", {"ref": "latest"}),
                    ".",
                )
            )
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
    plan = plan_pair(_side(a), _side(b), request, statistics=preview)
    return plan if preview else row_diff_by(engine, plan, memory_limit=memory_limit)


def _side(snapshot: Snapshot) -> PairSide:
    """Return a snapshot as one side of the diff."""
    parts = parts_of(snapshot)
    loaded = parts.loaded
    return PairSide(
        path=loaded.path, name=parts.name, branch=parts.branch, format=parts.table_format, version=loaded.version
    )
