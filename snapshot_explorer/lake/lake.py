"""`Lake`: many tables as one object; and `open_lake`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from snapshot_explorer.analysis.checks import CheckResult, check_settings, check_table, matches
from snapshot_explorer.analysis.usage import Price, checked_prices
from snapshot_explorer.core.errors import (
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.refs.grammar import parse_time_bound
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.core.resources import reporting_lacking_resources, reports_lacking_resources
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.engines.spark.metadata import is_spark
from snapshot_explorer.history import history_of
from snapshot_explorer.lake.changes import LakeChanges, read_changes
from snapshot_explorer.lake.checks import check_lake
from snapshot_explorer.lake.comparison import diff_frame, diff_row
from snapshot_explorer.lake.following import LakeFollower
from snapshot_explorer.lake.instant import LakeSnapshot, PinnedTable, failed_entry, pin
from snapshot_explorer.lake.names import find_by_name, suggest_names
from snapshot_explorer.lake.overview import LakeOverview, OverviewRequest, failed_row, overview_row
from snapshot_explorer.lake.processes import ReaderProcesses, each_table
from snapshot_explorer.lake.spark_rows import rows_on_spark
from snapshot_explorer.lake.tables import LakeTable, at_one_instant, tables_below, tables_in_catalog
from snapshot_explorer.lake.threads import concurrently
from snapshot_explorer.lake.tracing import LakeTrace, trace_tables
from snapshot_explorer.lake.usage import lake_usage_frame, usage_row
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.hidden import hidden_options, hidden_text, hidden_url
from snapshot_explorer.table import Table
from snapshot_explorer.table.catalogs import check_is_folder
from snapshot_explorer.table.catalogs.folder_hints import other_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike
    from threading import Lock

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.checks import CheckLine, CheckSettings
    from snapshot_explorer.lake.tracing import ColumnNames
    from snapshot_explorer.results import Frame

A = TypeVar("A")

SHOW_SECONDS = 0.5


@reporting_lacking_resources
class Lake(Shown):
    """Tables of any formats, read together. Created by `open_lake`. Safe to use from several threads.

    Iterating yields each `LakeTable`, sorted by name; `lake["orders"]` opens one.
    """

    def __init__(
        self,
        name: str,
        tables: Sequence[LakeTable],
        *,
        note: str = "",
        time: datetime | None = None,
        processes: ReaderProcesses | None = None,
    ) -> None:
        self.name = name
        """The folder or the catalog, without secrets."""
        self.tables = tuple(tables)
        """The tables, sorted by name."""
        self.note = note
        """How many folders were listed, in words; empty for a catalog."""
        self.time = time
        """The time at which the tables are viewed; None for now."""
        self._overview: LakeOverview | None = None
        self._processes = processes or ReaderProcesses()

    def matching(self, *patterns: str) -> Lake:
        """Return a lake of the tables whose names match one of the patterns, such as `shop.*`. No request.

        Raises:
            TableNotFoundError: No table matches; the message has the nearest names.
        """
        if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
            got = ", ".join(brief_repr(pattern) for pattern in patterns) or "none"
            raise InvalidArgumentError(f"A pattern must be text such as shop.*, got {got}.")
        tables = [table for table in self.tables if any(matches(table.name, pattern) for pattern in patterns)]
        if not tables:
            hint = suggest_names(patterns[0], [table.name for table in self.tables])
            raise TableNotFoundError(f"No table of {self.name} matches {', '.join(patterns)}. {hint}")
        return Lake(self.name, tables, note=self.note, time=self.time)

    def each(
        self, work: Callable[[LakeTable], A], *, what: str = "Reading tables"
    ) -> Iterator[tuple[LakeTable, A | SnapshotExplorerError]]:
        """Yield each table with the result of some work on it, or its error, as soon as it is there.

        At most 256 tables at the same time. Work that has not begun is cancelled when the caller stops.

        Args:
            work: Called in a thread. Its errors of this package are yielded; others are raised.
            what: A short description of the work, for the progress.
        """
        return concurrently(self.tables, work, what=what)

    def _each_at_one_instant(
        self, work: Callable[[LakeTable], A], *, what: str
    ) -> Iterator[tuple[LakeTable, A | SnapshotExplorerError]]:
        """Yield as `each`, for work that reads metadata alone."""
        with at_one_instant(self.tables):
            yield from self.each(work, what=what)

    def overview(
        self,
        since: str | datetime = "1d",
        *,
        health: bool = False,
        engine: str = "local",
        spark: SparkSession | None = None,
        show: Callable[[LakeOverview], object] | None = None,
    ) -> LakeOverview:
        """Return LAKE_OVERVIEW, the most urgent tables first: a row per table with its rhythm and its changes.

        Of each table, the newest 12 commits are read, and more where these do not reach back to `since`, or where the
        table seems late. Reads metadata alone. A table that cannot be read is a row with its problem.

        100 tables or more below a folder are read by up to 4 processes of this machine, one per processor.

        Args:
            since: The start of the period in which commits, rows and bytes are counted: `1d`, `yesterday` or a
                datetime.
            health: Whether to read the health of each newest version too: its list of files and manifests.
            engine: `local`, or `spark`: executors read the tables below a folder, 20 to a task.
            spark: The session. By default the active one; if there is none, a local session is started.
            show: Called twice a second with the tables that have been read, in the calling thread.

        Raises:
            InvalidArgumentError: `since` is not a time, or the engine is unknown.
            UnsupportedFeatureError: The tables are in a catalog, and the engine is Spark.
        """
        request = overview_request(self, since, health=health)
        if is_spark(engine):
            rows = rows_on_spark(self.tables, request, spark)
        else:
            rows = []
            shown = monotonic()
            for row in overview_rows(self, request):
                rows.append(row)
                if show is not None and monotonic() > shown + SHOW_SECONDS:
                    search = f"{len(rows):,} of {len(self.tables):,} tables read"
                    show(LakeOverview(rows, name=self.name, request=request, search=search))
                    shown = monotonic()
        self._overview = LakeOverview(rows, name=self.name, request=request, search=self.note)
        return self._overview

    def follow(self, *, requests_per_minute: int = 120) -> LakeFollower:
        """Return a follower, which renews the overview table by table, within a number of requests per minute.

        `start()` begins; `snapshot_explorer.explore(lake)` is the widget of it. Reads the overview if there is none.

        Raises:
            InvalidArgumentError: The lake is viewed at an earlier time, or the number is not 1 or more.
        """
        if self.time is not None:
            raise InvalidArgumentError(f"{self.name} is viewed at {self.time:%Y-%m-%d %H:%M} UTC: nothing follows.")
        return LakeFollower(self._overview or self.overview(), self.tables, requests_per_minute=requests_per_minute)

    def at(self, time: str | datetime | None = None) -> LakeSnapshot:
        """Return the version of every table that was current at a time, as a record.

        The version of a time is the last one committed at or before it, by the rules of each format for `@TIME`. Notes
        name ties, clocks that run backwards, and commits within a minute after the time. A commit that was being
        written at the time may have an earlier time than the one at which others could see it.

        Args:
            time: Such as `2026-11-22 03:00`, `yesterday` (its end) or `2h`, in UTC without a zone; by default now.

        Raises:
            InvalidArgumentError: It is not a time, or in the future.
        """
        now = datetime.now(UTC)
        instant = (self.time or now) if time is None else _past("time", time, now)
        tables: list[PinnedTable] = []
        for entry, result in self._each_at_one_instant(lambda entry: pin(entry, instant), what="Reading versions"):
            tables.append(failed_entry(entry, result) if isinstance(result, SnapshotExplorerError) else result)
        return LakeSnapshot(
            name=self.name,
            time=instant,
            tables=tuple(sorted(tables, key=lambda table: table.name)),
            entries={entry.name: entry for entry in self.tables},
        )

    def changes(self, since: str | datetime = "yesterday", until: str | datetime | None = None) -> LakeChanges:
        """Return LAKE_COMMITS, newest first: the commits of all tables in one log.

        `by("table")`, `by("user")` and `by("hour")` sum them up; `picture()` draws a lane per table. Of each table, the
        commits of the range are read. Tables that cannot be read are named in the notes.

        Args:
            since: Only commits at or after this time; `yesterday` is its start.
            until: Only commits at or before this time; by default now.

        Raises:
            InvalidArgumentError: A time is not valid, or `until` is before `since`.
        """
        now = self.time or datetime.now(UTC)
        start = _time("since", since, now, start=True)
        end = now if until is None or until == "now" else _time("until", until, now)
        if start > now:
            raise InvalidArgumentError(
                f"since, {brief_repr(since)}, is after {now:%Y-%m-%d %H:%M:%S} UTC: nothing to show."
            )
        if end < start:
            raise InvalidArgumentError(f"until, {end:%Y-%m-%d %H:%M}, is before since, {start:%Y-%m-%d %H:%M} UTC.")
        results = [
            (entry.name, result)
            for entry, result in self._each_at_one_instant(
                lambda entry: read_changes(entry.open(), start, end), what="Reading commits"
            )
        ]
        return LakeChanges.of(results, name=self.name, since=start, until=end)

    def diff(
        self,
        other: Lake | LakeSnapshot | str | datetime,
        *,
        rows: Sequence[str] | Mapping[str, str | Sequence[str] | None] = (),
    ) -> Frame:
        """Return LAKE_DIFF, table by table by name: schemas, files, and rows of the tables that are named.

        Args:
            other: Another lake, or a record of `at`: B, where this lake is A. Or a time: A is this lake at that time,
                B is this lake.
            rows: The tables whose rows are compared, or a dict of these with their keys, as for
                `snapshot_explorer.diff`. Other tables have null there.

        Raises:
            InvalidArgumentError: A time is not valid.
            TableNotFoundError: A table in `rows` is in neither lake.
        """
        if not isinstance(other, Lake | LakeSnapshot | str | datetime):
            raise InvalidArgumentError(
                f"other must be a lake, a record of lake.at, or a time such as 1d, got {brief_repr(other)}."
            )
        own = self.at()
        if isinstance(other, Lake | LakeSnapshot):
            a, b = own, other.at() if isinstance(other, Lake) else other
        else:
            a, b = self.at(other), own
        named = sorted({table.name for side in (a, b) for table in side.tables})
        requested = (
            dict(rows) if isinstance(rows, Mapping) else dict.fromkeys([rows] if isinstance(rows, str) else rows)
        )
        keys = {
            find_by_name(name, {known: known for known in named}, self.name): key for name, key in requested.items()
        }
        return diff_frame(concurrently(named, lambda name: diff_row(name, a, b, keys), what="Comparing tables"), a, b)

    def usage(self, *, price: Price | None = None) -> Frame:
        """Return LAKE_USAGE: the bytes that each table holds, the largest first; live, and held by older versions.

        Of each table the whole history is read, as by `Table.usage`, which says more of one table. A table that cannot
        be read is a row with its problem.

        Args:
            price: As for `Table.usage`: adds columns of costs.

        Raises:
            InvalidArgumentError: The lake is viewed at an earlier time, or the price is not a number of 0 or more.
        """
        prices = checked_prices(price)
        self._check_is_now("usage is what is held now")
        read = self._each_at_one_instant(lambda entry: usage_row(entry.open()), what="Reading usage")
        return lake_usage_frame([(entry.name, row) for entry, row in read], self.name, prices)

    def trace(self, where: str, columns: ColumnNames | None = None) -> LakeTrace:
        """Return where rows of a condition still exist, in all tables: versions, branches, changelogs, any file.

        Each table that has the columns is examined by `Table.trace`. Files that no version names are read, too: those
        of Parquet, ORC and Avro by the names of their columns, at whatever age. A table that shares files with matching
        rows under other names of columns is named. What could not be examined is an open question, never absent.

        Opens every data file whose statistics admit matching rows, lists each table's folder, reads all metadata, and
        every file that no version names.

        Args:
            where: A condition in DuckDB's SQL, such as `customer_id = 42`.
            columns: What its columns are called in tables that have other names for them, by patterns of tables:
                `{"crm.*": "cust_no"}`, or with several columns `{"crm.*": {"customer_id": "cust_no"}}`. The last
                pattern that matches a table counts.

        Raises:
            InvalidArgumentError: The condition is not valid, a pattern matches no table, or the lake is viewed at an
                earlier time.
        """
        self._check_is_now("a trace is of what exists now")
        return trace_tables(self.name, self.tables, where, {} if columns is None else columns)

    def _check_is_now(self, reason: str) -> None:
        if self.time is not None:
            raise InvalidArgumentError(
                f"{self.name} is viewed at {self.time:%Y-%m-%d %H:%M} UTC, and {reason}. Open the lake without a time."
            )

    @property
    def call(self) -> str:
        """The Python that returns the overview of the tables."""
        return f"open_lake({self.name!r}).overview()"

    def __getitem__(self, name: str) -> Table:
        return find_by_name(name, {table.name: table for table in self.tables}, self.name).open()

    def __iter__(self) -> Iterator[LakeTable]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def known_overview(self) -> LakeOverview | None:
        """Return the overview that was read last, or None."""
        return self._overview

    def __repr__(self) -> str:
        return f"Lake({self.name!r}, tables={len(self.tables)})"


def overview_request(lake: Lake, since: str | datetime = "1d", *, health: bool = False) -> OverviewRequest:
    """Return the request for an overview. Arguments and errors as `Lake.overview`."""
    now = lake.time or datetime.now(UTC)
    start = _time("since", since, now, start=True)
    return OverviewRequest(now=now, is_past=lake.time is not None, since=start, health=health)


def overview_rows(lake: Lake, request: OverviewRequest) -> Iterator[dict[str, object]]:
    """Yield the row of LAKE_OVERVIEW of each table as soon as it is there."""
    processes = lake._processes  # noqa: SLF001 - of the lake in this module
    read = partial(_read_row, request)
    with at_one_instant(lake.tables):
        for table, result in each_table(lake.tables, read, what="Reading tables", processes=processes):
            row = failed_row(result) if isinstance(result, SnapshotExplorerError) else result
            yield {"format": table.format, "path": table.path, **row, "name": table.name}


@reports_lacking_resources
def open_lake(  # noqa: PLR0913 - options, which are combined freely
    path: str | PathLike[str],
    at: str | datetime | None = None,
    *,
    pattern: str | Sequence[str] | None = None,
    depth: int = 3,
    max_listings: int = 20_000,
    storage_options: Mapping[str, Any] | None = None,
    spark: SparkSession | None = None,
    catalog: str | None = None,
    catalog_options: Mapping[str, Any] | None = None,
    format: str | None = None,  # noqa: A002 - the word of `open_table`
    relocate: Mapping[str, str] | None = None,
) -> Lake:
    """Return all tables below a folder or in a catalog, as one object. Lists them; opens no table.

    Args:
        path: A local folder or a URL such as `s3://lake/shop.db`. With `spark` or `catalog`, a namespace such as
            `shop`, a pattern such as `shop.*`, or `*` for all tables.
        at: View the tables as they were at this time; by default now.
        pattern: Only tables whose names match: a pattern such as `shop.*`, or several.
        depth: The levels of folders to search, as for `find_tables`.
        max_listings: The maximum number of folders to list.
        storage_options: Credentials and settings for fsspec. They are never shown.
        spark: A Spark session, whose catalog has the tables.
        catalog: The URI of a REST catalog, or the name of one in pyiceberg's configuration, as for `open_table`.
        catalog_options: Properties of the catalog, such as `token` and `warehouse`. They are never shown.
        format: `paimon` for a Paimon REST catalog.
        relocate: Folders that a catalog in one file records and that are now elsewhere, as for `open_table`.

    Raises:
        TableNotFoundError: The folder is missing or empty, or no table is there or matches.
        InvalidArgumentError: An argument is not valid.
        StorageError: The storage or the catalog refused the request or did not respond.
        MissingDependencyError: The storage or the catalog needs a package that is not installed.
    """
    path, storage_options = hidden_url(path), hidden_options(storage_options)
    catalog, catalog_options = hidden_text(catalog), hidden_options(catalog_options, "catalog_options")
    now = datetime.now(UTC)
    time = None if at is None else _past("at", at, now)
    processes = ReaderProcesses()
    if spark is not None or catalog is not None or catalog_options is not None:
        tables = tables_in_catalog(
            path,
            spark=spark,
            catalog=catalog,
            catalog_options=catalog_options,
            table_format=format,
            storage_options=storage_options,
        )
        name, note = os.fspath(path), ""
        missing = f"The catalog has no table {name}. Check the namespace, or list all tables with the pattern *."
    else:
        check_is_folder(path)
        if format is not None:
            raise InvalidArgumentError(
                "format is for tables in a catalog. Below a folder, each table's format is found."
            )
        name, tables, note = tables_below(
            path,
            depth=depth,
            max_listings=max_listings,
            storage_options=storage_options,
            before_level=processes.start_for if pattern is None else None,
            relocate=relocate,
        )
        missing = f"No table is below {name} ({note})."
    if not tables and not note:
        raise TableNotFoundError(missing)
    if not tables:
        other = "" if depth == 0 else other_path(Storage(path, storage_options), storage_options)
        hint = other or "Check the path, or raise depth."
        raise TableNotFoundError(Message(f"{missing} ", hint))
    lake = Lake(name, tables, note=note, time=time, processes=processes)
    if pattern is None:
        return lake
    patterns: Any = pattern
    return lake.matching(*(patterns if isinstance(patterns, list | tuple | set) else [patterns]))


def open_tables(tables: Mapping[str, Table]) -> Lake:
    """Return open tables, by their names, as a lake."""
    entries = [
        LakeTable(name, path=table.path, table_format=table.format, opener=partial(tables.__getitem__, name))
        for name, table in tables.items()
    ]
    return Lake("the open tables", entries)


@reports_lacking_resources
def check(
    target: Table | Lake,
    fail_on: str | Sequence[str] | None = None,
    *,
    since: str | datetime | None = None,
    at: str | datetime | None = None,
    key: str | Sequence[str] | None = None,
    config: str | PathLike[str] | Mapping[str, Any] | None = None,
) -> CheckResult:
    """Return whether rules hold for what was committed recently: for scripts and CI, with an exit status.

    Rules, as text with commas or as a list; by default `late,anomaly,unreadable`:

    - `late`: the newest commit that changes data is older than the table's own rhythm allows.
    - `anomaly`: a number jumps at a commit since then; see `Table.anomalies`.
    - `schema-change`: a commit since then changes the schema.
    - `unreadable`: a version since then, or the newest one, lacks files; see `Verification.versions`.
    - `duplicates`: several rows of the newest version have the same key. Reads rows.
    - a condition that must not hold, such as `rows < 0.5 * previous`: SQL on `rows`, `files` and `bytes` of the
      newest version, `previous_rows`, `previous_files` and `previous_bytes` of the last version before (`previous`
      for short), `commits`, `added_rows` and `removed_rows` of the commits since then, and `age_hours`.

    A rule that cannot be evaluated does not pass: it is listed as not checked. In a lake, a table that cannot be opened
    fails `unreadable`, and its other rules are not checked. Neither is a pattern of `config` that matches no table.

    Args:
        target: A table, or a lake: each of its tables.
        fail_on: The rules.
        since: Commits from this time on are judged: `1d` (the default), `yesterday`, a time.
        at: The time to judge at; later commits are ignored. By default now, or the time of the lake.
        key: The columns that identify a row, for `duplicates`; by default the primary key, or all columns.
        config: A TOML file, or its content as a dict, with `fail-on`, `since`, `key`, thresholds in `[anomaly]`,
            and the same in `[tables."PATTERN"]` for the tables whose names match.

    Raises:
        InvalidArgumentError: A rule, a time or the configuration is not valid, or the target is no table or lake.
    """
    if isinstance(target, Table):
        settings = check_settings(fail_on, since=since, at=at, key=key, config=config).of_table(target.name)
        lines = check_table(target.name, history_of(target), settings)
        return CheckResult(name=target.name, since=settings.since, at=settings.at, lines=lines)
    if not isinstance(target, Lake):
        raise InvalidArgumentError(
            Message(
                f"check takes an open table or lake, got {brief_repr(target)}. Open it: ",
                Hint("open_table", {"path": ...}),
                ".",
            )
        )
    settings = check_settings(fail_on, since=since, at=target.time if at is None else at, key=key, config=config)
    work = partial(_check_table, settings)
    processes = target._processes  # noqa: SLF001 - of the lake in this module
    with at_one_instant(() if "duplicates" in settings.rules else target.tables):
        tables = each_table(target.tables, work, what="Checking tables", processes=processes)
        return check_lake(target.name, tables, settings)


def _read_row(request: OverviewRequest, table: LakeTable, turns: Lock | None) -> dict[str, object]:
    return _at_one_moment(table, turns, lambda opened: overview_row(opened, request))


def _at_one_moment(table: LakeTable, turns: Lock | None, question: Callable[[Table], A]) -> A:
    """Return a result for which each metadata file is read once; computed again if a version expired meanwhile."""
    with turns or nullcontext():
        try:
            with table.reading_once(turns):
                return question(table.open())
        except SnapshotNotFoundError:
            with table.reading_once(turns):
                return question(table.open())


def _check_table(settings: CheckSettings, table: LakeTable, turns: Lock | None) -> tuple[CheckLine, ...]:
    own = settings.of_table(table.name)
    if "duplicates" in own.rules:
        turns = None  # it reads rows, and other tables would wait for them
    return _at_one_moment(table, turns, lambda opened: check_table(table.name, history_of(opened), own))


def _time(name: str, value: str | datetime, now: datetime, *, start: bool = False) -> datetime:
    time = parse_time_bound(value, start=start, now=now)
    if time is None:
        raise InvalidArgumentError(
            f"{name}={brief_repr(value)} is not a time. Use a datetime, or text such as 2026-11-01 03:00, 3h or "
            "yesterday, in UTC without a zone."
        )
    return time


def _past(name: str, value: str | datetime, now: datetime) -> datetime:
    time = _time(name, value, now)
    if time > now:
        raise InvalidArgumentError(
            f"{name}={brief_repr(value)} is in the future: which versions are current then is not known yet. It is "
            f"{now:%Y-%m-%d %H:%M:%S} UTC."
        )
    return time
