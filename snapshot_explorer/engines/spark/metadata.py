"""Metadata as Spark DataFrames: files, changes and lifetimes, read and combined on executors.

The driver lists the log and plans; it never receives rows. DataFrames are lazy: each action reads the log again. The
rows equal the rows of the local engine's frames, in no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.arrow.shown_texts import without_url_secrets
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import CHANGED_BY_NEXT, Listing, gaps_note
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.engines.spark.schemas import arrow_schema, spark_schema
from snapshot_explorer.engines.spark.sessions import session
from snapshot_explorer.engines.spark.tasks import collect, on_executors
from snapshot_explorer.formats.metadata_tasks import PREFETCHED, RECORDS
from snapshot_explorer.history.lifetimes.intervals import FACTS
from snapshot_explorer.history.lifetimes.reading import states_of, time_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import Column, DataFrame, SparkSession

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.formats.capabilities import MetadataTasks
    from snapshot_explorer.formats.metadata_tasks import MetadataTask, Prefetch, StateTasks, TaskReader


log = logger_of(__name__)

ENGINES = ("local", "spark")
"""The engines that can read metadata."""

_RUN = pa.schema(
    [
        pa.field("run", pa.int64()),
        pa.field("at", frames.UTC_MILLIS),
        pa.field("until", pa.int64()),
        pa.field("until_at", frames.UTC_MILLIS),
    ]
)
"""Columns that are added to each record for its run of versions: the number of the run, the commit time of the
version of a state, and the first version of the next run with its time."""


def is_spark(engine: str) -> bool:
    """Return whether an engine is Spark, not the local one."""
    if engine not in ENGINES:
        raise InvalidArgumentError(f"{engine!r} is not an engine for metadata. Engines: {', '.join(ENGINES)}.")
    return engine == "spark"


def changes(
    table_format: TableFormat,
    versions: Sequence[int],
    spark: SparkSession | None = None,
    *,
    notes: Sequence[str] = (),
) -> DataFrame:
    """Return CHANGES of versions as a DataFrame. Lists on the driver and reads commits on executors.

    Args:
        notes: Sentences on missing rows: logged as warnings, since a DataFrame shows none.
    """
    _warn(notes)
    metadata, used = _tasks(table_format), session(spark)
    tasks = metadata.of_changes(sorted(versions), _prefetch(used, metadata), lifetimes=False)
    rows = records(used, metadata.reader(), ((task, {}) for task in tasks), pa.schema([]))
    return rows.select(*frames.CHANGES.names)


def files(
    table_format: TableFormat,
    version: int | None,
    spark: SparkSession | None = None,
    *,
    partition: Mapping[str, str | None] | None = None,
    statistics: bool = False,
) -> DataFrame:
    """Return FILES of a version as a DataFrame; empty if the version is None.

    Args:
        statistics: Refused: only the local engine reads statistics.
    """
    if statistics:
        raise UnsupportedFeatureError(
            Message(
                Hint("", {"engine": "spark"}),
                " does not read the statistics of files. Leave out ",
                Hint("", {"statistics": True}),
                ", or ",
                Hint("", {"engine": "spark"}),
                ".",
            )
        )
    used = session(spark)
    if version is None:
        return used.createDataFrame([], spark_schema(frames.FILES))
    metadata = _tasks(table_format)
    state = metadata.of_state(version, _prefetch(used, metadata))
    state_records = records(used, metadata.reader(), ((task, {}) for task in state.tasks), pa.schema([]))
    rows = live_records(state_records, keeps_last_add=state.keeps_last_add).select(*frames.FILES.names)
    for name, value in (partition or {}).items():
        partition_value = rows["partition"].getItem(name)
        rows = rows.where(partition_value.isNull() if value is None else partition_value == value)
    return rows


def lifetimes(
    table_format: TableFormat, spark: SparkSession | None = None, *, cache_dir: str | PathLike[str] | None = None
) -> DataFrame:
    """Return LIFETIMES as a DataFrame, with the rows of `lifetimes.read_lifetimes`.

    The driver lists the log and plans the tasks for the first version of each run of versions without a gap.

    Args:
        cache_dir: Refused: nothing is cached.
    """
    if cache_dir is not None:
        raise InvalidArgumentError(
            Message(
                Hint("", {"engine": "spark"}),
                " does not support cache_dir, since it keeps nothing on this machine. Leave it out. To keep the "
                "DataFrame, write it to a table of your own.",
            )
        )
    from pyspark.sql import functions as f

    used = session(spark)
    metadata = _tasks(table_format)
    prefetch = _prefetch(used, metadata)
    listing = table_format.listing(0)
    gaps = listing.gaps(states_of(listing))
    _warn(gaps_note(gaps, CHANGED_BY_NEXT))
    runs = list(_first_states(table_format, metadata, listing, prefetch))
    values = [_run_values(index, *pair) for index, pair in enumerate(zip_longest(runs, runs[1:]))]
    states = [(task, more) for run, more in zip(runs, values, strict=True) for task in run.state.tasks]
    values_of = {version: more for run, more in zip(runs, values, strict=True) for version in run.rest}
    changed = metadata.of_changes(sorted(values_of), prefetch, lifetimes=True) if values_of else ()
    read = metadata.reader()
    rows = intervals(
        live_records(records(used, read, states, _RUN), keeps_last_add=any(run.state.keeps_last_add for run in runs)),
        records(used, read, ((task, values_of[task.version]) for task in changed), _RUN),
    )
    if gaps:  # a version that is missing may have removed what the next one lacks
        is_after_gap = rows["removed_version"].isin([gap.after for gap in gaps])
        rows = rows.withColumn("removed_at", f.when(~is_after_gap, rows["removed_at"]))
    return rows.select(*frames.LIFETIMES.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Versions without a gap: each one is its predecessor plus the changes of its commit."""

    first: int
    """The first version."""
    at: datetime | None
    """The commit time of the first version; None if it is not known before the tasks run."""
    state: StateTasks
    """The tasks for the files of the first version."""
    rest: Sequence[int]
    """The versions after the first."""


