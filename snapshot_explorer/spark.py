"""`spark.read.format("snapshot")`, and changes by `spark.readStream`: resolve the options, plan the tasks.

Runs in Python workers of Spark's driver, which have no session. Executors run `engines.spark.rows.read`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.analysis.changes import newest_position, position_after, position_before, start_position
from snapshot_explorer.analysis.changes.spark_changes import SparkChanges, plan_changes, read_tasks
from snapshot_explorer.analysis.diff import DiffRequest
from snapshot_explorer.core.errors import InvalidArgumentError, MissingDependencyError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.limits import DEFAULT, parse_limits
from snapshot_explorer.core.old_libraries import PYSPARK_READ_LIMITS
from snapshot_explorer.core.text import did_you_mean
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.engines.spark.conditions import pushed_condition
from snapshot_explorer.engines.spark.executors import pack_value, unpack_value
from snapshot_explorer.engines.spark.rows import SparkReading, read
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_schema
from snapshot_explorer.engines.spark.source import source_class
from snapshot_explorer.engines.spark.tasks import pack_splits
from snapshot_explorer.history import history_of, naming_renamed_columns
from snapshot_explorer.table import Table, open_table, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from snapshot_explorer.analysis.changes import ChangePosition
    from snapshot_explorer.core.records import Split
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion

SnapshotDataSource = source_class(__name__)
"""The class for `spark.dataSource.register`."""

_SHARED = ("path", "branch", "format", "columns", "where", "external_files", "limits")
_OF_VERSIONS = ("version",)
_OF_CHANGES = ("changes", "startingVersion", "startingTimestamp", "key", "maxVersionsPerTrigger")
_OPTIONS = (*_SHARED, *_OF_VERSIONS, *_OF_CHANGES)
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
    if "changes" in source_options:
        return _describe_stream(source_options, storage_options)
    table = _open(source_options, storage_options)
    table_format = history_of(table).table_format
    snapshot = table.at(source_options["version"]) if "version" in source_options else table.current
    version = parts_of(snapshot).loaded.version
    schema = version.arrow_schema
    columns = _names(source_options["columns"]) if "columns" in source_options else schema.names
    known = frozenset(schema.names)
    if unknown := [name for name in columns if name not in known]:
        schema = pa.schema([*schema, *version.metadata_columns(unknown)])
    with naming_renamed_columns(table_format, lambda: version):
        scan = scan_of(schema, columns, source_options.get("where"))
    return pack_value(_TableDescription(version=version, schema=schema, where=scan.condition)), spark_schema(
        scan.columns
    )


def _open(source_options: Mapping[str, str], storage_options: Mapping[str, Any]) -> Table:
    """Return the table that options of the data source name."""
    external_files: Any = source_options.get("external_files", "allow")  # checked by open_table
    return open_table(
        source_options["path"],
        branch=source_options.get("branch"),
        format=source_options.get("format"),
        storage_options=storage_options,
        external_files=external_files,
        limits=parse_limits(source_options["limits"]) if "limits" in source_options else DEFAULT,
    )


def _validate_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options in lower case; raise InvalidArgumentError for unknown ones."""
    known = {name.lower() for name in _OPTIONS}
    for name in options:
        if name.lower() not in known:
            raise InvalidArgumentError(
                f"The data source 'snapshot' has no option {name!r}.{did_you_mean(name, _OPTIONS)} Options: "
                f"{', '.join(_OPTIONS)}. For storage options, register "
                "SnapshotDataSource.with_storage_options({...}), which keeps them secret."
            )
    validated = {name.lower(): value for name, value in options.items()}
    if "path" not in validated:
        raise InvalidArgumentError(
            "The data source 'snapshot' needs a path to one table, such as .load('s3://lake/orders'), or in SQL: "
            "USING snapshot OPTIONS (path 's3://lake/orders')."
        )
    is_stream = validated.get("changes", "false").strip().lower()
    if is_stream not in ("true", "false"):
        raise InvalidArgumentError(f"The option changes must be true or false, got {validated['changes']!r}.")
    if is_stream == "false":
        validated.pop("changes", None)
    wrong = [name for name in (_OF_VERSIONS if is_stream == "true" else _OF_CHANGES) if name.lower() in validated]
    if wrong:
        raise InvalidArgumentError(
            f"The option {wrong[0]} is for {'one version' if is_stream == 'true' else 'changes'}. A stream of changes "
            "is spark.readStream.format('snapshot').option('changes', 'true'), with "
            f"{', '.join(_OF_CHANGES[1:])} and the options of every read: {', '.join(_SHARED)}."
        )
    return validated


