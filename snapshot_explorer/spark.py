"""`spark.read.format("snapshot")`: resolve the options, plan the tasks.

Runs in Python workers of Spark's driver, which have no session. Executors run `engines.spark.rows.read`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.limits import DEFAULT, parse_limits
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.engines.spark.conditions import pushed_condition
from snapshot_explorer.engines.spark.executors import pack_value, unpack_value
from snapshot_explorer.engines.spark.rows import SparkReading, read
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_schema
from snapshot_explorer.engines.spark.source import source_class
from snapshot_explorer.engines.spark.tasks import pack_splits
from snapshot_explorer.formats import bind
from snapshot_explorer.history import OpenBranch, naming_renamed_columns
from snapshot_explorer.snapshot import parts_of
from snapshot_explorer.storage import Storage, parse_external_files
from snapshot_explorer.storage.hidden import hidden_options
from snapshot_explorer.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from snapshot_explorer.core.records import Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion

SnapshotDataSource = source_class(__name__)
"""The class for `spark.dataSource.register`."""

_OPTIONS = ("path", "version", "branch", "format", "columns", "where", "external_files", "limits")
_PARALLELISM = 64
"""The number of tasks for small tables: the planner cannot find the number of cores in the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableDescription:
    """A version of a table, pickled for Spark's Python workers."""

    version: TableVersion
    """The version. It contains the storage with its options, which have no repr."""
    schema: pa.Schema = field(repr=False)
    """The Arrow schema of all readable columns."""
    where: Condition | None
    """The condition on rows; None for all."""


def bound(storage_options: Mapping[str, Any]) -> type[DataSource]:
    """Return a data source with storage options."""
    return source_class(__name__, storage_options)


def describe(options: Mapping[str, str], storage_options: Mapping[str, Any]) -> tuple[bytes, StructType]:
    """Return the pickled description of a read, and the schema of its rows.

    Spark calls it when it analyzes a query. This resolves the version: later commits change nothing.

    Raises:
        InvalidArgumentError: An option is unknown or does not fit the table.
        SnapshotExplorerError: The table cannot be opened; see `open_table`.
    """
    source_options = _validate_options(options)
    storage = Storage(
        source_options["path"],
        hidden_options(storage_options),
        external_files=parse_external_files(source_options.get("external_files", "allow")),
        limits=parse_limits(source_options["limits"]) if "limits" in source_options else DEFAULT,
    )
    branch = source_options.get("branch")
    table_format = bind(storage, source_options.get("format"), branch=branch)
    table = Table(OpenBranch(storage.root, table_format, branch=branch))
    snapshot = table.at(source_options["version"]) if "version" in source_options else table.current
    version = parts_of(snapshot).loaded.version
    schema = version.arrow_schema
    columns = _names(source_options["columns"]) if "columns" in source_options else schema.names
    known = frozenset(schema.names)
    if unknown := [name for name in columns if name not in known]:
        schema = pa.schema([*schema, *version.metadata_columns(unknown)])
    with naming_renamed_columns(table_format, lambda: version):
        scan = scan_of(schema, columns, source_options.get("where"))
    described = _TableDescription(
        version=version,
        schema=schema,
        where=scan.condition,
    )
    return pack_value(described), spark_schema(scan.columns)


def _validate_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options in lower case; raise InvalidArgumentError for unknown ones."""
    for name in options:
        if name.lower() not in _OPTIONS:
            near = difflib.get_close_matches(name.lower(), _OPTIONS, n=1, cutoff=0.6)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise InvalidArgumentError(
                f"The data source 'snapshot' has no option {name!r}. {hint}Options: {', '.join(_OPTIONS)}. For "
                "storage options, register SnapshotDataSource.with_storage_options({...}), which keeps them secret."
            )
    validated = {name.lower(): value for name, value in options.items()}
    if "path" not in validated:
        raise InvalidArgumentError(
            "The data source 'snapshot' needs a path to one table, such as .load('s3://lake/orders'), or in SQL: "
            "USING snapshot OPTIONS (path 's3://lake/orders')."
        )
    return validated


def _names(text: str) -> list[str]:
    result = [name.strip() for name in text.split(",") if name.strip()]
    if not result:
        raise InvalidArgumentError(
            f"The option columns must contain column names, got {text!r}. Separate names with commas, such as "
            "'id,name', or leave it out for all columns."
        )
    return result


def check_schema(schema: StructType, own: StructType) -> None:
    """Check that a user-defined schema matches the types of the table.

    Raises:
        InvalidArgumentError: A column does not exist, or has another type.
    """
    fields = {column.name: column for column in own}
    for column in schema:
        known = fields.get(column.name)
        if known is None or column.dataType != known.dataType or (known.nullable and not column.nullable):
            actual = "has no such column" if known is None else f"has {_type_text(known)}"
            raise InvalidArgumentError(
                f"The given schema has the column {column.name!r} as {_type_text(column)}, but the table {actual}. "
                "Leave out the schema: each version has its own. Select columns with option('columns', 'a,b')."
            )


def _type_text(column: Any) -> str:
    return f"{column.dataType.simpleString()}{'' if column.nullable else ' not null'}"


def reading(described: bytes, columns: StructType) -> bytes:
    """Return the pickled function that executors run for each task. It yields rows with these columns."""
    source: _TableDescription = unpack_value(described)
    names = [column.name for column in columns]
    schema = pa.schema([source.schema.field(column.name).with_nullable(column.nullable) for column in columns])
    state = SparkReading(
        reader=source.version,
        needed=tuple([*names, *sorted(source.where.columns - set(names))] if source.where else names),
        condition=source.where,
        limit=None,
        schema=arrow_schema(schema),
    )
    return pack_value(partial(read, state))


def plan(described: bytes, filters: Sequence[object]) -> list[bytes]:
    """Return the pickled tasks that read the rows that may match Spark's filters."""
    source: _TableDescription = unpack_value(described)
    splits = _splits(source, pushed_condition(filters, source.schema, source.where))
    return [pack_value(task) for task in pack_splits(splits, _PARALLELISM, source.version.split_by_file)]


def _splits(source: _TableDescription, condition: Condition | None) -> Sequence[Split]:
    try:
        return source.version.plan(condition).splits
    except InvalidArgumentError:
        # A filter fails on some partition. Spark evaluates it again in any case, perhaps on none of these rows.
        return source.version.plan(source.where).splits
