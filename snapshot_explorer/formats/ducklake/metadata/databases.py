"""The database of a catalog, opened read-only: a DuckDB file or a SQLite file, local or copied from a store.

Only base tables of known names are read, with ids bound as parameters: no SQL text of the catalog is executed, and a
view of a known name is not read. DuckDB reads the file without access to other files, extensions or settings.

Source: reference, "Finding and opening a catalog", "Hostile catalogs".
"""

import os
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError, StorageError, TableNotFoundError
from snapshot_explorer.core.limits import Limits, limit_error
from snapshot_explorer.core.old_libraries import installed_version, is_older
from snapshot_explorer.core.resources import resource_error
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, quoted, root_of, sql_type
from snapshot_explorer.formats.ducklake.metadata.schemas import OLD_NAMES, TABLES
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.storage import Storage

if TYPE_CHECKING:
    import duckdb

SQLITE_MAGIC = b"SQLite format 3\0"
_DUCKDB_MAGIC = b"DUCK"
HEAD_BYTES = 20
"""Bytes at the start of a file that tell which database it is."""
_DUCKDB_SINCE = {64: "1.1", 65: "1.2", 66: "1.3", 67: "1.4", 68: "1.5"}
"""The first release of DuckDB that reads a storage version."""
_TRIES = 20
"""Attempts, a tenth of a second apart, while a writer of SQLite commits."""
_PAUSE_SECONDS = 0.1
_LOCK_HOLDER = re.compile(r"\(PID (\d+)\)")
_LOCKED_CONFIGURATION: Mapping[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
SIDECARS = ("", ".wal", "-wal")
"""The files of a database, by what follows its name. The shared memory of SQLite is rebuilt from them."""
_INTEGERS = frozenset(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"))
BYTES = frozenset(("blob", "geometry"))
"""Types of which every database stores the bytes."""


class CatalogReader(ABC):
    """An open catalog: everything is read in one transaction."""

    has_native_values: bool
    """Whether inlined values have their own types. Otherwise some are text."""

    def __init__(self, shown: str, size_bytes: int, limits: Limits, columns: Mapping[str, Sequence[str]]) -> None:
        self._shown, self._size_bytes, self._limits = shown, size_bytes, limits
        self._columns = columns

    def has(self, table: str) -> bool:
        """Return whether the catalog has a base table."""
        return table in self._columns

    def read(self, table: str, where: Mapping[str, int | str] | None = None) -> pa.Table:
        """Return the rows of a table of `TABLES` where columns have these values; empty without the table."""
        schema = TABLES[table]
        stored = table if table in self._columns else OLD_NAMES.get(table, table)
        names = [name for name in schema.names if name in self._columns.get(stored, ())]
        known = {name: value for name, value in (where or {}).items() if name in names}
        if not names:
            return schema.empty_table()
        condition = " AND ".join(f"{quoted(name)} = ?" for name in known)
        source = f"{quoted(stored)}{f' WHERE {condition}' if condition else ''}"
        values = list(known.values())
        self._check_rows(table, source, values)
        fields = [schema.field(name) for name in names]
        rows = self._select([quoted(name) for name in names], source, values, pa.schema(fields))
        arrays = [
            rows.column(field.name) if field.name in names else pa.nulls(len(rows), field.type) for field in schema
        ]
        return pa.table(arrays, schema=schema)

    def read_inlined(self, table: str, fields: Sequence[LakeField]) -> pa.Table:
        """Return the rows of an inlined table: row_id, begin_snapshot, end_snapshot, and a column per field, by number.

        The user's columns are found by position. A value that the catalog stores as text is text.
        """
        names = self._columns[table]
        if len(names) != len(fields) + 3:
            raise CorruptTableError(
                f"The inlined table {table} of the catalog {self._shown} has {len(names)} columns, and the table had "
                f"{len(fields)} at its schema version, after three columns of its own. The catalog is damaged; compare "
                "it with a copy."
            )
        source = quoted(table)
        self._check_rows(table, source, [])
        numbers = [pa.field(name, pa.int64()) for name in ("row_id", "begin_snapshot", "end_snapshot")]
        values = [pa.field(str(index), self._stored_type(item)) for index, item in enumerate(fields)]
        expressions = [quoted(name) for name in names[:3]]
        expressions += [self._value(table, name, item) for name, item in zip(names[3:], fields, strict=True)]
        return self._select(expressions, source, [], pa.schema([*numbers, *values]))

    def read_inlined_deletes(self, table: str) -> pa.Table:
        """Return the rows of a table of inlined deletes: file_id, row_id (a position in it) and begin_snapshot."""
        schema = pa.schema([(name, pa.int64()) for name in ("file_id", "row_id", "begin_snapshot")])
        if not self.has(table):
            return schema.empty_table()
        self._check_rows(table, quoted(table), [])
        return self._select([quoted(name) for name in schema.names], quoted(table), [], schema)

    def newest(self) -> tuple[object, ...]:
        """Return the newest snapshot, the number of snapshots and the greatest time: equal if nothing was committed."""
        names = ["max(snapshot_id)", "count(*)", "max(snapshot_time)"]
        schema = pa.schema(
            [("0", pa.int64()), ("1", pa.int64()), ("2", TABLES["ducklake_snapshot"].field("snapshot_time").type)]
        )
        return tuple(self._select(names, "ducklake_snapshot", [], schema).to_pylist()[0].values())

    def _check_rows(self, table: str, source: str, values: Sequence[int | str]) -> None:
        rows = self._select(["count(*)"], source, values, pa.schema([("0", pa.int64())])).column(0)[0].as_py()
        if rows > self._limits.most_rows(self._size_bytes):
            what = f"has {rows} rows in {table}"
            raise limit_error(self._shown, self._size_bytes, what, "metadata_rows", rows, self._limits)

    @abstractmethod
    def _select(
        self, expressions: Sequence[str], source: str, values: Sequence[int | str], schema: pa.Schema
    ) -> pa.Table:
        """Return the results of a query, in the types of the schema, under its names."""

    @abstractmethod
    def _stored_type(self, item: LakeField) -> pa.DataType | None:
        """Return the Arrow type in which inlined values are returned; None for the type of the query's result."""

    @abstractmethod
    def _value(self, table: str, name: str, item: LakeField) -> str:
        """Return the expression of an inlined column."""


class _DuckDBReader(CatalogReader):
    has_native_values = True

    def __init__(self, connection: "duckdb.DuckDBPyConnection", shown: str, size_bytes: int, limits: Limits) -> None:
        self._connection = connection
        connection.execute("BEGIN TRANSACTION READ ONLY")
        listed = connection.execute(
            "SELECT c.table_name, c.column_name FROM duckdb_columns() c JOIN duckdb_tables() t USING (table_oid) "
            "WHERE t.schema_name = 'main' AND c.schema_name = 'main' AND t.database_name = current_database() "
            "AND c.database_name = current_database() ORDER BY c.table_oid, c.column_index"
        ).fetchall()
        super().__init__(shown, size_bytes, limits, by_table(listed))

    def _select(
        self, expressions: Sequence[str], source: str, values: Sequence[int | str], schema: pa.Schema
    ) -> pa.Table:
        columns = ", ".join(f"{text} AS {quoted(field.name)}" for text, field in zip(expressions, schema, strict=True))
        query = f"SELECT {columns} FROM {source}"  # noqa: S608 - only known names, quoted
        rows = self._connection.sql(query, params=list(values) or None).to_arrow_table()
        arrays = [
            column if pa.types.is_null(field.type) else column.cast(field.type)
            for column, field in zip(rows.columns, schema, strict=True)
        ]
        return pa.table(arrays, names=schema.names)

    def _stored_type(self, item: LakeField) -> pa.DataType:  # noqa: ARG002 - as DuckDB returns it
        return pa.null()

    def _value(self, table: str, name: str, item: LakeField) -> str:  # noqa: ARG002 - of other databases
        if root_of(item.type) in ("variant", "geometry"):
            return quoted(name)
        return f"CAST({quoted(name)} AS {sql_type(item)})"


class RowReader(CatalogReader):
    """A catalog whose driver returns rows of Python's values."""

    has_native_values = False

    def _select(
        self, expressions: Sequence[str], source: str, values: Sequence[int | str], schema: pa.Schema
    ) -> pa.Table:
        rows = self._rows(f"SELECT {', '.join(expressions)} FROM {source}", values)  # noqa: S608 - known names, quoted
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        arrays = []
        for dtype, column in zip(schema.types, columns, strict=True):
            try:
                arrays.append(_array(column, dtype))
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                raise CorruptTableError(
                    f"The catalog {self._shown} has a value of another type in {source}: {error}. It is damaged; "
                    "compare it with a copy."
                ) from error
        return pa.table(arrays, schema=schema)

    @abstractmethod
    def _rows(self, query: str, values: Sequence[int | str]) -> Sequence[Sequence[object]]:
        """Return the rows of a query."""

    def _stored_type(self, item: LakeField) -> pa.DataType:
        if item.type in _INTEGERS or item.type == "boolean":
            return pa.int64()
        return pa.binary() if root_of(item.type) in BYTES else pa.string()

    def _value(self, table: str, name: str, item: LakeField) -> str:  # noqa: ARG002 - of other databases
        return quoted(name)


class _SQLiteReader(RowReader):
    def __init__(self, connection: sqlite3.Connection, shown: str, size_bytes: int, limits: Limits) -> None:
        self._connection = connection
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limits.value_bytes, 2**31 - 1))
        for pragma in ("trusted_schema = off", "query_only = on"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        listed = connection.execute(
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND upper(m.sql) NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.name, c.cid"
        ).fetchall()
        super().__init__(shown, size_bytes, limits, by_table(listed))

    def _rows(self, query: str, values: Sequence[int | str]) -> Sequence[Sequence[object]]:
        return self._connection.execute(query, list(values)).fetchall()


def by_table(listed: Sequence[Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Return the columns of each table, of pairs in order."""
    result: dict[str, list[str]] = {}
    for table, column in listed:
        result.setdefault(table, []).append(column)
    return result


def _array(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(dtype):
        return pa.array([None if value is None else bool(value) for value in values], dtype)
    if pa.types.is_timestamp(dtype):
        return pa.array([_time(value) for value in values], dtype)
    if pa.types.is_string(dtype):
        return pa.array([None if value is None else _text(value) for value in values], dtype)
    if pa.types.is_integer(dtype):
        return pa.array([None if value is None else int(value) for value in values], dtype)
    return pa.array(values, dtype)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _time(value: object) -> datetime | None:
    """Return a time; text of SQLite ends in an offset without minutes, such as +00."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromisoformat(str(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFile:
    """A catalog in a file: of DuckDB or SQLite, on the local disk or on a store."""

    storage: Storage = field(repr=False)
    """The folder of the file."""
    name: str
    """The name of the file in its folder."""

    @property
    def shown(self) -> str:
        """The path of the file, without secrets."""
        root = self.storage.root
        return f"{root}{'' if root.endswith('/') else '/'}{self.name}"

    @property
    def folder(self) -> str:
        """The folder of the file, for display and as the base of a relative data path."""
        return self.storage.root

    @property
    def files(self) -> Sequence[str]:
        """The names of the files that the database may consist of."""
        return [f"{self.name}{suffix}" for suffix in SIDECARS]

    def check_data_path(self, path: str) -> None:
        """Check that the catalog may name this folder for its data: outside of its own, if that is allowed.

        Raises:
            UnsupportedFeatureError: It is outside, which `external_files` refuses, or not on the store of the catalog.
        """
        if not (self.storage.is_local and "://" in path):
            self.storage.resolve_external(path if "://" in path else f"file://{path}")

    @contextmanager
    def reading(self) -> Iterator[CatalogReader]:
        """Open the catalog, in one read transaction. A file on a store is copied into a temporary folder first.

        Raises:
            TableNotFoundError: The file does not exist, or is no database of a catalog.
            UnsupportedFeatureError: A writer holds the file, or the installed DuckDB does not read it.
            CorruptTableError: The database is damaged.
        """
        address = self.storage.local_address(self.name)
        if address is not None:
            with _open_file(address, self.shown, self.storage.limits) as reader:
                yield reader
            return
        with TemporaryDirectory(prefix="snapshot-explorer-") as folder:
            for suffix, content in zip(SIDECARS, self.storage.read_present(self.files), strict=True):
                if content is not None:
                    (Path(folder) / f"catalog{suffix}").write_bytes(content)
            with _open_file(str(Path(folder) / "catalog"), self.shown, self.storage.limits) as reader:
                yield reader


def kind_of(head: bytes) -> str | None:
    """Return the database of a file, DuckDB or SQLite, by its first bytes; None for another file."""
    if head.startswith(SQLITE_MAGIC):
        return "SQLite"
    return "DuckDB" if head[8:12] == _DUCKDB_MAGIC else None


@contextmanager
def _open_file(address: str, shown: str, limits: Limits) -> Iterator[CatalogReader]:
    try:
        with Path(address).open("rb") as file:
            head = file.read(HEAD_BYTES)
        size_bytes = Path(address).stat().st_size
    except FileNotFoundError:
        raise TableNotFoundError(f"There is no catalog at {shown}: the file does not exist. Check the path.") from None
    except OSError as error:
        raise StorageError(f"The catalog {shown} could not be read: {error.strerror or error}.") from error
    kind = kind_of(head)
    if kind == "SQLite":
        with _open_sqlite(address, shown, size_bytes, limits) as reader:
            yield checked(reader, shown)
    elif kind == "DuckDB":
        with _open_duckdb(address, shown, head, size_bytes, limits) as reader:
            yield checked(reader, shown)
    else:
        raise TableNotFoundError(f"{shown} is no DuckLake catalog: it is neither a DuckDB file nor a SQLite file.")


def checked(reader: CatalogReader, shown: str) -> CatalogReader:
    """Return the reader of a database if that is a catalog."""
    if not reader.has("ducklake_metadata") or not reader.has("ducklake_snapshot"):
        raise TableNotFoundError(
            f"{shown} is a database, but no DuckLake catalog: it has no tables ducklake_metadata, ducklake_snapshot. "
            "If a writer runs, its write-ahead log may be elsewhere."
        )
    return reader


@contextmanager
def _open_sqlite(address: str, shown: str, size_bytes: int, limits: Limits) -> Iterator[CatalogReader]:
    with _sqlite_errors(shown), closing(_retried(lambda: _connect_sqlite(address))) as connection:
        yield _retried(lambda: _SQLiteReader(connection, shown, size_bytes, limits))


def _connect_sqlite(address: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.path.abspath(address))}?mode=ro"  # noqa: PTH100 - the name as it is
    return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)


def _retried(connect: Callable[[], Any]) -> Any:
    for attempt in range(_TRIES):
        try:
            return connect()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _TRIES - 1:
                raise
            time.sleep(_PAUSE_SECONDS)
    raise AssertionError


@contextmanager
def _sqlite_errors(shown: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"The catalog {shown} could not be read: {error}. If its folder is not writable and a writer left a "
            "write-ahead log, copy both files and open the copy."
        ) from error
    except sqlite3.Error as error:
        raise CorruptTableError(
            f"The catalog {shown} cannot be read as a SQLite database: {error}. It may be damaged; compare it with a "
            "copy."
        ) from error


@contextmanager
def _open_duckdb(address: str, shown: str, head: bytes, size_bytes: int, limits: Limits) -> Iterator[CatalogReader]:
    import duckdb

    _check_storage(head, shown)
    configuration: dict[str, str | bool | int | float | list[str]] = {
        **_LOCKED_CONFIGURATION,
        "memory_limit": f"{limits.most_whole_bytes() >> 20}MiB",
    }
    try:
        with closing(duckdb.connect(address, read_only=True, config=configuration)) as connection:
            yield _DuckDBReader(connection, shown, size_bytes, limits)
    except duckdb.OutOfMemoryException as error:
        raise resource_error(error, shown) or limit_error(
            shown, size_bytes, "needs more memory", "metadata_bytes", size_bytes, limits
        ) from error
    except duckdb.Error as error:
        raise _duckdb_error(error, shown) from error


def _check_storage(head: bytes, shown: str) -> None:
    """Refuse a file of a newer storage version than the installed DuckDB reads, before DuckDB's own error."""
    storage, installed = int.from_bytes(head[12:20], "little"), installed_version("duckdb")
    needed = _DUCKDB_SINCE.get(storage)
    if needed is not None and is_older(installed, needed):
        raise refusal(features.NEWER_STORAGE, catalog=shown, storage=storage, installed=installed, needed=needed)


def _duckdb_error(error: Exception, shown: str) -> Exception:
    text = str(error).splitlines()[0]
    if "lock" in text.lower() and "Conflicting" in text:
        holder = _LOCK_HOLDER.search(text)
        return refusal(features.LOCKED_CATALOGS, catalog=shown, process=f" (PID {holder[1]})" if holder else "")
    if "different configuration" in text or "already attached" in text:
        return StorageError(
            f"The catalog {shown} is open in this process already, with other settings, so it cannot be opened "
            "read-only too. Detach it there (DETACH), or copy the file and its .wal if there is one, and open the copy."
        )
    if "version number" in text:
        return refusal(
            features.NEWER_STORAGE,
            catalog=shown,
            storage="of a newer release",
            installed=installed_version("duckdb"),
            needed="1.5",
        )
    return CorruptTableError(
        f"The catalog {shown} cannot be read as a DuckDB database: {text}. It may be damaged, or a writer committed "
        "while it was copied; compare it with a copy."
    )
