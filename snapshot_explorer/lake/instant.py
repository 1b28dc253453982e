"""`LakeSnapshot`: the version of every table of a lake at one instant. Saved as JSON, opened again, and queried."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import (
    InvalidArgumentError,
    InvalidRefError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from snapshot_explorer.core.refs import AsOf, Latest, OfBranch, Ref, RefLike, Version, parse_ref
from snapshot_explorer.core.refs.records import brief_repr, format_time
from snapshot_explorer.core.resources import reporting_lacking_resources
from snapshot_explorer.core.safe_text import sanitize_json
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats import json_text
from snapshot_explorer.history import NothingBeforeError, history_of
from snapshot_explorer.lake.names import find_by_name, short_name, short_names
from snapshot_explorer.lake.overview import left_note
from snapshot_explorer.lake.tables import LakeTable
from snapshot_explorer.results import Frame, non_empty_columns
from snapshot_explorer.results.outputs import output_file
from snapshot_explorer.storage.hidden import hidden_options
from snapshot_explorer.table import open_table, queries
from snapshot_explorer.table.queries import VersionedTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.history import History
    from snapshot_explorer.table import Snapshot, Table

_KIND = "snapshot_explorer lake snapshot 1"
"""The `kind` of the JSON, with the number of its form."""
_MAX_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTable:
    """The version of a table that was current at an instant."""

    name: str
    path: str | None
    """The path for `open_table`, without secrets; None if the table could not be opened."""
    format: str | None
    version: int | None
    """None if there was no version yet, or the table could not be read."""
    committed_at: datetime | None
    """When the version was committed, aware, UTC."""
    branch: str | None = None
    """The branch of the version if main no longer has it; None for main."""
    note: str | None = None
    """Ties, commits within a minute after the instant, a rollback since, or why there is no version."""
    problem: str | None = None
    """Why the table could not be read."""


def pin(entry: LakeTable, time: datetime) -> PinnedTable:
    """Return the version of a table that was current at a time. A few requests; see `Table.at`."""
    table = entry.open()
    ref = AsOf(time=time)
    pinned = {"name": entry.name, "path": table.path, "format": table.format}
    try:
        snapshot = table.at(ref)
    except NothingBeforeError as error:
        return PinnedTable(**pinned, version=None, committed_at=None, note=error.message)
    version, branch = snapshot.version, snapshot.branch
    if version is None:
        return PinnedTable(**pinned, version=None, committed_at=None, note="No version has been committed.")
    owner = history_of(table) if branch is None else history_of(table).on_branch(branch)
    committed_at = owner.committed_at([version])[0]
    notes = (branch and left_note(branch), history_of(table).time_note(ref), _tie_note(owner, version, committed_at))
    note = " ".join(filter(None, notes)) or None
    return PinnedTable(**pinned, version=version, committed_at=committed_at, branch=branch, note=note)


def failed_entry(entry: LakeTable, error: SnapshotExplorerError) -> PinnedTable:
    """Return the record of a table that cannot be read."""
    return PinnedTable(
        name=entry.name, path=entry.path, format=entry.format, version=None, committed_at=None, problem=error.message
    )


def _tie_note(history: History, version: int, committed_at: datetime) -> str | None:
    """Return a sentence on the previous version if it has the same or a later time."""
    before = history.listing.predecessor(version)
    if before is None:
        return None
    try:
        time = history.committed_at([before])[0]
    except SnapshotExplorerError:
        return None
    if time == committed_at:
        return f"Versions {before} and {version} have the same time; {version} is the later one."
    if time > committed_at:
        return f"Version {before}, the one before, has a later time, {format_time(time)}: clocks differ."
    return None


@reporting_lacking_resources
@dataclass(frozen=True, kw_only=True)
class LakeSnapshot(Shown):
    """The version of every table of a lake at one instant. A record: later commits do not change it."""

    name: str
    """The folder or the catalog of the lake, without secrets."""
    time: datetime
    """The instant, aware, UTC."""
    tables: tuple[PinnedTable, ...]
    """A record for each table, sorted by name."""
    entries: Mapping[str, LakeTable] = field(repr=False, compare=False)
    """The tables by name, opened at first use. Not part of the JSON."""

    @cached_property
    def versions(self) -> Frame:
        """Return LAKE_VERSIONS: name, format, version, time, notes and problems."""
        return _versions_frame(self.tables, title=f"Versions of {self.name} at {format_time(self.time)}")

    def __getitem__(self, name: str) -> Snapshot:
        return self.snapshot(find_by_name(name, {table.name: table for table in self.tables}, self.name))

    def sql(
        self,
        query: str,
        engine: str = "duckdb",
        *,
        spark: SparkSession | None = None,
        before: queries.Before | None = None,
    ) -> pd.DataFrame | DataFrame:
        """Return the result of a query over the tables at this instant, by their names.

        A table whose last part of the name is unique may be named by that part: `orders` for `shop.db/orders`; others
        by the whole name in double quotes. A table with its own version, such as `orders version as of 17`, is read at
        that version. `sources` returns which versions a query reads; a pandas result has them in `attrs["versions"]`.
        Syntax, engines, results and errors as `snapshot_explorer.sql`.
        """
        used: list[tuple[str, Snapshot]] = []
        result = queries.sql(query, self._tables(used), engine=engine, spark=spark, before=before)
        attributes: object = getattr(result, "attrs", None)
        if isinstance(attributes, dict):  # pandas
            attributes["versions"] = [f"{name}@{snapshot.version}" for name, snapshot in used]
        return result

    def sources(self, query: str) -> Frame:
        """Return LAKE_VERSIONS of the versions that a query reads. Reads no rows."""
        used: list[tuple[str, Snapshot]] = []
        queries.check(query, self._tables(used))
        records = {table.name: table for table in self.tables}
        rows = [
            PinnedTable(
                name=name,
                path=records[name].path,
                format=records[name].format,
                version=snapshot.version,
                committed_at=None if snapshot.version is None else snapshot.committed_at,
                branch=snapshot.branch,
                note=None if snapshot.version == records[name].version else "The query names this version.",
            )
            for name, snapshot in used
        ]
        return _versions_frame(rows, title="Versions that the query reads")

    def to_json(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return the record as JSON text, or write it to a file. It contains no credentials.

        Raises:
            InvalidArgumentError: The file is in a table, or its folder does not exist.
            OSError: The file cannot be written.
        """
        tables = [{item.name: getattr(table, item.name) for item in fields(table)} for table in self.tables]
        record = {"kind": _KIND, "name": self.name, "time": self.time, "tables": tables}
        content = sanitize_json(orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode())
        if path is None:
            return content
        with output_file(path) as file:
            file.write(content.encode())
        return None

    @classmethod
    def from_json(
        cls, source: str | PathLike[str], *, storage_options: Mapping[str, Any] | None = None
    ) -> LakeSnapshot:
        """Return a record from a file that `to_json` wrote, or from its text. Opens no table.

        Args:
            source: The path of the file, or the text, which begins with a brace.
            storage_options: Credentials and settings for all tables.

        Raises:
            InvalidArgumentError: It is not a record of `Lake.at`.
            LimitError: Its values are nested too deep.
            OSError: The file cannot be read.
        """
        storage_options = hidden_options(storage_options)
        if not isinstance(source, str | os.PathLike):
            raise InvalidArgumentError(f"source must be a path or JSON text, got {type(source).__name__}.")
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        try:
            content = str(source).encode() if is_text else Path(source).read_bytes()
            record = json_text.loads(content, "The record of a lake")
        except ValueError as error:  # of JSON, of UTF-8, or of the path
            raise InvalidArgumentError(f"The record of a lake is not valid JSON: {error}.") from None
        if not isinstance(record, dict) or record.get("kind") != _KIND:
            raise InvalidArgumentError(
                f"The JSON is not the record of a lake: its kind must be {_KIND!r}. LakeSnapshot.to_json writes one."
            )
        tables = tuple(_parse_pinned_table(item) for item in _typed(record, "tables", list))
        return cls(
            name=_typed(record, "name", str),
            time=_parse_time(_typed(record, "time", str)),
            tables=tables,
            entries={table.name: _reopen(table, storage_options) for table in tables},
        )

    def __repr__(self) -> str:
        known = sum(table.version is not None for table in self.tables)
        return f"LakeSnapshot({self.name!r}, time={format_time(self.time)!r}, tables={len(self.tables)}, known={known})"

    def snapshot(self, table: PinnedTable) -> Snapshot:
        """Return the pinned version of a table.

        Raises:
            SnapshotNotFoundError: There was no version, it has expired, or another commit has its number now.
        """
        if table.version is None:
            reason = table.problem or table.note or ""
            raise SnapshotNotFoundError(f"{table.name} has no known version at {format_time(self.time)}. {reason}")
        opened = self.entries[table.name].open()
        number = table.version
        ref = Version(number=number) if table.branch is None else OfBranch(name=table.branch, number=number)
        snapshot = opened.at(ref)
        if table.committed_at is not None and snapshot.committed_at != table.committed_at:
            raise SnapshotNotFoundError(
                f"Version {table.version} of {table.name} is not the recorded one: it was committed at "
                f"{format_time(snapshot.committed_at)}, recorded is {format_time(table.committed_at)}. The table was "
                "replaced, rolled back or copied since; pin it again."
            )
        return snapshot

    def _tables(self, used: list[tuple[str, Snapshot]]) -> _Tables:
        return _Tables(self, used)


