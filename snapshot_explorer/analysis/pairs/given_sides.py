"""`given_side`: what a caller passes in place of a snapshot, as a side of a row diff."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from snapshot_explorer.analysis.given.data_frames import arrow_table, is_rows, is_spark_frame, name_of
from snapshot_explorer.analysis.given.given_rows import GivenRows, SparkRows
from snapshot_explorer.analysis.given.plain_files import open_files
from snapshot_explorer.analysis.pairs.pair_plan import PairSide
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


def given_side(value: object, like: pa.Schema | None, storage_options: Mapping[str, Any] | None) -> PairSide:
    """Return a DataFrame, Arrow data or a path of files as a side of a row diff.

    A path is listed; Arrow data is read into memory.

    Args:
        like: The columns that the rows are compared with; None if they are not known.

    Raises:
        InvalidArgumentError: It is nothing of these, or has no rows in columns with unique names.
        TableNotFoundError: There are no such files.
    """
    if isinstance(value, str | os.PathLike):
        files = open_files(value, storage_options, like)
        return PairSide(path=files.root, name=files.root, version=files)
    if is_spark_frame(value):
        from snapshot_explorer.engines.spark.schemas import schema_of  # noqa: PLC0415 - where there is Spark

        return PairSide(path="", name="Spark DataFrame", version=SparkRows(value, schema_of(value)))  # type: ignore[arg-type]
    if is_rows(value):
        return PairSide(path="", name=name_of(value), version=GivenRows(arrow_table(value, like)))
    raise InvalidArgumentError(
        Message(
            f"diff compares snapshots, DataFrames and paths of files, got {type(value).__name__}. A snapshot is ",
            Hint("table.at", {"ref": 7}),
            " or ",
            Hint("table.at", {"ref": "latest"}),
            ".",
        )
    )
