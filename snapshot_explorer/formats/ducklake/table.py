"""`DuckLake`: a table of a DuckLake catalog, an implementation of `formats.TableFormat`."""

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.core.records import (
    CHANGE_COLUMNS,
    ROW_KIND,
    ChangeMode,
    Inspection,
    Listing,
    RowModifier,
    TableSchema,
)
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.capabilities import CatalogPath, CatalogTables, MetadataLayout
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.changes import splits_between
from snapshot_explorer.formats.ducklake.expiry import DuckLakeMaintenance
from snapshot_explorer.formats.ducklake.frames import changes_frame, commits_frame
from snapshot_explorer.formats.ducklake.inspect import INSPECTIONS, inspect_table
from snapshot_explorer.formats.ducklake.metadata.databases import HEAD_BYTES, CatalogFile, database_of
from snapshot_explorer.formats.ducklake.metadata.names import find_table
from snapshot_explorer.formats.ducklake.metadata.paths import data_path
from snapshot_explorer.formats.ducklake.metadata.postgres import PostgresCatalog, postgres_catalog
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    ENDLESS,
    REWRITES,
    DuckLakeLog,
    DuckLakeMetadata,
    option,
    read_catalog,
)
from snapshot_explorer.formats.ducklake.scan import HIDDEN
from snapshot_explorer.formats.ducklake.version import DuckLakeVersion, table_schema
from snapshot_explorer.formats.features import CHANGE_COLUMN_CONFLICT, refusal
from snapshot_explorer.formats.interface import RowChanges, TableFormat, digest_of
from snapshot_explorer.storage import Storage

logger = logger_of(__name__)

_PREFIX = re.compile(r"ducklake:(?:(sqlite|duckdb|postgres|mysql):)?", re.IGNORECASE)
_SERVER = re.compile(r"(postgres(?:ql)?|mysql)(?::|://)", re.IGNORECASE)
_NAMES = re.compile(r"\.(?:ducklake|duckdb|sqlite3?)$", re.IGNORECASE)
"""Names of catalog files. Only files on a store need one: their first bytes would be a request. A name that ends in .db
is mostly a folder: the warehouses of Hive and Paimon name their databases so."""


def catalog_at(place: CatalogPath) -> "DuckLakeCatalog | None":
    """Return the catalog at a path; None if there is none.

    A local file is a catalog by its first bytes, and one that does not exist by its name, so that opening it says so. A
    file on a store is one by its name, or if a table in it is named.

    Source: reference, "What a path is".
    """
    prefix = _PREFIX.match(place.text)
    path = place.text if prefix is None else place.text[prefix.end() :]
    server = _SERVER.match(path) or (prefix if prefix is not None and prefix[1] in ("postgres", "mysql") else None)
    if server is not None:
        if server[1].lower() == "mysql":
            raise refusal(features.OTHER_DATABASES, database="MySQL")
        return DuckLakeCatalog(postgres_catalog(path, place.limits), place.make_storage)
    is_local = "://" not in path or path.startswith("file://")
    if is_local:
        path = os.path.abspath(os.path.expanduser(path.removeprefix("file://")))  # noqa: PTH100, PTH111 - as `Storage`
    folder, name = os.path.split(path) if is_local else path.rpartition("/")[::2]
    is_certain = prefix is not None or (place.is_named and not is_local)
    if not is_certain and not _is_file(path) if is_local else not is_certain and _NAMES.search(path) is None:
        return None
    storage = place.make_storage(folder or "/")  # refuses folders that are not allowed
    if is_local and not is_certain and os.path.exists(path) and not _is_database(path):  # noqa: PTH110 - as `Storage`
        return None
    return DuckLakeCatalog(CatalogFile(storage=storage, name=name), place.make_storage)