class _Tables(Mapping[str, VersionedTable]):
    """The tables by their names in queries. A table is opened when a query reads it."""

    def __init__(self, lake: LakeSnapshot, used: list[tuple[str, Snapshot]]) -> None:
        self._lake = lake
        self._used = used
        self._by_name = short_names({table.name: table for table in lake.tables})
        self._tables: dict[str, VersionedTable] = {}

    def __getitem__(self, name: str) -> VersionedTable:
        table = self._by_name[name]
        return self._tables.setdefault(table.name, _PinnedVersions(self._lake, table, self._used))

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


class _PinnedVersions(VersionedTable):
    """A table whose newest version is the pinned one. Notes each snapshot that it returns."""

    def __init__(self, lake: LakeSnapshot, pinned: PinnedTable, used: list[tuple[str, Snapshot]]) -> None:
        self._lake = lake
        self._pinned = pinned
        self._used = used

    def at(self, ref: RefLike) -> Snapshot:
        """Return the snapshot of a ref; `latest` is the pinned version."""
        ref = parse_ref(ref)
        snapshot = self._lake.snapshot(self._pinned) if isinstance(ref, Latest) and not ref.back else self._other(ref)
        key = (self._pinned.name, snapshot.version, snapshot.branch)
        if all((name, known.version, known.branch) != key for name, known in self._used):
            self._used.append((self._pinned.name, snapshot))
        return snapshot

    def _other(self, ref: Ref) -> Snapshot:
        if isinstance(ref, Latest):
            ref = Version(number=self._lake.snapshot(self._pinned).version or 0, back=ref.back)
        return self._table.at(ref)

    @property
    def _past(self) -> History:
        """The history of the table, for `history_of`."""
        return history_of(self._table)

    @property
    def _table(self) -> Table:
        return self._lake.entries[self._pinned.name].open()


