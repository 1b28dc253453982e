"""`find_tables`: the tables below a folder."""

from __future__ import annotations

import operator
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, TableNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats import catalog_at, catalog_files, detect, formats_by_name, metadata_folders
from snapshot_explorer.results import Frame, non_empty_columns
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.hidden import hidden_options, hidden_url
from snapshot_explorer.table.catalogs.folder_hints import nearest_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from typing import TypeVar

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.formats.capabilities import CatalogTables

    A = TypeVar("A")
    B = TypeVar("B")

_LISTINGS = 256
"""Folders listed at the same time: nearly all of the time is spent waiting for storage."""
_THREADS = 64
"""Tables opened at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that was listed."""

    name: str
    """Its path below the searched folder; empty for that folder."""
    format: str | None = None
    """The format, if it is a table; otherwise None."""
    subfolders: Sequence[str] = ()
    """The folders below it that might be tables or contain some."""
    catalogs: Sequence[str] = ()
    """The files in it that are catalogs by their names."""
    problem: str | None = None
    """Why it could not be listed."""

    def title(self, root: str) -> str:
        """Return the name of the folder; for the root, the last part of its path."""
        return self.name or root.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The result of a search for tables."""

    root: Storage
    """The folder that was searched."""
    folders: Sequence[Folder]
    """The tables, and the folders that could not be listed."""
    catalogs: Sequence[str]
    """The paths below the root of files that are catalogs by their names."""
    note: str
    """How many folders were listed, and how many were not, in words."""


@reports_lacking_resources
def find_tables(
    path: str | PathLike[str],
    *,
    depth: int = 3,
    max_listings: int = 1000,
    sizes: bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> Frame:
    """Return the tables below a folder as a FOUND_TABLES frame, sorted by name. Reads no rows.

    Folders are listed level by level, 256 at a time, each once. Not listed are folders inside of a table, folders of
    Hive partitions (`day=2026-11-01`), folders whose names begin with `.` or `_`, and links to a folder that contains
    them. The title of the frame says how many folders were listed, and whether the search stopped at `max_listings`.
    Each table then costs as many requests as opening it. A table that cannot be opened, or a folder that cannot be
    listed, has its error in `problem`. Files that are catalogs by their names, such as `shop.ducklake`, are opened
    too: the names of their tables begin with theirs.

    Args:
        path: A local folder or a URL such as `s3://lake/shop.db`. If it is a table, the result is that table. If it is
            a catalog that is one file, the result is the tables that exist in it now.
        depth: The levels of folders to search. With 3, the table `shop.db/2026/orders` is found.
        max_listings: The maximum number of folders to list.
        sizes: Whether to read the live files of each newest version, for their number and size. Without, `files` and
            `size_bytes` are null, and no manifest or checkpoint is read.
        storage_options: Credentials and settings for fsspec. They are never shown.

    Raises:
        TableNotFoundError: The folder is missing or empty.
        InvalidArgumentError: `depth` is not a number of 0 or more, or `max_listings` not one of 1 or more.
        StorageError: The storage refused the request or did not respond.
        MissingDependencyError: The storage needs a package that is not installed.
    """
    path, storage_options = hidden_url(path), hidden_options(storage_options)
    if (in_catalog := catalog_at(path, None, partial(Storage, options=storage_options))) is not None:
        catalog = in_catalog[0]
        return _frame(_rows_in(catalog, sizes=sizes), f"Tables of {catalog.shown}")
    search = search_tables(path, depth=depth, max_listings=max_listings, storage_options=storage_options)
    root = search.root
    with (
        ThreadPoolExecutor(_THREADS, "snapshot-tables") as threads,
        step("Opening tables", total=len(search.folders)) as opening,
    ):

        def read(folder: Folder) -> dict[str, object]:
            row = _row(folder, root, sizes=sizes)
            opening.advance()
            return row

        def read_catalog(file: str) -> list[dict[str, object]]:
            try:
                catalog = open_catalog(search, file, storage_options)
                return [row | {"name": f"{file}::{row['name']}"} for row in _rows_in(catalog, sizes=sizes)]
            except SnapshotExplorerError as error:
                return [{"name": file, "path": join_path(root.root, file), "problem": error.message}]

        rows = _concurrently(threads, read, search.folders)
        rows += chain.from_iterable(_concurrently(threads, read_catalog, search.catalogs))
    rows.sort(key=lambda row: str(row["name"]))
    return _frame(rows, f"Tables below {root.root} ({search.note})")


def _frame(rows: Sequence[Mapping[str, object]], title: str) -> Frame:
    table = pa.Table.from_pylist(rows, schema=frames.FOUND_TABLES)
    # Title and name make the path.
    return Frame(table, title=title, noun="tables", drawn=non_empty_columns(table, exclude=("path",)))


def _rows_in(catalog: CatalogTables[TableFormat], *, sizes: bool) -> list[dict[str, object]]:
    """Return the rows of FOUND_TABLES for the tables of a catalog that is one file."""
    rows = []
    with catalog.at_one_instant():
        for name in catalog.names():
            row: dict[str, object] = {"name": name, "path": f"{catalog.shown}::{name}"}
            try:
                table = catalog.open(name, {})[1]
                rows.append(_row_of(row | {"format": table.name}, table, sizes=sizes))
            except SnapshotExplorerError as error:
                rows.append(row | {"problem": error.message})
    return rows


def open_catalog(search: Search, file: str, storage_options: Mapping[str, Any] | None) -> CatalogTables[TableFormat]:
    """Return a catalog that a search has found. Reads at most a few bytes.

    Raises:
        TableNotFoundError: Its content is no catalog.
    """
    path = join_path(search.root.root, file)
    found = catalog_at(path, None, partial(Storage, options=storage_options))
    if found is None:
        raise TableNotFoundError(f"{path} is named like a catalog, but it is not a database file.")
    return found[0]


def search_tables(
    path: str | PathLike[str],
    *,
    depth: int = 3,
    max_listings: int = 1000,
    storage_options: Mapping[str, Any] | None = None,
    before_level: Callable[[int], object] | None = None,
) -> Search:
    """Return the folders of tables and the catalogs below a folder. Opens none. Arguments and errors as `find_tables`.

    Args:
        before_level: Called with the number of folders of each level before they are listed.
    """
    _check_number("depth", depth, 0)
    _check_number("max_listings", max_listings, 1)
    root = Storage(path, storage_options)
    with ThreadPoolExecutor(_LISTINGS, "snapshot-tables") as threads:
        folders, unlisted, deeper = _search(root, threads, depth, max_listings, before_level)
    if folders[0].format is None and not (folders[0].subfolders or folders[0].catalogs or root.list("")):
        hint = nearest_folder(os.fspath(path), storage_options) or "Check the path and the options."
        raise TableNotFoundError(f"{root.root} is missing or empty. {hint}")
    note = f"{pluralize(len(folders), 'folder')} listed"
    if unlisted:
        note += f", {unlisted:,} more not listed: raise max_listings, or search a folder below"
    if deeper:
        note += f", {pluralize(deeper, 'folder')} below not searched: raise depth"
    tables = [folder for folder in folders if folder.format is not None or folder.problem is not None]
    files = [join_path(folder.name, name) for folder in folders for name in folder.catalogs]
    return Search(root=root, folders=tables, catalogs=files, note=note)


def _check_number(name: str, number: object, minimum: int) -> None:
    if not isinstance(number, SupportsIndex) or operator.index(number) < minimum:
        raise InvalidArgumentError(
            Message(
                f"{name} must be {minimum} or more, got {number!r}. ",
                Hint("find_tables", {"path": ..., "depth": 3}),
                " searches three levels of folders.",
            )
        )


def _search(
    root: Storage,
    threads: ThreadPoolExecutor,
    depth: int,
    max_listings: int,
    before_level: Callable[[int], object] | None,
) -> tuple[list[Folder], int, int]:
    """Return the folders that were listed, and how many known ones were not: for their number, and for their depth."""
    folders: list[Folder] = []
    level = [""]
    unlisted = 0
    with step("Listing folders") as listing:

        def inspect(name: str) -> Folder:
            folder = _inspect(name, root)
            listing.advance()
            return folder

        for _ in range(depth + 1):
            allowed = max_listings - len(folders)
            unlisted += len(level[allowed:])
            if before_level is not None:
                before_level(len(level))
            inspected = _concurrently(threads, inspect, level[:allowed])
            folders += inspected
            level = [join_path(folder.name, name) for folder in inspected for name in folder.subfolders]
    return folders, unlisted, len(level)


def _inspect(name: str, root: Storage) -> Folder:
    """Return a folder with its format if it is a table, otherwise with its subfolders. One listing or two."""
    try:
        if _contains_itself(root, name):
            return Folder(name=name)
        subfolders, files = root.folders_and_files(name)
        # Without any of them, the folder is not a table: no second request.
        if not metadata_folders().isdisjoint(subfolders):
            try:
                return Folder(name=name, format=detect(root.below(name), folders=frozenset(subfolders)).name)
            except TableNotFoundError:
                pass  # a folder that happens to have a subfolder of that name
    except SnapshotExplorerError as error:
        if not name:
            raise
        return Folder(name=name, problem=error.message)
    return Folder(
        name=name,
        subfolders=[
            subfolder for subfolder in subfolders if not subfolder.startswith((".", "_")) and "=" not in subfolder
        ],
        catalogs=catalog_files(files),
    )


def _contains_itself(root: Storage, name: str) -> bool:
    path = root.local_address(name) if name else None
    if path is None or not (link := Path(path)).is_symlink():
        return False
    return link.parent.resolve().is_relative_to(link.resolve())


def _row(folder: Folder, root: Storage, *, sizes: bool) -> dict[str, object]:
    """Return a table's row of FOUND_TABLES, with the error if the table cannot be opened."""
    path = join_path(root.root, folder.name)
    row: dict[str, object] = {"name": folder.title(root.root), "format": folder.format, "path": path}
    if folder.problem is not None or folder.format is None:
        return row | {"problem": folder.problem}
    return _row_of(row, formats_by_name()[folder.format](root.below(folder.name)), sizes=sizes)


def _row_of(row: dict[str, object], table: TableFormat, *, sizes: bool) -> dict[str, object]:
    try:
        versions = table.listing().versions
        if not versions:
            return row | ({"files": 0, "size_bytes": 0} if sizes else {})
        row["version"] = versions[-1]
        row["committed_at"] = table.committed_at(versions[-1:])[0]
        if sizes:
            files = table.version(versions[-1]).files()
            size_bytes = pc.sum(files["size_bytes"], skip_nulls=False, min_count=0).as_py()
            row |= {"files": files.num_rows, "size_bytes": size_bytes}
    except SnapshotExplorerError as error:
        row["problem"] = error.message
    return row


def _concurrently(threads: ThreadPoolExecutor, work: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """Return the results in order. After an error or an interrupt, pending tasks are cancelled."""
    futures = [threads.submit(work, item) for item in items]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def join_path(folder: str, name: str) -> str:
    """Return the path of a folder below another one; either may be empty."""
    return f"{folder}{'' if folder.endswith('/') else '/'}{name}" if folder and name else folder or name