class DuckLake(TableFormat):
    """A table of a DuckLake catalog. Caches the catalog's rows about it. Thread-safe."""

    name: ClassVar[str] = "ducklake"
    title: ClassVar[str] = "DuckLake"
    metadata_layout: ClassVar[MetadataLayout] = MetadataLayout(
        folders=frozenset(), catalog_files=re.compile(r"(?i).+\.ducklake"), catalog_at=catalog_at
    )
    inspections: ClassVar[tuple[Inspection, ...]] = INSPECTIONS
    has_ordered_times: ClassVar[bool] = False
    commits_are_in_one_file: ClassVar[bool] = True

    def __init__(self, storage: Storage, *, branch: str | None = None, log: DuckLakeLog | None = None) -> None:
        super().__init__(storage, branch=branch)
        if log is None:
            raise TableNotFoundError(
                f"{storage.root} is a folder, and DuckLake tables are opened by their catalog, such as "
                "shop.ducklake::main.orders."
            )
        self._log = log

    @classmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:  # noqa: ARG003 - a folder is never a table
        return False

    # Versions.

    def listing(self, start: int | None = None) -> Listing:
        """Return the versions. Opens the catalog once, and reads the table's rows if something was committed."""
        metadata = self._log.refresh()
        versions = metadata.versions
        if not len(versions):
            raise TableNotFoundError(f"No snapshot of {metadata.name} in {metadata.catalog} exists any more.")
        dropped = f"{metadata.name} was dropped at snapshot {metadata.end}." if metadata.end != ENDLESS else None
        # Snapshots between a version and the one before have expired if more numbers than snapshots lie between them.
        indices = np.searchsorted(metadata.snapshot_ids, versions)
        has_gap = np.diff(versions) > np.diff(indices)
        return Listing(
            versions=tuple(versions[versions >= (versions[0] if start is None else start)].tolist()),
            identity=metadata.identity,
            is_contiguous=False,
            after_gaps=tuple(versions[1:][has_gap].tolist()),
            newest_note=dropped,
            location_note=self._log.data.note,
            first=metadata.begin,
            corrections=sum(not REWRITES.isdisjoint(words) for words in metadata.words.values()),
        )

    def version(self, number: int | None) -> DuckLakeVersion:
        """Return one version. An existing snapshot that did not touch the table is the version before it."""
        if number is None:
            return DuckLakeVersion(self._log, None, self._log.current())
        metadata = self._log.having(number)
        version = metadata.version_at(number)
        if version is not None and version != number:
            self.storage.warn_once(
                logger, "%s did not change at snapshot %d: this is version %d.", metadata.name, number, version
            )
        return DuckLakeVersion(self._log, version, metadata)

    def version_named(self, number: int) -> int:
        known = self._log.current().version_at(number)
        return number if known is None else known

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        metadata = self._metadata_of(versions)
        return [metadata.value_at(version, "snapshot_time") for version in versions]

    def candidates_at(self, time: datetime, versions: Sequence[int], *, follow_log: bool = True) -> Sequence[int]:  # noqa: ARG002 - no log of what was current
        """Return the version at the snapshot with the greatest time at or before a time.

        Source: reference, "Time".
        """
        metadata = self._log.current()
        columns = [metadata.rows["snapshot"].column(name).to_pylist() for name in ("snapshot_time", "snapshot_id")]
        before = [(at, number) for at, number in zip(*columns, strict=True) if at is not None and at <= time]
        known = metadata.version_at(max(before)[1]) if before else None
        index = bisect_right(versions, known) if known is not None else 0
        return versions[index - 1 : index] if index else versions[:1]

    def _metadata_of(self, versions: Sequence[int]) -> DuckLakeMetadata:
        """Return metadata in which all these versions exist."""
        result = self._log.current()
        for version in frozenset(versions).difference(result.versions.tolist()):
            result = self._log.having(version)
        return result

    # Commits and their changes.

    def commits(self, versions: Sequence[int], *, columns: Collection[str] | None = None) -> pa.Table:  # noqa: ARG002 - few
        return commits_frame(self._metadata_of(versions), versions)

    def fingerprint(self, version: int) -> str:
        """Return the hash of the snapshot's row and of the table's uuid. Compactions keep it."""
        metadata = self._log.having(version)
        values = (metadata.value_at(version, name) for name in ("snapshot_time", "schema_version"))
        return digest_of(metadata.uuid, version, *map(str, values))

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:  # noqa: ARG002 - there are none
        return changes_frame(self._metadata_of(versions), versions)

    def schemas(self, versions: Sequence[int]) -> Sequence[TableSchema]:
        metadata = self._metadata_of(versions)
        return [table_schema(metadata, version) for version in versions]

    def row_modifiers(self) -> frozenset[RowModifier]:
        """Return that files alone do not determine rows, if the catalog has deletes, inlined rows or merged files.

        Deletes change while files remain, and CHANGES do not contain them; merged files have rows that older versions
        do not see.
        """
        metadata = self._log.current()
        parts = [metadata.rows["delete_file"], metadata.rows["inlined_delete"], metadata.partials]
        parts += [table.rows for table in metadata.inlined]
        return frozenset(("deletion vectors", "rows outside of files")) if any(map(len, parts)) else frozenset()

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        """Return the rows that changed after `first` up to `last`, by row id, in the schema of `last`."""
        if mode not in ("auto", "delta"):
            raise refusal(features.ROW_CHANGE_MODES, mode=mode)
        version = self.version(last)
        for column in version.arrow_schema.names:
            if column in (ROW_KIND, *CHANGE_COLUMNS.names):
                raise refusal(CHANGE_COLUMN_CONFLICT, column=column)
        metadata = self._log.having(last)
        return RowChanges(
            # Earlier rows may have nulls in a column that is not null now.
            schema=pa.schema([field.with_nullable(True) for field in version.arrow_schema]),  # noqa: FBT003 - pyarrow's
            metadata_columns=pa.schema([*CHANGE_COLUMNS, *version.metadata_columns([field.name for field in HIDDEN])]),
            splits=lambda _: splits_between(self._log, metadata, first, last),
            reader=version,
        )

    def inspect(self, name: str) -> pa.Table:
        return inspect_table(name, self._log)

    @property
    def maintenance(self) -> DuckLakeMaintenance:
        return DuckLakeMaintenance(format_name=self.title, log=self._log)

    def __reduce__(self) -> tuple[Callable[..., "DuckLake"], tuple[Storage]]:
        return partial(DuckLake, log=self._log), (self._storage,)


