"""From RECORDS to live files and lifetimes, in Spark: the rules of `lifetimes.intervals`, as windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer.lifetimes.intervals import FACTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def live(records: DataFrame, *, keeps_last_add: bool) -> DataFrame:
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
    newest = same.orderBy(f.desc("rank"), f.desc("place"))
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
            run's number, `at`, the version's time, and `until` and `until_at`, the first version of the next run and
            its time.
        changes: Records of the commits behind these versions, with the same.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    begins = states.withColumns({"is_state": f.lit(True), "committed_at": f.col("at")})  # noqa: FBT003 - a value
    others = changes.where(f.col("list") == "delta").withColumn("is_state", f.lit(False))  # noqa: FBT003 - a value
    # In Paimon a deletion vector changes while its file remains; without levels it is part of the file's key.
    vector = f.when(f.col("level").isNull(), f.col("deletion_vector"))
    newest = Window.partitionBy("path", "level", vector).orderBy(f.desc("version"), f.desc("place"))
    event = f.struct("version", "committed_at", "change", "run", "is_state", f.struct(*FACTS).alias("facts"))
    events = begins.unionByName(others).withColumn("event", event)
    neighbors = {"after": f.lag("event").over(newest), "before": f.lead("event").over(newest)}
    transitions = events.withColumns(neighbors).withColumns({"ends": _end_of(), "begins": _begins()})
    up_to_here = newest.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # The next end is the earliest of all later ones.
    ended = transitions.withColumn("removed", f.min("ends").over(up_to_here)).where("begins")
    lasting = ended.where(f.col("removed").isNull() | (f.col("removed.version") > f.col("version")))
    return lasting.withColumns(
        {
            "added_at": f.when(f.col("added_version") == f.col("version"), f.col("committed_at")),
            "first_version": f.col("version"),
            "removed_version": f.col("removed.version"),
            "removed_at": f.col("removed.committed_at"),
        }
    )


def _end_of() -> Column:
    """Return what ends the interval that an event begins or continues, before the next event: null if nothing."""
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
