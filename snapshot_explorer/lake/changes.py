"""`LakeChanges`: the commits of all tables of a lake in one log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.history.overview import last_part
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from snapshot_explorer.table import Table

Grouping = Literal["table", "user", "hour"]
_SUMS = ("added_rows", "removed_rows", "added_bytes", "removed_bytes")
_DRAWN = ("committed_at", "table", "version", "kind", "operation", "user", "rows", "total_rows")


def read_changes(table: Table, since: datetime, until: datetime) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the COMMITS of a table in a range of time, and sentences on versions that are missing."""
    history = table.history(since=since, until=until)
    return history.to_arrow(), history.notes


class LakeChanges(Frame):
    """LAKE_COMMITS, newest first."""

    __slots__ = ("call", "unread")

    call: str
    """The Python that returns the same."""
    unread: tuple[str, ...]
    """The names of the tables that could not be read, sorted; the notes say why."""

    @classmethod
    def of(
        cls,
        results: Sequence[tuple[str, tuple[pa.Table, tuple[str, ...]] | SnapshotExplorerError]],
        *,
        name: str,
        since: datetime,
        until: datetime,
    ) -> LakeChanges:
        """Return the commits of tables by name, with errors and missing versions in the notes."""
        parts, notes, is_of_files = [frames.no_rows(frames.LAKE_COMMITS)], [], False
        for table, result in sorted(results, key=lambda item: item[0]):
            if isinstance(result, SnapshotExplorerError):
                notes.append(f"{table} could not be read: {result}")
                continue
            commits, sentences = result
            columns = {column: commits[column] for column in frames.LAKE_COMMITS.names if column != "table"}
            if len(commits):
                parts.append(frames.table_of(frames.LAKE_COMMITS, {**columns, "table": table}))
                is_of_files |= frames.has_rows_in_files(commits)
            notes += [f"{table}: {sentence}" for sentence in sentences]
        rows = pa.concat_tables(parts).sort_by(
            [("committed_at", "descending"), ("table", "ascending"), ("version", "descending")]
        )
        rows = frames.with_rows_in_files(rows) if is_of_files else rows
        span = f"{since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC"
        title = f"Changes of {last_part(name)}, {span}"
        empty = {column for column in rows.column_names if 0 < len(rows) == rows[column].null_count}
        drawn = tuple(column for column in _DRAWN if column not in empty)
        period = {"since": since, "until": until}
        changes = cls(
            rows, title=title, noun="commits", drawn=drawn, notes=tuple(notes), kind="lake log", options=period
        )
        changes.call = (
            f"open_lake({name!r}).changes({f'{since:%Y-%m-%d %H:%M:%S}'!r}, {f'{until:%Y-%m-%d %H:%M:%S}'!r})"
        )
        changes.unread = tuple(sorted(table for table, item in results if isinstance(item, SnapshotExplorerError)))
        return changes

    def by(self, grouping: Grouping = "table") -> Frame:
        """Return LAKE_SUMMARY after a column for the table, the user, or the hour in UTC in which commits were made.

        Raises:
            InvalidArgumentError: There is no such grouping.
        """
        if grouping not in get_args(Grouping):
            raise InvalidArgumentError(f"by must be one of {', '.join(get_args(Grouping))}, got {grouping!r}.")
        rows = self.to_arrow()
        key = pc.floor_temporal(rows["committed_at"], unit="hour") if grouping == "hour" else rows[grouping]
        grouped = rows.append_column("key", key).group_by("key")
        kept = pc.ScalarAggregateOptions(skip_nulls=False)
        sums = grouped.aggregate(
            [
                ("version", "count"),
                ("table", "count_distinct"),
                ("committed_at", "min"),
                ("committed_at", "max"),
                *((name, "sum", kept) for name in _SUMS),
            ]
        ).sort_by("key")
        names = ["version_count", "table_count_distinct", "committed_at_min", "committed_at_max"]
        names += [f"{name}_sum" for name in _SUMS]
        columns = dict(zip(frames.LAKE_SUMMARY.names, (sums[name] for name in names), strict=True))
        table = frames.table_of(frames.LAKE_SUMMARY, columns)
        field = pa.field(grouping, key.type, metadata={"meaning": f"the {grouping}; null if it was not recorded"})
        return Frame(
            table.add_column(0, field, sums["key"]),
            title=f"{self.title}, by {grouping}",
            noun=f"{grouping}s",
            notes=self.notes,  # the commits that are missing from the sums
        )
