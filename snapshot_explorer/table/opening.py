"""`open_table`: detect the format of a table and open it."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from snapshot_explorer.core.errors import InvalidArgumentError, StorageError, TableNotFoundError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.formats import bind, catalog_at, first_files, formats_by_name, split_metadata_path
from snapshot_explorer.history import OpenBranch
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.hidden import hidden_options, hidden_text, hidden_url
from snapshot_explorer.table import catalogs
from snapshot_explorer.table.catalogs.folder_hints import nearest_folder, other_path
from snapshot_explorer.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from pyspark.sql import SparkSession

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.formats.capabilities import CatalogTables
    from snapshot_explorer.storage import ExternalFiles
    from snapshot_explorer.table.catalogs import CatalogTable


@reports_lacking_resources
def open_table(  # noqa: PLR0913 - options, which are combined freely
    path: str | PathLike[str],
    *,
    branch: str | None = None,
    format: str | None = None,  # noqa: A002 - the word that users know from Spark
    storage_options: Mapping[str, Any] | None = None,
    staleness_limit: timedelta = timedelta(0),
    external_files: ExternalFiles = "allow",
    limits: Limits = DEFAULT,
    relocate: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    catalog: str | None = None,
    catalog_options: Mapping[str, Any] | None = None,
    name: str | None = None,
    table: str | None = None,
) -> Table:
    """Return the table in the folder `path`, at its newest version. Never writes to the table.

    The number of small requests does not grow with the history of the table.

    Args:
        path: A local folder or a URL such as `s3://lake/shop.db/orders`. For an Iceberg table also one of its metadata
            files, which is then read even if there are newer ones. With `spark` or `catalog`, the table's name.
        branch: Open this branch instead of the main one. For an Iceberg table also a snapshot id as text: the history
            that ends there.
        format: `paimon`, `delta`, `iceberg`, `hudi` or `ducklake`. By default the format is detected from the folder.
        storage_options: Credentials and settings for fsspec, or as deltalake and polars name them. They are never
            shown.
        staleness_limit: The maximum age of the current snapshot when the newest version is requested. By default
            each request lists the log again.
        external_files: Whether to read files outside of the folder that the metadata refers to, as Paimon's external
            paths and Delta's shallow clones do: any local file, or any object that the credentials can access. `allow`
            reads them and logs one warning; `refuse` raises an error.
        limits: The maximum memory for metadata files, such as `Limits(metadata_bytes=8 << 30)`.
        relocate: Folders that the metadata of an Iceberg table, or a DuckLake catalog, records and that are now
            elsewhere, such as `{"s3://old/data": "/new/data"}`. The table's own folder needs no entry: it is read at
            `path`.
        spark: A Spark session, classic or Connect: `path` is then a name such as `shop.orders`, and the session's
            catalog has its location. Its files are read with `storage_options`, not with the session's
            credentials. An Iceberg table is opened at the metadata file that the catalog names; open it again for
            newer commits.
        catalog: The URI of an Iceberg REST catalog such as `http://host:8181`, or the name of a catalog that is
            configured for pyiceberg: `path` is then a name such as `shop.orders`. The table is opened at the metadata
            file that the catalog names; open it again for newer commits. Needs the extra `catalogs`. Without
            `storage_options`, the credentials for S3 that the catalog returns are used. A URI that ends in
            `/unity-catalog` is a Unity Catalog, and its names are such as `main.shop.orders`. With `format="paimon"`,
            the URI of a Paimon REST catalog, which needs the extra `paimon-catalogs`.
        catalog_options: Properties of the catalog, as pyiceberg or Paimon names them: `token`, `credential`,
            `warehouse`, ... They are never shown.
        name: The name in titles; by default the last part of the path, or the name in the catalog.
        table: The table in a catalog that is one file, such as `main.orders` of `lake/shop.ducklake`, with double
            quotes around parts that are not words. In one text: `lake/shop.ducklake::main.orders`. A catalog with one
            table needs none.

    Raises:
        TableNotFoundError: The table or the branch does not exist.
        UnsupportedFeatureError: This kind of table is not supported.
        InvalidArgumentError: `external_files` is neither `allow` nor `refuse`, or the name or the catalog is not valid.
        StorageError: The storage or the catalog refused the request or did not respond.
        MissingDependencyError: The storage or the catalog needs a package that is not installed.
        CorruptTableError: The newest snapshot cannot be read; the message names the file.
        LimitError: A metadata file, or the answer of a catalog, needs more than `limits`; the message names the limit.
    """
    path, storage_options = hidden_url(path), hidden_options(storage_options)
    catalog, catalog_options = hidden_text(catalog), hidden_options(catalog_options, "catalog_options")
    if spark is not None or catalog is not None or catalog_options is not None:
        catalog_name = os.fspath(path)
        name = name or catalog_name
        named = _in_catalog(
            catalog_name, spark, catalog, catalog_options, format, limits, with_storage=storage_options is None
        )
        path, format = named.path, format or named.format  # noqa: A001 - as above
        storage_options = hidden_options(named.storage_options) if storage_options is None else storage_options
    else:
        catalogs.check_is_folder(path)
    make_storage = partial(Storage, options=storage_options, external_files=external_files, limits=limits)
    if (in_catalog := catalog_at(path, table, make_storage, limits)) is not None:
        tables, table = in_catalog
        return open_in_catalog_file(
            tables, table, format, branch=branch, staleness_limit=staleness_limit, relocate=relocate, name=name
        )
    metadata_path = split_metadata_path(path)
    folder, metadata_file = metadata_path or (path, None)
    storage = Storage(folder, storage_options, external_files=external_files, limits=limits)
    with storage.reading_ahead([] if metadata_file else first_files(format)):
        try:
            table_format = bind(storage, format, branch=branch, metadata_file=metadata_file, relocate=relocate)
        except (TableNotFoundError, StorageError) as error:
            sentence = "" if branch else _better_message(error, storage, os.fspath(path), storage_options)
            if not sentence:
                raise
            raise TableNotFoundError(sentence) from None
        root = storage.root
        return Table(
            OpenBranch(root, table_format, branch=branch, staleness_limit=staleness_limit, storage=storage, name=name)
        )


def open_in_catalog_file(
    catalog: CatalogTables[TableFormat],
    table: str | None,
    table_format_name: str | None = None,
    *,
    branch: str | None = None,
    staleness_limit: timedelta = timedelta(0),
    relocate: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Table:
    """Return a table of a catalog that is one file. Its path has the name of the table."""
    full_name, table_format = catalog.open(table, relocate or {})
    path = f"{catalog.shown}::{full_name}"
    if table_format_name not in (None, table_format.name):
        raise TableNotFoundError(
            f"{path} is not a {table_format_name} table but a {table_format.name} table. Leave the format out."
        )
    if branch is not None:
        raise TableNotFoundError(
            f"{path} has no branch {branch!r}: {table_format.title} tables have no branches. Open it without a branch."
        )
    storage = table_format.storage
    return Table(
        OpenBranch(path, table_format, staleness_limit=staleness_limit, storage=storage, name=name or full_name)
    )


def open_found(storage: Storage, table_format: str) -> Table:
    """Return the table in a folder where `find_tables` found one of a format. Errors as `open_table`.

    Since it is one of many tables, its notes are logged as information, and are in the overview of a lake.
    """
    with storage.reading_ahead(first_files(table_format)):
        bound = formats_by_name()[table_format](storage)
        return Table(OpenBranch(storage.root, bound, storage=storage, note_level=logging.INFO))


def _better_message(
    error: TableNotFoundError | StorageError, storage: Storage, path: str, storage_options: Mapping[str, Any] | None
) -> str:
    """Return a message on the path, or on the table that may be meant; empty to keep the error's own message."""
    if isinstance(error, StorageError):
        is_file = isinstance(error.__cause__, NotADirectoryError)
        return other_path(storage, storage_options) if is_file else ""
    if storage.list(""):
        return other_path(storage, storage_options)
    hint = nearest_folder(path, storage_options)
    return Message(error, " ", hint) if hint else ""


def _in_catalog(
    name: str,
    spark: SparkSession | None,
    catalog: str | None,
    catalog_options: Mapping[str, Any] | None,
    table_format: str | None,
    limits: Limits,
    *,
    with_storage: bool,
) -> CatalogTable:
    if catalog is None:
        if spark is None or catalog_options is not None:
            raise InvalidArgumentError("catalog_options needs catalog, the URI or the name of a catalog.")
        from snapshot_explorer.table.catalogs.spark_catalog import locate  # noqa: PLC0415 - only where there is a session

        return locate(spark, name)
    if spark is not None:
        raise InvalidArgumentError("catalog and spark both name a catalog. Give one of them.")
    return catalogs.locate(
        catalog, name, catalog_options, table_format=table_format, limits=limits, with_storage=with_storage
    )
