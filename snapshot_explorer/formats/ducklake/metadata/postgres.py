"""A catalog in PostgreSQL, read with psycopg in one read-only, repeatable-read transaction.

The address may have a password: it is neither shown nor pickled.

Source: reference, "PostgreSQL".
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from snapshot_explorer.core.errors import CorruptTableError, MissingDependencyError, StorageError, TableNotFoundError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.ducklake.metadata.data_types import quoted
from snapshot_explorer.formats.ducklake.metadata.databases import Catalog, CatalogReader, RowReader
from snapshot_explorer.storage.hidden import HiddenText

_SCHEMA = "metadata_schema"
_DEFAULT_SCHEMA = "public"
_OPTIONS = (
    "-c statement_timeout=300000 -c timezone=UTC -c intervalstyle=postgres -c datestyle=ISO "
    "-c default_transaction_read_only=on"
)
_SIZE = 1 << 40
"""The size that counts for limits on rows: a server does not say how large a catalog is."""
_BASE_TABLES = """
    SELECT c.relname, a.attname, t.typname FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY c.relname, a.attnum
"""


class _PostgresReader(RowReader):
    placeholder, text = "%s", "{}::text"


@dataclass(frozen=True, kw_only=True)
class PostgresCatalog(Catalog):
    """A catalog in a schema of a PostgreSQL database."""

    address: str | None = field(repr=False)
    """The connection string or URL; None after pickling."""
    schema: str
    shown: str
    """The server and the database, without secrets."""
    limits: Limits
    name: str = ""
    folder: None = None
    """A server has no folder from which relative paths count, and the catalog no name in it."""

    def check_data_path(self, path: str) -> None:
        """Accept a folder for the data: of a server it is on a store, for which the caller gives the credentials."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        catalog = partial(PostgresCatalog, address=None, schema=self.schema, shown=self.shown, limits=self.limits)
        return catalog, ()

    @contextmanager
    def opened(self) -> Iterator[CatalogReader]:
        """Open the catalog, in one transaction.

        Raises:
            MissingDependencyError: psycopg is not installed.
            StorageError: The server does not answer, or refuses the connection.
        """
        try:
            import psycopg  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingDependencyError(
                "A DuckLake catalog in PostgreSQL needs the package psycopg: pip install 'snapshot-explorer[ducklake]'."
            ) from error
        if self.address is None:
            raise StorageError(f"{self.shown} was restored from a pickle, which contains no address. Open it again.")
        with (
            _errors(self.shown),
            psycopg.connect(
                self.address, connect_timeout=10, application_name="snapshot-explorer", options=_OPTIONS
            ) as connection,
        ):
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            listed = connection.execute(_BASE_TABLES, [self.schema]).fetchall()
            connection.execute("SELECT set_config('search_path', %s, true)", [quoted(self.schema)])
            errors = partial(_errors, self.shown)
            yield _PostgresReader(connection, listed, self.shown, _SIZE, self.limits, errors)


@contextmanager
def _errors(shown: str) -> Iterator[None]:
    """Return a block in which errors of the server are raised without its own text, which may quote the address."""
    import psycopg  # noqa: PLC0415 - optional

    failure: Exception | None = None
    try:
        yield
    except psycopg.errors.DataError as error:
        failure = CorruptTableError(f"A value of the catalog {shown} cannot be read: {type(error).__name__}.")
    except psycopg.Error as error:
        state = getattr(error, "sqlstate", None)
        reason = f"{type(error).__name__}{f' (SQL state {state})' if state else ''}"
        failure = StorageError(
            f"The catalog {shown} could not be read: {reason}. Check the server, the database and the user."
        )
    if failure is not None:
        raise failure  # outside of the handlers: the error may quote the address


def postgres_catalog(text: str, limits: Limits) -> PostgresCatalog:
    """Return the catalog at a URL, `postgresql://host/database?metadata_schema=shop`, or a connection string.

    Raises:
        TableNotFoundError: The text is neither.
    """
    if "://" not in text:
        parts = dict(re.findall(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)", text))
        schema = parts.pop(_SCHEMA, _DEFAULT_SCHEMA).strip("'")
        if not parts:
            raise TableNotFoundError("The address of a PostgreSQL catalog is a URL, or words such as dbname=lake.")
        address = " ".join(f"{name}={value}" for name, value in parts.items())
        shown = f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"
    else:
        try:
            url = urlsplit(text)
        except ValueError:  # whose text may have the password
            raise TableNotFoundError("The address of a PostgreSQL catalog is not a URL.") from None
        options = dict(parse_qsl(url.query))
        schema = options.pop(_SCHEMA, _DEFAULT_SCHEMA)
        address = urlunsplit(url._replace(query=urlencode(options)))
        shown = f"postgresql://{url.netloc.rpartition('@')[2]}{url.path}"
    suffix = "" if schema == _DEFAULT_SCHEMA else f"?{_SCHEMA}={schema}"
    return PostgresCatalog(address=HiddenText(address), schema=schema, shown=f"{shown}{suffix}", limits=limits)
