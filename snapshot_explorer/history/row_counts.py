"""The logical counts of commits whose differing rows were read, in place of those that metadata does not have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from snapshot_explorer.core import frames

_COUNTS = ("rows_inserted", "rows_updated", "rows_deleted")


@dataclass(slots=True)
class KnownRowCounts:
    """The counts that were read, shared by a table and its snapshots."""

    counts: dict[tuple[int, datetime | None], tuple[int, int, int]] = field(default_factory=dict)
    """The inserted, updated and deleted rows, by the version and the time of the commit: after a rollback, a version
    may be another commit."""

    def keep(self, commit: Mapping[str, object], counts: Mapping[str, int]) -> None:
        """Keep the counts of a row diff for a row of COMMITS."""
        numbers = (counts.get("inserted", 0), counts.get("updated", 0), counts.get("deleted", 0))
        self.counts[_key(commit)] = numbers

    def applied_to(self, commits: pa.Table) -> pa.Table:
        """Return COMMITS with the counts that are known here and not there."""
        if not self.counts or not commits["rows_inserted"].null_count:
            return commits
        names = ("version", "committed_at", "rows_inserted", "rows_source", "added_rows")
        rows = commits.select(names).to_pylist()
        known = [None if row["rows_inserted"] is not None else self.counts.get(_key(row)) for row in rows]
        if not any(known):
            return commits
        for at, name in enumerate(_COUNTS):
            commits = _filled(commits, name, [None if counts is None else counts[at] for counts in known])
        rewritten = [
            row["added_rows"] - counts[0] - counts[1] if counts is not None and row["rows_source"] == "net" else None
            for row, counts in zip(rows, known, strict=True)
        ]
        commits = _filled(
            commits, "rows_rewritten", [count if count is None or count >= 0 else None for count in rewritten]
        )
        sources = [
            "rows" if counts is not None else row["rows_source"] for row, counts in zip(rows, known, strict=True)
        ]
        index = commits.schema.get_field_index("rows_source")
        return commits.set_column(index, frames.COMMITS.field("rows_source"), pa.array(sources, pa.string()))


def _key(commit: Mapping[str, object]) -> tuple[int, datetime | None]:
    return commit["version"], commit["committed_at"]  # type: ignore[return-value]  # of COMMITS


def _filled(commits: pa.Table, name: str, values: list[int | None]) -> pa.Table:
    """Return COMMITS with these values where a count is null."""
    counts = [value if count is None else count for count, value in zip(commits[name].to_pylist(), values, strict=True)]
    index = commits.schema.get_field_index(name)
    return commits.set_column(index, frames.COMMITS.field(name), pa.array(counts, pa.int64()))