def _first_states(
    table_format: TableFormat, metadata: MetadataTasks, listing: Listing, prefetch: Prefetch
) -> Iterator[_Run]:
    """Yield the runs of versions, each from the first version with known files."""
    for run in listing.runs(states_of(listing), listing.without_commit):
        for index, version in enumerate(run):
            try:
                state = metadata.of_lifetimes(version, prefetch)
            except SnapshotNotFoundError:
                continue
            yield _Run(first=version, at=time_of(table_format, version), state=state, rest=run[index + 1 :])
            break


def _warn(notes: Sequence[str]) -> None:
    for note in notes:
        log.warning("%s", note)


def _run_values(index: int, run: _Run, following: _Run | None) -> Mapping[str, object]:
    until, until_at = (None, None) if following is None else (following.first, following.at)
    return {"run": index, "at": run.at, "until": until, "until_at": until_at}


def _prefetch(spark: SparkSession, metadata: MetadataTasks) -> Prefetch:
    return lambda tasks: prefetch(spark, metadata.reader(), tasks)


def _tasks(table_format: TableFormat) -> MetadataTasks:
    """Return the metadata of a table in tasks. Raises UnsupportedFeatureError if the format does not split it."""
    tasks = table_format.metadata_tasks
    if tasks is None:
        raise UnsupportedFeatureError(
            Message(
                Hint("", {"engine": "spark"}),
                f" cannot read the metadata of {table_format.name} tables: the format does not split it into tasks. "
                "Leave out ",
                Hint("", {"engine": "spark"}),
                ".",
            )
        )
    return tasks


_ROWS = 8_192
"""The maximum number of rows in a batch for Spark."""


def records(
    spark: SparkSession, read: TaskReader, tasks: Iterable[tuple[MetadataTask, Mapping[str, Any]]], more: pa.Schema
) -> DataFrame:
    """Return the RECORDS of tasks as a lazy DataFrame. Each action runs one Spark task per metadata task."""
    schema = pa.schema([*RECORDS, *more])
    return on_executors(spark, partial(_records, read, schema, hidden=True), tasks, spark_schema(schema))


def prefetch(spark: SparkSession, read: TaskReader, tasks: Sequence[MetadataTask]) -> pa.Table:
    """Return the PREFETCHED of tasks. Runs one Spark job."""
    function = partial(_records, read, PREFETCHED)
    rows = on_executors(spark, function, [(task, {}) for task in tasks], spark_schema(PREFETCHED))
    return pa.Table.from_pylist([row.asDict() for row in collect(spark, rows)], PREFETCHED)