def _versions_frame(tables: Sequence[PinnedTable], *, title: str) -> Frame:
    names = frames.LAKE_VERSIONS.names
    rows = pa.Table.from_pylist(
        [{name: getattr(table, name) for name in names} for table in tables], schema=frames.LAKE_VERSIONS
    )
    unknown = sum(table.version is None for table in tables)
    notes = (f"{pluralize(unknown, 'table')} without a known version.",) if unknown else ()
    drawn = non_empty_columns(rows, exclude=("path",))
    return Frame(rows, title=title, noun="tables", drawn=drawn, notes=notes, limit=len(rows))


def _reopen(table: PinnedTable, storage_options: Mapping[str, Any] | None) -> LakeTable:
    def opener() -> Table:
        if table.path is None:
            raise TableNotFoundError(f"The record of the lake has no path of {table.name}.")
        return open_table(table.path, format=table.format, storage_options=storage_options, name=short_name(table.name))

    return LakeTable(table.name, path=table.path, table_format=table.format, opener=opener)


def _parse_pinned_table(item: object) -> PinnedTable:
    if not isinstance(item, dict):
        raise InvalidArgumentError("The record of a lake must have an object for each of its tables.")
    unknown = item.keys() - {known.name for known in fields(PinnedTable)}
    if unknown:
        raise InvalidArgumentError(f"The record of a lake has an unknown member, {min(unknown)!r}.")
    texts = {
        name: _typed(item, name, str, is_optional=True) for name in ("path", "format", "branch", "note", "problem")
    }
    time = _typed(item, "committed_at", str, is_optional=True)
    version = _typed(item, "version", int, is_optional=True)
    if version is not None and not 0 <= version <= _MAX_VERSION:
        raise InvalidArgumentError(f"version in the record of a lake must be 0 to {_MAX_VERSION}, got {version}.")
    committed_at = None if time is None else _parse_time(time)
    return PinnedTable(name=_typed(item, "name", str), version=version, committed_at=committed_at, **texts)


def _typed(record: Mapping[str, Any], name: str, dtype: type, *, is_optional: bool = False) -> Any:
    value = record.get(name)
    if type(value) is dtype or (is_optional and value is None):
        return value
    raise InvalidArgumentError(f"{name} in the record of a lake must be {dtype.__name__}, got {brief_repr(value)}.")


def _parse_time(value: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):  # the first and the last day of the calendar have no time in other zones
        pass
    raise InvalidRefError(f"{brief_repr(value)} in the record of a lake is not a time with a zone.")
