"""The classes for Spark's data source API.

Spark pickles an inner class by value. A worker can therefore create these classes, and raise a readable error, even if
the package is not installed there. This requires that their methods use nothing of this module: they import the
functions of the source by name, from the module `home`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapshot_explorer.core.errors import MissingDependencyError
from snapshot_explorer.core.hints import Hint, python_call
from snapshot_explorer.core.old_libraries import PYSPARK_DATA_SOURCES, PYSPARK_READ_LIMITS
from snapshot_explorer.engines.spark.tasks import NOT_ON_EXECUTOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    import pyarrow as pa
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType

_EXECUTORS = "snapshot_explorer.engines.spark.executors"
_NOT_ON_DRIVER = (
    "The data source 'snapshot' opens the table in a Python worker of Spark's driver (of Spark Connect: of the "
    "server), and snapshot_explorer cannot be imported there: {error}. Install it in the Python environment that "
    "Spark runs there: pip install snapshot-explorer. Where all that it depends on is installed, "
    "spark.addArtifacts('snapshot_explorer.zip', pyfile=True) with the package in a zip is enough. "
    + python_call(Hint("snapshot.to_spark", {"ref": ..., "spark": ...}))
    + " does without it there."
)


def source_class(home: str, storage_options: Mapping[str, Any] | None = None) -> type[DataSource]:
    """Return a class for `spark.dataSource.register`.

    Args:
        home: The module that has `describe`, `check_schema`, `reading`, `plan` and `bound`, and for streams
            `stream_reading`, `initial_offset`, `latest_offset`, `max_versions` and `plan_stream`.
        storage_options: Options for fsspec. They are stored in the class, which Spark never displays.
    """
    if PYSPARK_DATA_SOURCES.applies():
        raise MissingDependencyError(
            f"Spark has no data sources in Python: {PYSPARK_DATA_SOURCES.remedy()}. to_spark returns the same rows."
        )
    try:
        from pyspark.sql import datasource
    except ImportError as error:
        raise MissingDependencyError(
            "The Spark data source needs pyspark 4.0 or newer, which is not installed. Install it with: pip install "
            "'pyspark>=4.0'"
        ) from error
    call = _caller(home, _NOT_ON_DRIVER)
    on_executor = _caller(_EXECUTORS, NOT_ON_EXECUTOR)
    readers = _reader_class(datasource, call, on_executor), _stream_reader_class(datasource, call, on_executor)
    return _source_class(datasource, call, readers, _hidden(storage_options or {}))


def _caller(module: str, missing_message: str) -> Callable[..., Any]:
    def call(function: str, *arguments: object) -> Any:
        """Call a function of the module; errors of the package have no traceback."""
        from importlib import import_module  # noqa: PLC0415 - a worker does not have this module

        try:
            errors = import_module("snapshot_explorer.core.errors")
            implementation = getattr(import_module(module), function)
        except ImportError as error:
            raise ImportError(missing_message.format(error=error)) from None
        try:
            return implementation(*arguments)
        except errors.SnapshotExplorerError as error:
            raise error.with_traceback(None) from None

    return call


def _hidden(options: Mapping[str, Any]) -> dict[str, Any]:
    class HiddenOptions(dict[str, Any]):
        """Storage options, which a traceback with locals does not display."""

        def __repr__(self) -> str:
            return f"<{len(self)} storage options>"

    return HiddenOptions(options)


def _reader_class(datasource: ModuleType, call: Callable[..., Any], on_executor: Callable[..., Any]) -> Any:
    class Reader(datasource.DataSourceReader):  # type: ignore[misc, name-defined] # loaded only when used
        """Reads one version, in tasks according to its size."""

        def __init__(self, described: bytes, schema: StructType) -> None:
            self.described = described
            self.function: bytes = call("reading", described, schema)
            self.filters: list[object] = []
            if hasattr(super(), "pushFilters"):  # PySpark 4.0 has no filters
                self._offer_filters(super().pushFilters)

        def _offer_filters(self, inherited: Any) -> None:
            """Let Spark push filters if this is enabled.

            If spark.sql.python.filterPushdown.enabled is off, which is the default, Spark refuses every reader that
            overrides `pushFilters`, since it might drop filters. This reader drops none: Spark applies all of them
            again. Spark checks `__func__`, and here finds the inherited function.
            """

            def push(filters: list[object]) -> list[object]:
                self.filters = list(filters)
                return filters

            push.__dict__["__func__"] = inherited.__func__
            self.pushFilters = push

        def partitions(self) -> list[InputPartition]:
            return [datasource.InputPartition(task) for task in call("plan", self.described, self.filters)]

        def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
            if partition is None or partition.value is None:
                return iter(())  # without partitions, Spark creates an empty task; PySpark 4.0 one of None
            batches: Iterator[pa.RecordBatch] = on_executor("run", self.function, partition.value)
            return batches

    return Reader


def _stream_reader_class(datasource: ModuleType, call: Callable[..., Any], on_executor: Callable[..., Any]) -> Any:
    class StreamReader(datasource.DataSourceStreamReader):  # type: ignore[misc, name-defined] # loaded only when used
        """Reads changes commit by commit. Offsets are positions of changes."""

        def __init__(self, described: bytes, schema: StructType) -> None:
            self.described = described
            self.function: bytes = call("stream_reading", described, schema)

        def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark names it
            offset: dict[str, str] = call("initial_offset", self.described)
            return offset

        def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
            return [datasource.InputPartition(task) for task in call("plan_stream", self.described, start, end)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            batches: Iterator[pa.RecordBatch] = on_executor("run", self.function, partition.value)
            return batches

    return _unlimited_class(StreamReader, call) if PYSPARK_READ_LIMITS.applies() else _limited_class(StreamReader, call)


def _unlimited_class(base: Any, call: Callable[..., Any]) -> Any:
    class UnlimitedStreamReader(base):  # type: ignore[misc] # made above
        """Reads all new commits in a micro-batch. Before 4.2, PySpark has no limits."""

        def latestOffset(self) -> dict[str, str]:  # noqa: N802 - Spark names it
            offset: dict[str, str] = call("latest_offset", self.described)
            return offset

    return UnlimitedStreamReader


def _limited_class(base: Any, call: Callable[..., Any]) -> Any:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

    class LimitedStreamReader(base, SupportsTriggerAvailableNow):  # type: ignore[misc] # made above
        """Reads up to a number of commits in a micro-batch."""

        target: dict[str, str] | None = None

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark names it
            most = call("max_versions", self.described)
            # Spark passes on only its own kinds of limits, and has none of versions.
            return ReadAllAvailable() if most is None else ReadMaxFiles(most)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark names it
            self.target = call("latest_offset", self.described)

        def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802 - Spark names it
            most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
            offset: dict[str, str] = call("latest_offset", self.described, start, most, self.target)
            return offset

    return LimitedStreamReader


def _source_class(
    datasource: ModuleType,
    call: Callable[..., Any],
    reader_classes: tuple[Any, Any],
    storage_options: Mapping[str, Any],
) -> type[DataSource]:
    reader_class, stream_reader_class = reader_classes

    class SnapshotDataSource(datasource.DataSource):  # type: ignore[misc, name-defined] # loaded only when used
        """Any version of a Paimon, Delta, Iceberg or Hudi table, as `spark.read.format("snapshot")`.

        `spark.dataSource.register(SnapshotDataSource)`, then `.option("version", "17").load(path)`. Options:
        `version` (any ref; the newest version by default), `branch`, `format` (paimon, delta or iceberg), `columns`
        (names separated by commas), `where` (a condition in SQL, as in `to_arrow`), `external_files` (allow or
        refuse, as in `open_table`) and `limits` (such as metadata_bytes=8589934592; see `Limits`). Spark resolves a ref
        when it analyzes the query: when the DataFrame is created, and over Spark Connect again at each action. Pass
        storage options to `with_storage_options`, never as options: Spark may display options in plans and logs.

        Rows, types and nullability are the same as in `Snapshot.to_spark`. Spark reads all columns of the source, since
        its Python API has no projection; use `columns` to select some. Filters of the DataFrame skip partitions,
        buckets and files if spark.sql.python.filterPushdown.enabled is set (PySpark 4.1); `where` always does.

        `spark.readStream.format("snapshot").option("changes", "true").load(path)` is a stream of row changes, as
        `Table.changes_since` returns them, in the schema of the newest version when the query starts. It has
        all options above but `version`, and `startingVersion` and `startingTimestamp`, both included (`latest`: only
        later commits; by default from the oldest version, whose rows count as inserted), and `key`, names separated by
        commas. Offsets are positions: a query goes on from its checkpoint, each commit once. A micro-batch has all new
        commits, or with `maxVersionsPerTrigger` (PySpark 4.2) at most so many.
        """

        described: bytes | None = None

        @classmethod
        def name(cls) -> str:
            return "snapshot"

        @classmethod
        def with_storage_options(cls, options: Mapping[str, Any]) -> type[DataSource]:
            """Return a class to register for tables whose storage needs credentials or settings; see `open_table`."""
            made: type[DataSource] = call("bound", options)
            return made

        def schema(self) -> StructType:
            self.described, schema = call("describe", dict(self.options), storage_options)
            struct: StructType = schema
            return struct

        def reader(self, schema: StructType) -> DataSourceReader:
            if self.described is None:  # Spark does not call `schema` if the user provides one
                self.described, own = call("describe", dict(self.options), storage_options)
                call("check_schema", schema, own)
            data_source_reader: DataSourceReader = reader_class(self.described, schema)
            return data_source_reader

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark names it
            if self.described is None:
                self.described, _ = call("describe", dict(self.options), storage_options)
            stream_reader: DataSourceStreamReader = stream_reader_class(self.described, schema)
            return stream_reader

    return SnapshotDataSource
