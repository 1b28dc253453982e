"""What is known about which versions can be loaded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import readable_words
from snapshot_explorer.core import frames

_RANKS = ("yes", None, "metadata", "no")
"""The values of `readable`, the most optimistic first."""


@dataclass(slots=True)
class KnownReadability:
    """The READABILITY that was computed last, shared by a table and its snapshots."""

    rows: pa.Table = field(default_factory=partial(frames.no_rows, frames.READABILITY))
    """READABILITY; empty if not computed."""
    missing: frozenset[str] | None = None
    """The paths of data files that are missing, or whose deletion vector is missing; None if not computed."""

    def in_words(self, commits: pa.Table) -> list[str]:
        """Return whether each of COMMITS can be loaded, in words, with the reason if it is recorded here."""
        if not len(self.rows):
            return [*map(readable_words, commits["readable"].to_pylist())]
        at = pc.index_in(commits["version"], self.rows["version"].combine_chunks())
        known = self.rows.select(["readable", "reason"]).take(at.combine_chunks()).to_pylist()
        return [
            readable_words(readable, row["reason"] if readable == row["readable"] else None)
            for readable, row in zip(commits["readable"].to_pylist(), known, strict=True)
        ]

    def of_commit(self, version: int, committed_at: datetime | None) -> Mapping[str, object] | None:
        """Return the row of READABILITY of a commit; None if it was not computed for this one."""
        rows = self.rows.filter(pc.equal(self.rows["version"], version)).to_pylist()
        return next((row for row in rows if row["committed_at"] == committed_at), None)

    def applied_to(self, commits: pa.Table) -> pa.Table:
        """Return COMMITS that do not contradict this READABILITY; see `with_readability`."""
        return with_readability(commits, self.rows)


def with_readability(commits: pa.Table, readability: pa.Table) -> pa.Table:
    """Return COMMITS whose `readable` is no more optimistic than in READABILITY for the same commits.

    A null `readable` becomes the value in READABILITY.
    """
    if not len(commits) or not len(readability):
        return commits
    at = pc.index_in(commits["version"], readability["version"].combine_chunks())
    # After a rollback, a version may be another commit.
    is_same = pc.fill_null(pc.equal(readability["committed_at"].take(at), commits["committed_at"]), fill_value=False)
    ranks = pc.if_else(is_same, _ranks(readability["readable"].take(at)), 0)
    worse = pc.max_element_wise(_ranks(commits["readable"]), ranks)
    worse = pc.if_else(pc.and_(is_same, commits["readable"].is_null()), ranks, worse)
    index = frames.COMMITS.get_field_index("readable")
    return commits.set_column(index, frames.COMMITS.field(index), pa.array(_RANKS).take(worse.combine_chunks()))


def _ranks(readable: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.index_in(readable, pa.array(_RANKS))
