"""Metadata as Spark DataFrames: files, changes and lifetimes, read and put together on executors.

The driver lists the log and plans; rows never come to it. A DataFrame is lazy: each time it is used, the log is read
again. Rows are those of the frames of the local engine, in no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.engines.spark.metadata_intervals import intervals, live
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_schema
from snapshot_explorer.engines.spark.sessions import session
from snapshot_explorer.engines.spark.tasks import on_executors
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from snapshot_explorer.formats.metadata_tasks import PREFETCHED, RECORDS
from snapshot_explorer.lifetimes.reading import states_of, time_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.formats.metadata_tasks import MetadataTask, Prefetch, Reader, StateTasks


@runtime_checkable
class SupportsDistributedMetadata(Protocol):
    """A format whose metadata can be read in many places at once: in units, each read apart from the others."""

    def state_tasks(self, version: int, prefetch: Prefetch) -> StateTasks:
        """Return the units whose RECORDS give the live files of a version.

        Raises: as `TableVersion.files`, but for what is read only with the units.
        """
        ...

    def change_tasks(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:
        """Return the units whose RECORDS give what commits changed; for lifetimes with times, and files of rows alone.

        The versions ascend. A unit is of versions without a gap.

        Raises: as `TableFormat.changes` and `committed_at`, but for what is read only with the units.
        """
        ...

    def task_reader(self) -> Reader:
        """Return what reads a unit. Picklable, storage options included."""
        ...


ENGINES = ("local", "spark")
"""What may be asked to read metadata."""

_RUN = pa.schema(
    [
        pa.field("run", pa.int64()),
        pa.field("at", frames.UTC_MILLIS),
        pa.field("until", pa.int64()),
        pa.field("until_at", frames.UTC_MILLIS),
    ]
)
"""What a record gets of the run of versions that it is in: which one, when the version of a state was committed, and
the first version of the next run with its time."""


def is_spark(engine: str) -> bool:
    """Return whether an engine is Spark, and not the local one.

    Raises:
        InvalidArgumentError: It is neither.
    """
    if engine not in ENGINES:
        raise InvalidArgumentError(f"No engine for metadata is called {engine!r}. Engines: {', '.join(ENGINES)}.")
    return engine == "spark"


def changes(table_format: TableFormat, versions: Sequence[int], spark: SparkSession | None = None) -> DataFrame:
    """Return CHANGES of versions as a DataFrame. Lists on the driver; the commits are read on executors.

    Raises: as `SupportsDistributedMetadata.change_tasks`, and as `sessions.session`.
    """
    used, supported = session(spark), _supporting_distribution(table_format)
    tasks = supported.change_tasks(sorted(versions), _prefetch(used, supported), lifetimes=False)
    rows = records(used, supported.task_reader(), ((task, {}) for task in tasks), pa.schema([]))
    return rows.select(*frames.CHANGES.names)


def files(
    table_format: TableFormat,
    version: int | None,
    spark: SparkSession | None = None,
    *,
    partition: Mapping[str, str | None] | None = None,
    statistics: bool = False,
) -> DataFrame:
    """Return FILES of a version as a DataFrame; none for no version.

    Args:
        table_format: The table.
        version: The version.
        spark: The session; without it as `sessions.session` says.
        partition: Keep files whose partition has these values, as text; None is the null partition.
        statistics: Refused: only the local engine tells statistics.

    Raises: as `SupportsDistributedMetadata.state_tasks`, and as `sessions.session`.
    """
    if statistics:
        raise UnsupportedFeatureError(
            "Statistics of files were asked for with engine='spark', which tells files without them. "
            "Leave out statistics=True, or engine='spark'."
        )
    used, supported = session(spark), _supporting_distribution(table_format)
    if version is None:
        return used.createDataFrame([], spark_schema(frames.FILES))
    state = supported.state_tasks(version, _prefetch(used, supported))
    found = records(used, supported.task_reader(), ((task, {}) for task in state.units), pa.schema([]))
    rows = live(found, keeps_last_add=state.keeps_last_add).select(*frames.FILES.names)
    for name, value in (partition or {}).items():
        wanted = rows["partition"].getItem(name)
        rows = rows.where(wanted.isNull() if value is None else wanted == value)
    return rows


def lifetimes(
    table_format: TableFormat, spark: SparkSession | None = None, *, cache_dir: str | PathLike[str] | None = None
) -> DataFrame:
    """Return LIFETIMES as a DataFrame, those of `lifetimes.read_lifetimes`.

    On the driver the log is listed, and what tells the first version of each run of versions without a gap is planned.

    Args:
        table_format: The table.
        spark: The session; without it as `sessions.session` says.
        cache_dir: Refused: nothing is kept.

    Raises: as `SupportsDistributedMetadata.state_tasks` and `change_tasks`, and as `sessions.session`.
    """
    if cache_dir is not None:
        raise InvalidArgumentError(
            "cache_dir was given with engine='spark', which keeps nothing on this machine. Leave it out, and write the "
            "DataFrame where it is to be found again."
        )
    used, supported = session(spark), _supporting_distribution(table_format)
    prefetch = _prefetch(used, supported)
    runs = list(_first_states(table_format, supported, prefetch))
    values = [_run_values(place, *pair) for place, pair in enumerate(zip_longest(runs, runs[1:]))]
    states = [(task, more) for run, more in zip(runs, values, strict=True) for task in run.state.units]
    values_of = {version: more for run, more in zip(runs, values, strict=True) for version in run.rest}
    changed = supported.change_tasks(sorted(values_of), prefetch, lifetimes=True) if values_of else ()
    read = supported.task_reader()
    return intervals(
        live(records(used, read, states, _RUN), keeps_last_add=any(run.state.keeps_last_add for run in runs)),
        records(used, read, ((task, values_of[task.version]) for task in changed), _RUN),
    ).select(*frames.LIFETIMES.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Versions of which each is the one before it and what its commit changed."""

    first: int
    """The first version."""
    at: datetime | None
    """When it was committed, where something says so."""
    state: StateTasks
    """What tells its files."""
    rest: Sequence[int]
    """The versions behind it."""


