"""`LakeTable`: a table of a lake, opened at its first use; and functions that locate the tables of a lake."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, StorageError
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.formats import catalog_at
from snapshot_explorer.history import history_of
from snapshot_explorer.lake.discovery import join_path, open_catalog, search_tables
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import catalogs, open_found, open_in_catalog_file, open_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from os import PathLike
    from threading import Lock

    from pyspark.sql import SparkSession

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.formats.capabilities import CatalogTables
    from snapshot_explorer.table import Table


class LakeTable:
    """A table of a lake. It is opened at the first use of `table` or `error`. Safe to use from several threads."""

    def __init__(
        self,
        name: str,
        *,
        path: str | None,
        table_format: str | None,
        opener: Callable[[], Table],
        folder: tuple[Storage, str] | None = None,
        catalog: CatalogTables[TableFormat] | None = None,
    ) -> None:
        self.name = name
        """The path below the lake's folder, or the name in the catalog."""
        self.folder = folder
        """The storage of the folder, and the format that was found there; None for a table in a catalog."""
        self.catalog = catalog
        """The catalog, if it is one file."""
        self._path = path
        self._format = table_format
        self._opener = opener
        self._lock = threading.Lock()
        self._table: Table | None = None
        self._error: SnapshotExplorerError | None = None

    @classmethod
    def in_folder(cls, name: str, storage: Storage, table_format: str) -> LakeTable:
        """Return the table in a folder in which a table of a format was found."""
        opener = partial(open_found, storage, table_format)
        return cls(name, path=storage.root, table_format=table_format, opener=opener, folder=(storage, table_format))

    @classmethod
    def of_catalog(
        cls, catalog: CatalogTables[TableFormat], prefix: str = "", relocate: Mapping[str, str] | None = None
    ) -> list[LakeTable]:
        """Return the tables that exist in a catalog that is one file, which is opened. Their names have the prefix."""
        return [
            cls(
                f"{prefix}{name}",
                path=f"{catalog.shown}::{name}",
                table_format=None,
                opener=partial(open_in_catalog_file, catalog, name, relocate=relocate),
                catalog=catalog,
            )
            for name in catalog.names()
        ]

    @property
    def is_portable(self) -> bool:
        """Return whether another process can read the table, and this one has not opened it."""
        return self.folder is not None and self._table is None and self.folder[0].is_portable

    def open(self) -> Table:
        """Return the table. After an error, each call tries again.

        Raises:
            SnapshotExplorerError: It cannot be opened; as `open_table`.
        """
        with self._lock:
            if self._table is None:
                try:
                    self._table = self._opener()
                except SnapshotExplorerError as error:
                    self._error = error
                    raise
                self._error = None
            return self._table

    def reading_once(self, turns: Lock | None) -> AbstractContextManager[None]:
        """Return a block in which each metadata file in the table's folder is read once; see `Storage.reading_once`."""
        return nullcontext() if self.folder is None else self.folder[0].reading_once(turns)

    @property
    def requests(self) -> int:
        """Return the number of requests so far to the store of the table; 0 while only the catalog has its location."""
        if self.folder is not None:
            return self.folder[0].requests
        return 0 if self._table is None else history_of(self._table).table_format.storage.requests

    @property
    def table(self) -> Table | None:
        """Return the table; None if it cannot be opened."""
        try:
            return self._table or (None if self._error else self.open())
        except SnapshotExplorerError:
            return None

    @property
    def error(self) -> SnapshotExplorerError | None:
        """Return why the table cannot be opened; None if it can."""
        return None if self.table is not None else self._error

    @property
    def format(self) -> str | None:
        """Return the format; None while only the catalog has it."""
        return self._format if self._table is None else self._table.format

    @property
    def path(self) -> str | None:
        """Return its location, without secrets; None while only the catalog has it."""
        return self._path if self._table is None else self._table.path

    def __repr__(self) -> str:
        return f"LakeTable({self.name!r}, format={self.format!r}, path={self.path!r})"


