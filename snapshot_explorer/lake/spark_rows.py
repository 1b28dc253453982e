"""The rows of an overview, read on Spark's executors: each reads some of the tables."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from snapshot_explorer.core.errors import SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.lake.overview import OverviewRequest, failed_row, overview_row
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import open_found

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.lake.tables import LakeTable

_TABLES_PER_TASK = 20
_Task = tuple[tuple[str, Storage, str], ...]


def rows_on_spark(
    tables: Sequence[LakeTable], request: OverviewRequest, spark: SparkSession | None
) -> list[dict[str, Any]]:
    """Return the rows of LAKE_OVERVIEW of tables in folders, in no order. Storage options appear in no plan."""
    from snapshot_explorer.engines.spark.schemas import spark_schema  # noqa: PLC0415 - only for Spark
    from snapshot_explorer.engines.spark.sessions import session  # noqa: PLC0415 - the same
    from snapshot_explorer.engines.spark.tasks import collect, on_executors  # noqa: PLC0415 - the same

    locations = [(table.name, *table.folder) for table in tables if table.folder is not None]
    if len(locations) < len(tables):
        raise UnsupportedFeatureError(
            Message(
                Hint("", {"engine": "spark"}),
                " reads tables below a folder. Leave it out for tables in a catalog, and for folders that could not be "
                "listed.",
            )
        )
    tasks = [tuple(locations[start : start + _TABLES_PER_TASK]) for start in range(0, len(locations), _TABLES_PER_TASK)]
    used = session(spark)
    schema = spark_schema(pa.schema([pa.field("row", pa.string())]))
    rows = [
        orjson.loads(line["row"]) for line in collect(used, on_executors(used, partial(_read, request), tasks, schema))
    ]
    for row in rows:
        if row.get("committed_at") is not None:
            row["committed_at"] = datetime.fromisoformat(row["committed_at"])
    return rows


def _read(request: OverviewRequest, task: _Task) -> Iterator[pa.RecordBatch]:
    """Yield the row of each table of a task as JSON. Runs on an executor."""
    for name, storage, table_format in task:
        try:
            with storage.reading_once():
                row = overview_row(open_found(storage, table_format), request)
        except SnapshotExplorerError as error:
            row = {"format": table_format, "path": storage.root, **failed_row(error)}
        yield pa.record_batch([pa.array([orjson.dumps({**row, "name": name}).decode()])], names=["row"])