def _first_states(
    table_format: TableFormat, supported: SupportsDistributedMetadata, prefetch: Prefetch
) -> Iterator[_Run]:
    """Yield the runs of versions, each from the first on whose files can be told."""
    listing = table_format.listing(0)
    for run in listing.runs(states_of(listing), listing.commitless):
        for place, version in enumerate(run):
            try:
                state = supported.state_tasks(version, prefetch)
            except SnapshotNotFoundError:
                continue
            yield _Run(first=version, at=time_of(table_format, version), state=state, rest=run[place + 1 :])
            break


def _run_values(place: int, run: _Run, following: _Run | None) -> Mapping[str, object]:
    """Return the values of _RUN that all records of a run get."""
    until, until_at = (None, None) if following is None else (following.first, following.at)
    return {"run": place, "at": run.at, "until": until, "until_at": until_at}


def _prefetch(spark: SparkSession, supported: SupportsDistributedMetadata) -> Prefetch:
    return lambda wanted: prefetched(spark, supported.task_reader(), wanted)


def _supporting_distribution(table_format: TableFormat) -> SupportsDistributedMetadata:
    found: Any = table_format
    if not isinstance(found, SupportsDistributedMetadata):
        raise UnsupportedFeatureError(
            f"The metadata of {table_format.name} tables is not read on Spark: the format does not tell it in pieces. "
            "Leave out engine='spark'."
        )
    return found


_ROWS = 8_192
"""Rows of a batch that Spark is handed."""


def records(
    spark: SparkSession, read: Reader, tasks: Iterable[tuple[MetadataTask, Mapping[str, Any]]], more: pa.Schema
) -> DataFrame:
    """Return the RECORDS of tasks as a lazy DataFrame. Each action runs one Spark task per metadata task.

    Args:
        spark: The session, classic or Connect.
        read: Reads the records of a task.
        tasks: The tasks, each with values that are added to all of its records.
        more: The schema of these values.
    """
    schema = pa.schema([*RECORDS, *more])
    return on_executors(spark, partial(_records, read, schema), tasks, spark_schema(schema))


def prefetched(spark: SparkSession, read: Reader, tasks: Sequence[MetadataTask]) -> pa.Table:
    """Return the PREFETCHED of tasks. Runs one Spark job."""
    function = partial(_records, read, PREFETCHED)
    found = on_executors(spark, function, [(task, {}) for task in tasks], spark_schema(PREFETCHED)).toArrow()
    return found.select(PREFETCHED.names).cast(PREFETCHED)


def _records(
    read: Reader, schema: pa.Schema, task_and_values: tuple[MetadataTask, Mapping[str, Any]]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task with its values added. Runs on executors."""
    task, values = task_and_values
    for table in read(task):
        for name, value in values.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value, schema.field(name).type), len(table)))  # noqa: PLW2901 - grows
        yield from table.select(schema.names).cast(arrow_schema(schema)).to_batches(max_chunksize=_ROWS)
