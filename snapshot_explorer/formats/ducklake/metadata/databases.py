"""The database of a catalog, opened read-only: a DuckDB file or a SQLite file, local or copied from a store.

Only base tables of known names are read, with ids bound as parameters: no SQL text of the catalog is executed, and a
view of a known name is not read. DuckDB reads the file without access to other files, extensions or settings.

Source: reference, "Finding and opening a catalog", "Hostile catalogs".
"""

import os
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError, StorageError, TableNotFoundError
from snapshot_explorer.core.limits import Limits, limit_error
from snapshot_explorer.core.old_libraries import installed_version, is_older
from snapshot_explorer.core.resources import resource_error
from snapshot_explorer.core.single_flight import SingleFlight
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, quoted, sql_type, type_of
from snapshot_explorer.formats.ducklake.metadata.schemas import INLINED, OLD_NAMES, TABLES, check_values, damaged
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.storage import Storage

Kept = TypeVar("Kept")

_SQLITE_MAGIC, _DUCKDB_MAGIC = b"SQLite format 3\0", b"DUCK"
HEAD_BYTES = 20
"""Bytes at the start of a file that tell which database it is."""
_DUCKDB_SINCE = {64: "1.1", 65: "1.2", 66: "1.3", 67: "1.4", 68: "1.5"}
"""The first release of DuckDB that reads a storage version."""
_BUSY_SECONDS = 2.0
"""How long SQLite waits while a writer commits."""
_LOCK_HOLDER = re.compile(r"\(PID (\d+)\)")
_SIDECARS = ("", ".wal", "-wal")
"""The files of a database, by what follows its name. The shared memory of SQLite is rebuilt from them."""
_LARGE = frozenset(("file_column_stats",))
"""Tables that are read for one column of one table at a time: as a whole they may not fit."""
CONFINED: dict[str, Any] = dict.fromkeys(
    ("enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions"), "false"
)
"""Settings with which DuckDB reads no other file, and loads no extension."""
_DUCKDB_COLUMNS = """
    SELECT c.table_name, c.column_name, c.data_type FROM duckdb_columns() c JOIN duckdb_tables() t USING (table_oid)
    WHERE t.schema_name = 'main' AND c.schema_name = 'main' AND t.database_name = current_database()
    AND c.database_name = current_database() ORDER BY c.table_oid, c.column_index
"""
_SQLITE_COLUMNS = """
    SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c
    WHERE m.type = 'table' AND upper(m.sql) NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.name, c.cid
"""
"""The columns of base tables in order, with their types: of a view nothing is read."""