def _records(
    read: TaskReader,
    schema: pa.Schema,
    task_and_values: tuple[MetadataTask, Mapping[str, Any]],
    *,
    hidden: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task with the added values. Runs on executors.

    Args:
        hidden: Whether to hide the secrets of URLs, which users would see in the rows.
    """
    task, values = task_and_values
    for table in read(task):
        if hidden:
            table = without_url_secrets(table, exact=("partition",))  # noqa: PLW2901 - as below
        for name, value in values.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value, schema.field(name).type), len(table)))  # noqa: PLW2901 - grows
        yield from table.select(schema.names).cast(arrow_schema(schema)).to_batches(max_chunksize=_ROWS)


def live_records(records: DataFrame, *, keeps_last_add: bool) -> DataFrame:
    """Return the records of live files: adds without a later remove.

    Args:
        records: RECORDS of one or more states, and further columns.
        keeps_last_add: Several adds of one file count as the last one, starting at the version of the first.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    same = Window.partitionBy("version", "identity")
    removed = f.max(f.when(f.col("change") == "remove", f.col("rank"))).over(same)
    with_removals = records.withColumn("removed", removed)
    kept = with_removals.where(
        (f.col("change") == "add") & (f.col("removed").isNull() | (f.col("rank") > f.col("removed")))
    )
    if not keeps_last_add:
        return kept.drop("removed")
    newest = same.orderBy(f.desc("rank"), f.desc("position"))
    whole = newest.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    counted = kept.withColumn("turn", f.row_number().over(newest))
    since = counted.withColumn("added_version", f.last("added_version").over(whole))
    return since.where(f.col("turn") == 1).drop("removed", "turn")


def intervals(states: DataFrame, changes: DataFrame) -> DataFrame:
    """Return the intervals of files: LIFETIMES, and other columns.

    A commit that removes a file, or adds it with other attributes, ends its interval; so does the first version of the
    next run, if that lacks it. A file that one commit adds and removes, in this order, was never live.

    Args:
        states: Records of the live files of the first version of each run of versions without gaps, with `run`, the
            run's number, `at`, the version's time where the records have none, and `until` and `until_at`, the first
            version of the next run and its time.
        changes: Records of the commits behind these versions, with the same.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    at = f.coalesce("committed_at", "at")
    begins = states.withColumns({"is_state": f.lit(True), "committed_at": at})  # noqa: FBT003 - a value
    others = changes.where(f.col("list") == "delta").withColumn("is_state", f.lit(False))  # noqa: FBT003 - a value
    # In Paimon a deletion vector changes while its file remains; without levels it is part of the file's key.
    vector = f.when(f.col("level").isNull(), f.col("deletion_vector"))
    newest = Window.partitionBy("path", "level", vector).orderBy(f.desc("version"), f.desc("position"))
    event = f.struct("version", "committed_at", "change", "run", "is_state", f.struct(*FACTS).alias("facts"))
    events = begins.unionByName(others).withColumn("event", event)
    neighbors = {"after": f.lag("event").over(newest), "before": f.lead("event").over(newest)}
    transitions = events.withColumns(neighbors).withColumns({"ends": _end_of(), "begins": _begins()})
    up_to_here = newest.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # The next end is the earliest of all later ones.
    with_removals = transitions.withColumn("removed", f.min("ends").over(up_to_here)).where("begins")
    lasting = with_removals.where(f.col("removed").isNull() | (f.col("removed.version") > f.col("version")))
    return lasting.withColumns(
        {
            "added_at": f.when(f.col("added_version") == f.col("version"), f.col("committed_at")),
            "first_version": f.col("version"),
            "removed_version": f.col("removed.version"),
            "removed_at": f.col("removed.committed_at"),
        }
    )


def _end_of() -> Column:
    """Return the end of the interval that an event begins or continues, up to the next event: null if it stays open."""
    from pyspark.sql import functions as f

    next_run = f.struct(f.col("until").alias("version"), f.col("until_at").alias("committed_at"))
    following = f.struct(f.col("after.version").alias("version"), f.col("after.committed_at").alias("committed_at"))
    known = f.coalesce(_is_continuous("event", "after"), f.lit(False))  # noqa: FBT003 - a value
    return (
        f.when(f.col("change") == "remove", None)
        .when(~known, f.when(f.col("until").isNotNull(), next_run))
        .when((f.col("after.change") == "add") & _has_same_facts("event", "after"), None)
        .otherwise(following)
    )


def _begins() -> Column:
    """Return whether an event begins an interval: it adds a file that is not live, or is live with other attributes."""
    from pyspark.sql import functions as f

    was_there = (f.col("before.change") == "add") & _is_continuous("before", "event")
    is_unchanged = f.coalesce(was_there & _has_same_facts("before", "event"), f.lit(False))  # noqa: FBT003 - a value
    return (f.col("change") == "add") & ~is_unchanged


def _is_continuous(earlier: str, later: str) -> Column:
    """Return whether two events of a file are in one run, or all runs that begin between them have the file."""
    from pyspark.sql import functions as f

    next_one = f.col(f"{later}.is_state") & (f.col(f"{later}.run") == f.col(f"{earlier}.run") + 1)
    return (f.col(f"{later}.run") == f.col(f"{earlier}.run")) | next_one


def _has_same_facts(left: str, other: str) -> Column:
    """Return whether two events have the same attributes of a file; nulls are equal."""
    from pyspark.sql import functions as f

    return f.col(f"{left}.facts").eqNullSafe(f.col(f"{other}.facts"))