def tables_below(
    path: str | PathLike[str],
    *,
    depth: int,
    max_listings: int,
    storage_options: Mapping[str, Any] | None,
    before_level: Callable[[int], object] | None,
    relocate: Mapping[str, str] | None,
) -> tuple[str, Sequence[LakeTable], str]:
    """Return the folder, the tables below it, sorted by name, and how many folders were listed.

    Catalogs that are one file and are found below it are opened.
    If the path is a catalog that is one file, the tables that exist in it now.

    Args:
        before_level: Called with the number of folders of each level before they are listed.
        relocate: Folders that a catalog records, and where they are now.

    Raises:
        InvalidArgumentError: `relocate` is given, and the path is not such a catalog.
    """
    in_catalog = catalog_at(path, None, partial(Storage, options=storage_options))
    if in_catalog is not None:
        catalog = in_catalog[0]
        tables = LakeTable.of_catalog(catalog, relocate=relocate)
        return catalog.shown, tables, pluralize(len(tables), "table") + " of one catalog"
    if relocate:
        raise InvalidArgumentError(
            f"relocate is for the data of a catalog that is one file, and {hide_url_secrets(os.fspath(path))} is a "
            "folder. Pass relocate to open_table for a table whose data were moved."
        )
    search = search_tables(
        path, depth=depth, max_listings=max_listings, storage_options=storage_options, before_level=before_level
    )
    root = search.root.root

    def unreadable(name: str, title: str, error: SnapshotExplorerError) -> LakeTable:
        def opener() -> Table:
            raise error

        return LakeTable(title, path=join_path(root, name), table_format=None, opener=opener)

    tables = [
        unreadable(item.name, item.title(root), StorageError(item.problem))
        if item.format is None
        else LakeTable.in_folder(item.title(root), search.root.below(item.name), item.format)
        for item in search.folders
    ]
    for file in search.catalogs:
        try:
            tables += LakeTable.of_catalog(open_catalog(search, file, storage_options), f"{file}::")
        except SnapshotExplorerError as error:
            tables.append(unreadable(file, file, error))
    return root, sorted(tables, key=lambda table: table.name), search.note


@contextmanager
def at_one_instant(tables: Sequence[LakeTable]) -> Iterator[None]:
    """Return a block in which tables of a catalog that is one file are read at one state of it, opened once.

    A writer in another process cannot open a catalog of DuckDB meanwhile. Rows are better read outside of the block.
    """
    with ExitStack() as stack:
        for catalog in {id(table.catalog): table.catalog for table in tables}.values():
            if catalog is not None:
                with suppress(SnapshotExplorerError):  # each table says why it cannot be read
                    stack.enter_context(catalog.at_one_instant())
        yield


def tables_in_catalog(
    pattern: str | PathLike[str],
    *,
    spark: SparkSession | None,
    catalog: str | None,
    catalog_options: Mapping[str, Any] | None,
    table_format: str | None,
    storage_options: Mapping[str, Any] | None,
) -> Sequence[LakeTable]:
    """Return the tables in a catalog that a namespace or a pattern names, sorted by name."""
    names: Sequence[str]
    text = os.fspath(pattern)
    if spark is not None:
        if catalog is not None:
            raise InvalidArgumentError("catalog and spark both name a catalog. Give one of them.")
        from snapshot_explorer.table.catalogs.spark_catalog import table_names  # noqa: PLC0415 - only for Spark

        names = table_names(spark, text)
    elif catalog is None:
        raise InvalidArgumentError("catalog_options needs catalog, the URI or the name of a catalog.")
    else:
        names = catalogs.table_names(catalog, text, catalog_options, table_format=table_format)
    opener = partial(
        open_table,
        format=table_format,
        storage_options=storage_options,
        spark=spark,
        catalog=catalog,
        catalog_options=catalog_options,
    )
    return [LakeTable(name, path=None, table_format=table_format, opener=partial(opener, name)) for name in names]