class CatalogReader(ABC):
    """An open catalog: everything is read in one transaction. Safe to use from several threads."""

    is_shared = False
    """Whether many tables are read: each table of the catalog is then read once, as a whole."""

    def __init__(
        self,
        connection: Any,
        listed: Sequence[Sequence[str]],
        shown: str,
        size_bytes: int,
        limits: Limits,
        translating: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Bind to a database, if it is a catalog.

        Args:
            connection: A connection in a transaction.
            listed: The columns of its base tables in order: the table, the name, and the type in the database.
            translating: Returns a block in which errors of the database are raised as errors of this package.
        """
        self._connection, self._shown, self._size_bytes, self._limits = connection, shown, size_bytes, limits
        self._translating = translating
        self._lock = Lock()
        self._kept = SingleFlight()
        self._columns: dict[str, dict[str, str]] = {}
        for table, column, dtype in listed:
            self._columns.setdefault(table, {})[column] = dtype
        if not {"ducklake_metadata", "ducklake_snapshot"} <= self._columns.keys():
            raise TableNotFoundError(
                f"{shown} is a database, but no DuckLake catalog: it has no tables ducklake_metadata, "
                "ducklake_snapshot. If a writer runs, its write-ahead log may be elsewhere."
            )

    def once(self, key: str, make: Callable[[], Kept]) -> Kept:
        """Return the result of a function; of a shared reader the first result for a key."""
        return self._kept.get(key, make) if self.is_shared else make()

    def read(self, table: str, where: Mapping[str, int] | None = None, *, like: str | None = None) -> pa.Table:
        """Return the rows of a table where columns have these values; empty without the table.

        Args:
            table: Its name without `ducklake_`.
            like: The name in `TABLES` that has its columns; by default its own.
        """
        schema = TABLES[like or table]
        stored = next((n for n in (f"ducklake_{table}", f"ducklake_{OLD_NAMES.get(table)}") if n in self._columns), "")
        names = [name for name in schema.names if name in self._columns.get(stored, ())]
        if not names:
            return schema.empty_table()
        known = {name: value for name, value in (where or {}).items() if name in names}
        if known and (table in _LARGE or not self.is_shared):
            rows = self._stored(stored, schema, names, known)
        else:
            rows = self.once(stored, lambda: self._stored(stored, schema, names, {}))
            for name, value in known.items():
                rows = rows.filter(pc.equal(rows.column(name), value))
        return check_values(rows, schema, stored, self._shown)

    def _stored(self, table: str, schema: pa.Schema, names: Sequence[str], where: Mapping[str, int]) -> pa.Table:
        """Return the rows of a table with the columns of a schema; those that are not among the names are null."""
        condition = " AND ".join(f"{quoted(name)} = ?" for name in where)
        source = f"{quoted(table)}{f' WHERE {condition}' if condition else ''}"
        expressions = [(quoted(name), schema.field(name)) for name in names]
        rows = self._bounded(table, source, list(where.values()), expressions)
        arrays = [rows.column(item.name) if item.name in names else pa.nulls(len(rows), item.type) for item in schema]
        return pa.table(arrays, schema=schema)

    def read_inlined(self, table: str, fields: Sequence[LakeField]) -> pa.Table | None:
        """Return the rows of an inlined table: `INLINED`, and a column per field, by number; None without the table.

        The user's columns are found by position. DuckDB has their own types; other databases have bytes, or the text
        of DuckDB.
        """
        columns = self._columns.get(table)
        if columns is None:
            return None
        if len(columns) != len(fields) + len(INLINED):
            raise damaged(
                f"The inlined table {table} of the catalog {self._shown} has {len(columns)} columns, and the table had "
                f"{len(fields)} at its schema version, after three columns of its own."
            )
        expressions = [(quoted(name), item) for name, item in zip(columns, INLINED, strict=False)]
        own = list(columns.items())[len(INLINED) :]
        for index, ((name, stored), item) in enumerate(zip(own, fields, strict=True)):
            expression, dtype = self._inlined_value(quoted(name), stored, item)
            expressions.append((expression, pa.field(str(index), dtype)))
        return check_values(self._bounded(table, quoted(table), [], expressions), INLINED, table, self._shown)

    def _bounded(
        self, table: str, source: str, values: Sequence[int], expressions: Sequence[tuple[str, pa.Field]]
    ) -> pa.Table:
        """Return the results of expressions over a source, if it has no more rows than the limits allow."""
        most = self._limits.most_rows(self._size_bytes)
        with self._lock, self._translating():
            try:
                rows = self._select(expressions, f"{source} LIMIT {most + 1}", values)
            except (pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError) as error:
                raise damaged(f"The catalog {self._shown} has a value of another type in {table}: {error}.") from error
            if len(rows) <= most:
                return rows
            counted = self._select([("count(*)", pa.field("0", pa.int64()))], source, values).column(0)[0].as_py()
        what = f"has {counted} rows in {table}"
        raise limit_error(self._shown, self._size_bytes, what, "metadata_rows", counted, self._limits)

    @abstractmethod
    def _select(self, expressions: Sequence[tuple[str, pa.Field]], source: str, values: Sequence[int]) -> pa.Table:
        """Return the results of a query under the names of the fields, in their types unless these are null."""

    @abstractmethod
    def _inlined_value(self, name: str, stored: str, item: LakeField) -> tuple[str, pa.DataType]:
        """Return the expression of an inlined column, and its Arrow type; null for the type of the query's result.

        Args:
            name: The column, quoted.
            stored: Its type in the database.
        """


class _DuckDBReader(CatalogReader):
    def _select(self, expressions: Sequence[tuple[str, pa.Field]], source: str, values: Sequence[int]) -> pa.Table:
        columns = ", ".join(f"{text} AS {quoted(item.name)}" for text, item in expressions)
        query = f"SELECT {columns} FROM {source}"  # noqa: S608 - only known names, quoted
        rows = self._connection.sql(query, params=list(values) or None).to_arrow_table()
        return pa.table(
            {
                item.name: column if pa.types.is_null(item.type) else column.cast(item.type)
                for column, (_, item) in zip(rows.columns, expressions, strict=True)
            }
        )

    def _inlined_value(self, name: str, stored: str, item: LakeField) -> tuple[str, pa.DataType]:  # noqa: ARG002 - of others
        is_cast = type_of(item.type).sql not in ("VARIANT", "GEOMETRY")
        return f"CAST({name} AS {sql_type(item)})" if is_cast else name, pa.null()


class RowReader(CatalogReader):
    """A catalog whose driver returns rows of Python's values: SQLite's, unless a subclass says otherwise."""

    placeholder: ClassVar[str] = "?"
    text: ClassVar[str] = "{}"
    """The text of a column in the SQL of the database."""

    def _select(self, expressions: Sequence[tuple[str, pa.Field]], source: str, values: Sequence[int]) -> pa.Table:
        query = f"SELECT {', '.join(text for text, _ in expressions)} FROM {source}"  # noqa: S608 - known names, quoted
        # Without values psycopg does not look for placeholders, which names of columns may contain.
        bound = [query.replace("?", self.placeholder), list(values)] if values else [query]
        rows = self._connection.execute(*bound).fetchall()
        columns = zip(*rows, strict=True) if rows else [()] * len(expressions)
        return pa.table(
            {item.name: _array(column, item.type) for (_, item), column in zip(expressions, columns, strict=True)}
        )

    def _inlined_value(self, name: str, stored: str, item: LakeField) -> tuple[str, pa.DataType]:
        expression = name if stored == "bytea" else self.text.format(name)
        # Every database stores bytes as they are.
        return expression, pa.binary() if type_of(item.type).family == "bytes" else pa.string()


def _array(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """Return values of a driver: booleans of SQLite are numbers, texts of PostgreSQL bytes, some numbers texts."""
    convert: Any = None
    if pa.types.is_boolean(dtype):
        convert = _boolean
    elif pa.types.is_timestamp(dtype):  # text of SQLite ends in an offset without minutes, such as +00
        convert = lambda value: value if isinstance(value, datetime) else datetime.fromisoformat(str(value))  # noqa: E731
    elif pa.types.is_string(dtype):
        convert = lambda value: value.decode() if isinstance(value, bytes) else str(value)  # noqa: E731
    elif pa.types.is_integer(dtype):
        convert = _integer
    return pa.array(values if convert is None else [None if v is None else convert(v) for v in values], dtype)


def _boolean(value: object) -> bool:
    if value not in (0, 1):
        raise ValueError(f"{value!r} is neither 0 nor 1")
    return bool(value)


def _integer(value: float | str | bytes) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{value!r} is not a whole number")
    return int(value)


class _SharedReader:
    """The open catalog that the readers of several tables share, while there are any."""

    def __init__(self) -> None:
        self.lock, self.users, self.stack = Lock(), 0, ExitStack()
        self.reader: CatalogReader | None = None

    def __reduce__(self) -> tuple[type["_SharedReader"], tuple[()]]:
        return _SharedReader, ()


@dataclass(frozen=True, kw_only=True)
class Catalog(ABC):
    """A catalog. Opens it anew for each question, or once for many tables."""

    shared: _SharedReader = field(default_factory=_SharedReader, repr=False, compare=False)

    @abstractmethod
    def opened(self) -> AbstractContextManager[CatalogReader]:
        """Return a block with the catalog, opened in one read transaction."""

    @contextmanager
    def reading(self, *, begin: bool = False) -> Iterator[CatalogReader]:
        """Open the catalog in one read transaction, which all tables share within `at_one_instant`.

        Args:
            begin: Whether to share the transaction from now on.
        """
        shared = self.shared
        with shared.lock:
            if begin and shared.reader is None:
                shared.reader = shared.stack.enter_context(self.opened())
                shared.reader.is_shared = True
            known = shared.reader
            shared.users += known is not None
        if known is None:
            with self.opened() as reader:
                yield reader
            return
        try:
            yield known
        finally:
            with shared.lock:
                shared.users -= 1
                if not shared.users:
                    shared.reader = None
                    shared.stack.close()

    def at_one_instant(self) -> AbstractContextManager[object]:
        """Return a block in which all tables are read in one transaction. It keeps the rows about all of them."""
        return self.reading(begin=True)


@dataclass(frozen=True, kw_only=True)
class CatalogFile(Catalog):
    """A catalog in a file: of DuckDB or SQLite, on the local disk or on a store."""

    storage: Storage = field(repr=False)
    """The folder of the file."""
    name: str
    """The name of the file in its folder."""

    @property
    def folder(self) -> str:
        """The folder of the file, for display and as the base of a relative data path."""
        return self.storage.root

    @property
    def shown(self) -> str:
        """The path of the file, without secrets."""
        return f"{self.folder}{'' if self.folder.endswith('/') else '/'}{self.name}"

    def check_data_path(self, path: str) -> None:
        """Check that the catalog may name this folder for its data: outside of its own, if that is allowed.

        Raises:
            UnsupportedFeatureError: It is outside, which `external_files` refuses, or not on the store of the catalog.
        """
        if not (self.storage.is_local and "://" in path):
            self.storage.resolve_external(path if "://" in path else f"file://{path}")

    @contextmanager
    def opened(self) -> Iterator[CatalogReader]:
        """Open the catalog, in one read transaction. A file on a store is copied into a temporary folder first.

        Raises:
            TableNotFoundError: The file does not exist, or is no database of a catalog.
            UnsupportedFeatureError: A writer holds the file, or the installed DuckDB does not read it.
            CorruptTableError: The database is damaged.
        """
        address = self.storage.local_address(self.name)
        with ExitStack() as stack:
            if address is None:
                address = f"{stack.enter_context(TemporaryDirectory(prefix='snapshot-explorer-'))}/catalog"
                contents = self.storage.read_present([f"{self.name}{suffix}" for suffix in _SIDECARS])
                for suffix, content in zip(_SIDECARS, contents, strict=True):
                    if content is not None:
                        Path(f"{address}{suffix}").write_bytes(content)
            yield stack.enter_context(_open_file(Path(address), self.shown, self.storage.limits))


def database_of(head: bytes) -> str | None:
    """Return the database of a file, DuckDB or SQLite, by its first bytes; None for another file."""
    if head.startswith(_SQLITE_MAGIC):
        return "SQLite"
    return "DuckDB" if head[8:12] == _DUCKDB_MAGIC else None


def _open_file(address: Path, shown: str, limits: Limits) -> AbstractContextManager[CatalogReader]:
    try:
        with address.open("rb") as file:
            head = file.read(HEAD_BYTES)
        size_bytes = address.stat().st_size
    except FileNotFoundError:
        raise TableNotFoundError(f"There is no catalog at {shown}: the file does not exist. Check the path.") from None
    except OSError as error:
        raise StorageError(f"The catalog {shown} could not be read: {error.strerror or error}.") from error
    database = database_of(head)
    if database is None:
        raise TableNotFoundError(f"{shown} is no DuckLake catalog: it is neither a DuckDB file nor a SQLite file.")
    if database == "DuckDB":
        _check_storage(head, shown)
    return (_open_sqlite if database == "SQLite" else _open_duckdb)(address, shown, size_bytes, limits)


@contextmanager
def _open_sqlite(address: Path, shown: str, size_bytes: int, limits: Limits) -> Iterator[CatalogReader]:
    uri = f"file:{quote(os.path.abspath(address))}?mode=ro"  # noqa: PTH100 - the name as it is
    with _sqlite_errors(shown):
        connection = sqlite3.connect(
            uri, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        with closing(connection):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limits.value_bytes, 2**31 - 1))
            for statement in ("PRAGMA trusted_schema = off", "PRAGMA query_only = on", "BEGIN"):
                connection.execute(statement)
            listed = connection.execute(_SQLITE_COLUMNS).fetchall()
            yield RowReader(connection, listed, shown, size_bytes, limits, partial(_sqlite_errors, shown))


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
def _open_duckdb(address: Path, shown: str, size_bytes: int, limits: Limits) -> Iterator[CatalogReader]:
    import duckdb

    configuration = CONFINED | {
        "lock_configuration": "true",
        "memory_limit": f"{limits.most_whole_bytes() >> 20}MiB",
    }
    errors = partial(_duckdb_errors, shown, size_bytes, limits)
    with (
        errors(),
        closing(duckdb.connect(str(address), read_only=True, config=configuration)) as database,
        closing(database.cursor()) as connection,  # which, unlike the first connection, draws no progress bar
    ):
        connection.execute("BEGIN TRANSACTION READ ONLY")
        listed = connection.execute(_DUCKDB_COLUMNS).fetchall()
        yield _DuckDBReader(connection, listed, shown, size_bytes, limits, errors)


@contextmanager
def _duckdb_errors(shown: str, size_bytes: int, limits: Limits) -> Iterator[None]:
    import duckdb

    try:
        yield
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
        installed, storage = installed_version("duckdb"), "of a newer release"
        return refusal(features.NEWER_STORAGE, catalog=shown, storage=storage, installed=installed, needed="1.5")
    return CorruptTableError(
        f"The catalog {shown} cannot be read as a DuckDB database: {text}. It may be damaged, or a writer committed "
        "while it was copied; compare it with a copy."
    )
