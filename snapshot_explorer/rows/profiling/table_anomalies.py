"""The versions of a table where a number jumps, with the commits behind them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.frames import Frame
from snapshot_explorer.model import MAINTENANCE_KINDS
from snapshot_explorer.rows.profiling.anomalies import AnomalyRules, jump_notes, jumps
from snapshot_explorer.rows.profiling.column_numbers import rows_note, rows_over
from snapshot_explorer.rows.profiling.profiles import Profile, unrecorded_columns
from snapshot_explorer.rows.source import Source
from snapshot_explorer.visible import visible


@dataclass(frozen=True, slots=True)
class DoubledKeys:
    """At which versions several rows have the same key."""

    key: tuple[str, ...]
    changes: Frame
    """The versions where they begin or cease to have: BISECTED, ascending, with the first version that was read."""

    def marked(self) -> pa.Table:
        """Return ANOMALIES for the versions where they begin to have, ascending."""
        names = ", ".join(map(visible, self.key))
        changes = self.changes.to_arrow()
        rule = f"several rows have the same {names}"
        rules = [f"{rule}, already at the first version that was read", *[rule] * len(changes)][: len(changes)]
        columns = {
            "version": changes["version"],
            "committed_at": changes["committed_at"],
            "measure": "duplicates",
            "column": names,
            "value": "yes",
            "rule": rules,
        }
        return frames.table_of(frames.ANOMALIES, columns).filter(changes["holds"])


def table_anomalies(
    source: Source,
    profile: Profile,
    between: Sequence[int] | None,
    rules: AnomalyRules,
    doubled: DoubledKeys | None = None,
) -> Frame:
    """Return the versions of a table where a number jumps: ANOMALIES, newest first, with the commits behind them.

    Args:
        between: The versions to mark; None for all. The others are only compared with.
        doubled: At which versions several rows have the same key; None if that was not read.
    """
    lifetimes = source.lifetimes()
    totals = lifetimes.totals()
    head = totals.select(["version", "committed_at"])
    values = {"rows": rows_over(lifetimes), "files": totals["files"], "size_bytes": totals["size_bytes"]}
    of_table = {name: head.append_column("value", item) for name, item in values.items()}
    gaps = lifetimes.gaps
    marked = jumps(of_table, profile.columns, rules, gaps)
    if doubled is not None:
        marked = pa.concat_tables([marked, doubled.marked()]).sort_by([("version", "ascending")])
    if between is not None:
        marked = marked.filter(pc.is_in(marked["version"], pa.array(list(between), pa.int64())))
        gaps = tuple(gap for gap in gaps if gap.after in set(between))
    if len(marked):
        marked = _with_commits(source, marked, frozenset(gap.after for gap in gaps))
    rows = marked.take(pa.array(np.arange(len(marked))[::-1]))
    unrecorded = unrecorded_columns(profile.columns, everywhere=True)
    return Frame(
        rows,
        title=f"Anomalies of {source.name}"
        + (f"; the metadata has no statistics of {unrecorded}" if unrecorded else ""),
        noun="anomalies",
        # The rule names the measure and the column.
        drawn=frames.non_empty_columns(rows, exclude=("operation", "measure", "column")),
        limit=len(rows),
        notes=(
            *jump_notes(gaps),
            *rows_note(source.format, profile.versions),
            *(() if doubled is None else doubled.changes.notes),
        ),
    )


def _with_commits(source: Source, marked: pa.Table, after_gaps: frozenset[int]) -> pa.Table:
    """Return marks with the commits behind them, without those of the table that commits of maintenance make.

    A mark after a gap has no commit: a missing one may have made the change.
    """
    unknown = after_gaps | set(source.listing.commitless)
    versions = [version for version in pc.unique(marked["version"]).to_pylist() if version not in unknown]
    commits = source.format.commits(versions)
    places = pc.index_in(marked["version"], commits["version"].combine_chunks())
    for name in ("kind", "operation"):
        index = marked.schema.get_field_index(name)
        marked = marked.set_column(index, marked.schema.field(name), commits[name].combine_chunks().take(places))
    is_expected = pc.and_(pc.is_in(marked["kind"], pa.array(MAINTENANCE_KINDS)), marked["column"].is_null())
    return marked.filter(pc.invert(is_expected))