def _names(text: str, option: str = "columns") -> list[str]:
    result = [name.strip() for name in text.split(",") if name.strip()]
    if not result:
        raise InvalidArgumentError(
            f"The option {option} must contain column names, got {text!r}. Separate names with commas, such as "
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
    source: _TableDescription | _ChangeStream = unpack_value(described)
    if isinstance(source, _ChangeStream):
        raise InvalidArgumentError(
            Message(
                "Changes are read as a stream, by spark.readStream in place of spark.read. Without one, ",
                Hint("table.changes_since"),
                " returns them as Arrow data.",
            )
        )
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


# The stream of changes. Spark's driver keeps a Python worker for each query, which calls these functions.


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChangeStream:
    """A stream of changes, pickled for Spark's Python workers."""

    changes: SparkChanges
    """The schema of the changes, the schema of the newest version when the query is analyzed, and what is read."""
    options: Mapping[str, str]
    storage_options: Mapping[str, Any] = field(repr=False)
    max_versions: int | None
    """The maximum number of commits of a micro-batch; None for all."""


def _describe_stream(options: Mapping[str, str], storage_options: Mapping[str, Any]) -> tuple[bytes, StructType]:
    """Return the pickled description of a stream, and the schema of its changes."""
    table = _open(options, storage_options)
    request = DiffRequest(
        key=_names(options["key"], "key") if "key" in options else None,
        columns=_names(options["columns"]) if "columns" in options else None,
        where=options.get("where"),
        name=table.name,
    )
    changes = SparkChanges(reference=parts_of(table.current).loaded.version, request=request)
    stream = _ChangeStream(
        changes=changes,
        options=options,
        storage_options=dict(storage_options),
        max_versions=_max_versions(options.get("maxversionspertrigger")),
    )
    return pack_value(stream), spark_schema(changes.schema)


def _max_versions(text: str | None) -> int | None:
    if text is None:
        return None
    if PYSPARK_READ_LIMITS.applies():
        raise MissingDependencyError(
            f"The option maxVersionsPerTrigger needs limits of streams. {PYSPARK_READ_LIMITS.remedy()}"
        )
    number = text.strip()
    if not (number.isascii() and number.isdigit() and 0 < int(number) < 2**31):
        raise InvalidArgumentError(f"The option maxVersionsPerTrigger must be a whole number, 1 or more, got {text!r}.")
    return int(number)


@lru_cache(maxsize=4)
def _opened(described: bytes) -> tuple[_ChangeStream, Table]:
    """Return a stream and its table, which stays open between micro-batches."""
    stream: _ChangeStream = unpack_value(described)
    return stream, _open(stream.options, stream.storage_options)


def stream_reading(described: bytes, columns: StructType) -> bytes:
    """Return the pickled function that executors run for each task of a stream.

    Raises:
        InvalidArgumentError: The option changes is missing, or the schema is not that of the changes.
    """
    stream: _TableDescription | _ChangeStream = unpack_value(described)
    if not isinstance(stream, _ChangeStream):
        raise InvalidArgumentError(
            "Rows of versions are not a stream. Add option('changes', 'true') for the changes of rows, or use "
            "spark.read for one version."
        )
    if columns != spark_schema(stream.changes.schema):
        raise InvalidArgumentError(
            "A stream of changes has the schema of the table. Leave out the schema; select columns with "
            "option('columns', 'a,b')."
        )
    return pack_value(partial(read_tasks, stream.changes))


def initial_offset(described: bytes) -> dict[str, str]:
    """Return the offset at which a new query begins, by startingVersion or startingTimestamp, both included."""
    stream, table = _opened(described)
    history = history_of(table)
    version, time = map(stream.options.get, ("startingversion", "startingtimestamp"))
    if version is not None and time is not None:
        raise InvalidArgumentError("startingVersion and startingTimestamp exclude each other. Use one of them.")
    if time is not None:
        since = history.between(since=time)
        return _offset(position_before(history, since[-1]) if since else newest_position(history))
    if version is None:
        return _offset(start_position(history, None))
    if version.strip().lower() == "latest":
        return _offset(newest_position(history))
    first = history.version_of(version)
    return _offset(start_position(history, None) if first is None else position_before(history, first))


def max_versions(described: bytes) -> int | None:
    """Return the maximum number of commits of a micro-batch; None for all."""
    stream: _ChangeStream = unpack_value(described)
    return stream.max_versions


def latest_offset(
    described: bytes,
    start: Mapping[str, str] | None = None,
    most: int | None = None,
    target: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """Return the offset at which a micro-batch ends: after the newest commit, unless a limit comes first.

    Args:
        start: The offset at which it begins.
        most: The maximum number of commits after the start; None for all.
        target: An offset that is not passed; None for the newest commit.

    Raises:
        PositionError: There is a limit, and the history does not continue from the start.
    """
    history = history_of(_opened(described)[1])
    last = newest_position(history) if target is None else start_position(history, target[_POSITION])
    if start is None or most is None:
        return _offset(last)
    return _offset(position_after(history, start_position(history, start[_POSITION]), most, last))


def plan_stream(described: bytes, start: Mapping[str, str], end: Mapping[str, str]) -> list[bytes]:
    """Return the pickled tasks for the changes between two offsets: each commit is in one, the first rows in several.

    Raises:
        PositionError: The history does not continue from the start to the end.
    """
    stream, table = _opened(described)
    history = history_of(table)
    first, last = (start_position(history, offset[_POSITION]) for offset in (start, end))
    return [pack_value(task) for task in plan_changes(history, stream.changes, first, last, _PARALLELISM)]


_POSITION = "position"
"""The name of the position in an offset."""


def _offset(position: ChangePosition) -> dict[str, str]:
    return {_POSITION: position.text}