def _is_file(path: str) -> bool:
    """Return whether a path is a file, or names a catalog that does not exist."""
    return os.path.isfile(path) or (not os.path.exists(path) and _NAMES.search(path) is not None)  # noqa: PTH110, PTH113 - as `Storage`


def _is_database(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - text, not a path of ours
            return database_of(file.read(HEAD_BYTES)) is not None
    except OSError:
        return False


class DuckLakeCatalog(CatalogTables[DuckLake]):
    """A DuckLake catalog: its tables, opened by name."""

    def __init__(self, file: CatalogFile | PostgresCatalog, make_storage: Callable[[str], Storage]) -> None:
        """Bind to a catalog. Reads nothing."""
        self._file = file
        self._make_storage = make_storage

    @property
    def shown(self) -> str:
        return self._file.shown

    def names(self) -> Sequence[str]:
        with self._file.reading() as reader:
            _, tables = read_catalog(reader, self.shown)
        return sorted({named.name for named in tables if named.is_live})

    def at_one_instant(self) -> AbstractContextManager[object]:
        return self._file.at_one_instant()

    def open(self, name: str | None, relocate: Mapping[str, str]) -> tuple[str, DuckLake]:
        with self._file.reading() as reader:
            rows, tables = read_catalog(reader, self.shown)
            named = find_table(tables, name, self.shown)
            recorded = option(rows["metadata"], "data_path")
            if recorded is None:
                raise TableNotFoundError(f"{self.shown} has no data_path in ducklake_metadata. It is damaged.")
            data = data_path(recorded, self._file.name, self._file.folder, relocate)
            if not data.is_chosen:
                self._file.check_data_path(data.path)
            storage = self._make_storage(data.path)
            log = DuckLakeLog(
                storage=storage, file=self._file, table_id=named.table_id, data=data, relocate=dict(relocate)
            )
            log.read(reader)
            return named.name, DuckLake(storage, log=log)
