"""`Lake`: many tables as one object; and `open_lake`."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError, TableNotFoundError
from snapshot_explorer.lake.overview import LakeOverview, OverviewRequest, failed_row, overview_row
from snapshot_explorer.lake.tables import LakeTable, tables_below
from snapshot_explorer.progress import step
from snapshot_explorer.refs.grammar import parse_time_bound
from snapshot_explorer.refs.times import brief_repr
from snapshot_explorer.render import mimebundle, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from snapshot_explorer.render import Drawing
    from snapshot_explorer.table import Table

A = TypeVar("A")

_WORKERS = 32
"""Tables that are read at the same time: nearly all of the time is spent waiting for storage."""
_NAMED = 10
"""The most names in a message."""


class Lake:
    """Tables of any formats, read together. Created by `open_lake`. Safe to use from several threads.

    Iterating yields each `LakeTable`, sorted by name; `lake["orders"]` opens one.
    """

    def __init__(self, name: str, tables: Sequence[LakeTable], *, note: str = "", time: datetime | None = None) -> None:
        self.name = name
        """The folder or the catalog, without secrets."""
        self.tables = tuple(tables)
        """The tables, sorted by name."""
        self.note = note
        """How many folders were listed, in words; empty for a catalog."""
        self.time = time
        """The time at which the tables are viewed; None for now."""
        self._overview: LakeOverview | None = None

    def matching(self, *patterns: str) -> Lake:
        """Return a lake of the tables whose names match one of the patterns, such as `shop.*`. No request.

        Raises:
            TableNotFoundError: No table matches; the message has the nearest names.
        """
        if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
            raise InvalidArgumentError(f"Patterns must be text such as shop.*, got {patterns!r}.")
        tables = [table for table in self.tables if any(_matches(table.name, pattern) for pattern in patterns)]
        if not tables:
            raise TableNotFoundError(
                f"No table of {self.name} matches {', '.join(patterns)}. {self._hint(patterns[0])}"
            )
        return Lake(self.name, tables, note=self.note, time=self.time)

    def each(
        self, work: Callable[[LakeTable], A], *, what: str = "Reading tables"
    ) -> Iterator[tuple[LakeTable, A | SnapshotExplorerError]]:
        """Yield each table with the result of some work on it, or its error, as soon as it is there.

        At most 32 tables at the same time. What has not begun is cancelled when the caller stops.

        Args:
            work: Called in a thread. Its errors of this package are yielded; others are raised.
            what: The work in a few words, for the progress.
        """
        with ThreadPoolExecutor(_WORKERS, "snapshot-lake") as threads, step(what, total=len(self.tables)) as reading:
            futures: dict[Future[A], LakeTable] = {threads.submit(work, table): table for table in self.tables}
            pending = set(futures)
            try:
                while pending:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        reading.advance()
                        yield futures[future], _outcome(future.result)
            finally:
                for future in pending:
                    future.cancel()

    def overview(self, since: str | datetime = "1d", *, health: bool = False) -> LakeOverview:
        """Return LAKE_OVERVIEW, the most urgent tables first: a row per table with its rhythm and what changed.

        Of each table, the newest 12 commits are read, and more where these do not reach back to `since`, or where the
        table seems late. Reads metadata alone. A table that cannot be read is a row with its problem.

        Args:
            since: The time from which commits, rows and bytes are counted, such as `1d`, `yesterday` or a datetime.
            health: Whether to read the health of each newest version too: its list of files and manifests.

        Raises:
            InvalidArgumentError: `since` is not a time.
        """
        request = self.request(since, health=health)
        rows = [row for _, row in self.rows(request)]
        self._overview = LakeOverview(rows, name=self.name, request=request, search=self.note)
        return self._overview

    def request(self, since: str | datetime = "1d", *, health: bool = False) -> OverviewRequest:
        """Return what an overview covers. Arguments and errors as `overview`."""
        now = self.time or datetime.now(UTC)
        start = _time("since", since, now, start=True)
        return OverviewRequest(now=now, is_past=self.time is not None, since=start, health=health)

    def rows(self, request: OverviewRequest) -> Iterator[tuple[LakeTable, dict[str, object]]]:
        """Yield the row of LAKE_OVERVIEW of each table as soon as it is there."""
        for table, result in self.each(lambda table: overview_row(table.open(), request), what="Reading tables"):
            row = failed_row(result) if isinstance(result, SnapshotExplorerError) else result
            yield table, {"format": table.format, "path": table.path, **row, "name": table.name}

    def __getitem__(self, name: str) -> Table:
        named = [table for table in self.tables if table.name == name]
        ended = named or [table for table in self.tables if _last_part(table.name) == name]
        if len(ended) == 1:
            return ended[0].open()
        if ended:
            raise TableNotFoundError(
                f"{self.name} has {len(ended):,} tables called {name}: "
                f"{', '.join(table.name for table in ended[:_NAMED])}. Use one of these names."
            )
        raise TableNotFoundError(f"{self.name} has no table {name!r}. {self._hint(name)}")

    def __iter__(self) -> Iterator[LakeTable]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def drawing(self) -> Drawing:
        """Return the newest overview as a drawing. Reads it if there is none."""
        return (self._overview or self.overview()).drawing()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return mimebundle(self.drawing())

    def __str__(self) -> str:
        return text(self.drawing())

    def __repr__(self) -> str:
        return f"Lake({self.name!r}, tables={len(self.tables)})"

    def _hint(self, name: str) -> str:
        names = {_last_part(table.name): table.name for table in self.tables}
        near = get_close_matches(name, [*names, *names.values()], 1, 0.5)
        meant = f"Did you mean {names.get(near[0], near[0])}? " if near else ""
        listed = sorted(names.values())
        more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
        return f"{meant}Tables: {', '.join(listed[:_NAMED])}{more}."


def open_lake(
    path: str | PathLike[str],
    at: str | datetime | None = None,
    *,
    pattern: str | Sequence[str] | None = None,
    depth: int = 3,
    max_listings: int = 10_000,
    storage_options: Mapping[str, Any] | None = None,
) -> Lake:
    """Return all tables below a folder, as one object. Lists folders; opens no table.

    Args:
        path: A local folder or a URL such as `s3://lake/shop.db`.
        at: View the tables as they were at this time; by default now.
        pattern: Only tables whose names match: a pattern such as `shop.*`, or several.
        depth: The levels of folders to search, as for `find_tables`.
        max_listings: The maximum number of folders to list.
        storage_options: Credentials and settings for fsspec. They are never shown.

    Raises:
        TableNotFoundError: The folder is missing or empty, or no table is below it or matches.
        InvalidArgumentError: An argument is not valid.
        StorageError: The storage refused the request or did not respond.
        MissingDependencyError: The storage needs a package that is not installed.
    """
    name, tables, note = tables_below(path, depth=depth, max_listings=max_listings, storage_options=storage_options)
    if not tables:
        raise TableNotFoundError(f"No table is below {name} ({note}). Check the path, or raise depth.")
    now = datetime.now(UTC)
    lake = Lake(name, tables, note=note, time=None if at is None else _past("at", at, now))
    return lake if pattern is None else lake.matching(*([pattern] if isinstance(pattern, str) else pattern))


def _outcome(result: Callable[[], A]) -> A | SnapshotExplorerError:
    try:
        return result()
    except SnapshotExplorerError as error:
        return error


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(_last_part(name), pattern)


def _last_part(name: str) -> str:
    return name.rpartition("/")[2].rpartition(".")[2]


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
