"""Read and filter the commits of a table, newest first."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.shown_texts import without_url_secrets
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import Step, step
from snapshot_explorer.core.records import MAINTENANCE_KINDS, Commit, Gap, Kind, gaps_note
from snapshot_explorer.core.text import did_you_mean
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.formats.unread_versions import Reasons, readable_commits, unread_notes
from snapshot_explorer.history.anomaly_marks import with_marks
from snapshot_explorer.history.readability import KnownReadability
from snapshot_explorer.results import Frame, drawn_of_commits

_PAGE = 64
"""Commits per read if there are both a filter and a limit."""
_LARGE_PAGE = 512
"""Commits per read otherwise. Progress is reported after each read."""
_VERY_LARGE_PAGE = 1 << 16
"""Commits per read if they are all in one file, which has been read."""
_STAT = (
    "version",
    "committed_at",
    "kind",
    "added_files",
    "removed_files",
    "added_rows",
    "removed_rows",
    "added_bytes",
    "removed_bytes",
    "total_rows",
)


_ANOMALIES = pa.field(
    "anomalies", pa.string(), metadata={"meaning": "what jumps at the version; null if nothing does", "wraps": "yes"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedMetadata:
    """The metadata of a table that is in memory, for completion and status lines."""

    versions: tuple[int, ...]
    """The versions of the last listing, ascending."""
    commits: pa.Table = field(repr=False)
    """COMMITS of the versions that were read, newest first."""
    tags: tuple[str, ...]
    """The names of the tags at the last read."""
    branches: tuple[str, ...]
    """The names of the branches at the last read, main included."""
    columns: tuple[str, ...]
    """The column names of the last schema that was read."""
    readability: pa.Table = field(repr=False)
    """READABILITY as it was computed last; empty if it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFilter:
    """Which commits to return."""

    kind: str | None = None
    """The kind, such as compact."""
    operation: str | None = None
    """The operation in the writer's own word, ignoring case."""
    user: str | None = None
    """Text that the recorded user contains, ignoring case."""
    text: str | None = None
    """Text that the recorded details contain, ignoring case."""
    maintenance: bool = True
    """Whether to return commits that change no data: compact, analyze, maintenance."""

    def __post_init__(self) -> None:
        """Raise InvalidArgumentError for an unknown kind, and for what is not text."""
        for name in ("operation", "user", "text"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InvalidArgumentError(f"{name} must be text, got {value!r}. Write it in quotes.")
        if self.kind is not None and self.kind not in get_args(Kind):
            kinds: tuple[str, ...] = get_args(Kind)
            near = did_you_mean(self.kind, kinds)
            raise InvalidArgumentError(f"{self.kind!r} is not a kind of commit.{near} Kinds: {', '.join(kinds)}.")
        if not self.maintenance and self.kind in MAINTENANCE_KINDS:
            raise InvalidArgumentError(
                Message(
                    f"Commits of kind {self.kind} are maintenance. Leave out ", Hint("", {"maintenance": False}), "."
                )
            )

    @property
    def passes_all(self) -> bool:
        """Return whether there is no filter."""
        return self == CommitFilter()

    def passing(self, commits: pa.Table) -> pa.Table:
        """Return the COMMITS that match."""
        if self.kind is not None:
            commits = commits.filter(pc.equal(commits["kind"], self.kind))
        if self.operation is not None:
            commits = commits.filter(pc.equal(pc.utf8_upper(commits["operation"]), self.operation.upper()))
        for name, text in (("user", self.user), ("details", self.text)):
            if text is not None:
                commits = commits.filter(pc.match_substring(commits[name], text, ignore_case=True))
        return (
            commits
            if self.maintenance
            else commits.filter(pc.invert(pc.is_in(commits["kind"], pa.array(MAINTENANCE_KINDS))))
        )


def read_history(
    table_format: TableFormat, versions: Sequence[int], commit_filter: CommitFilter, limit: int | None
) -> tuple[pa.Table, Reasons]:
    """Return the matching COMMITS of the versions, in their order, and which commits cannot be read, with the reasons.

    Stops reading at `limit` matches. A commit that cannot be read is a row of nulls, and matches no filter.
    """
    unread: dict[int, SnapshotExplorerError] = {}
    with step("Reading commits", total=_max_commits(versions, commit_filter, limit)) as reading:
        pages = list(_take_rows(_pages(table_format, versions, commit_filter, limit, reading, unread), limit))
    return frames.concat_commits(pages), unread


def history_frame(  # noqa: PLR0913 - the parts of the frame, all named
    rows: pa.Table,
    *,
    title: str,
    readability: KnownReadability,
    stat: bool = False,
    exact: bool = False,
    total: int | None = None,
    limit: int | None = None,
    anomalies: pa.Table | None = None,
    notes: tuple[str, ...] = (),
    totals: Callable[[], pa.Table | None] = lambda: None,
) -> Frame:
    """Return COMMITS as a frame. It draws the columns that are not empty; with `stat`, added and removed amounts.

    Unless it is `exact`, it says which call counts the rows that metadata does not.

    With ANOMALIES there is a further column `anomalies`, which names what jumps at each version; the figure marks it.
    Notes name the versions that are missing; see `missing_notes`. Where commits do not record the total rows, the
    figure calls `totals`, which returns the size of the table. The log has the reasons in `readability` why commits
    cannot be loaded.
    """
    names = _STAT if stat else drawn_of_commits(rows)
    if anomalies is not None:
        jumps = with_marks(rows, anomalies)["jumps"]
        rows = rows.append_column(_ANOMALIES, jumps)
        names = (*names[:3], _ANOMALIES.name, *names[3:])
    return Frame(
        rows,
        title=title,
        noun="versions",
        total=total,
        drawn=names,
        limit=limit,
        kind="log",
        options={"readability": readability, "totals": totals, "anomalies": anomalies, "exact": exact},
        notes=notes,
    )


def missing_notes(gaps: Sequence[Gap]) -> tuple[str, ...]:
    """Return a sentence that names the versions that are missing between commits; nothing without gaps."""
    return gaps_note(gaps, "later totals include what changed there")


def unread_commit_notes(unread: Reasons) -> tuple[str, ...]:
    """Return a sentence for each reason why commits cannot be read, with their versions."""
    return unread_notes(unread, "the commit of")


def _max_commits(versions: Sequence[int], commit_filter: CommitFilter, limit: int | None) -> int:
    return len(versions) if limit is None or not commit_filter.passes_all else min(limit, len(versions))


def _pages(
    table_format: TableFormat,
    versions: Sequence[int],
    commit_filter: CommitFilter,
    limit: int | None,
    reading: Step,
    unread: dict[int, SnapshotExplorerError],
) -> Iterator[pa.Table]:
    max_commits = _max_commits(versions, commit_filter, limit)
    large = _VERY_LARGE_PAGE if table_format.commits_are_in_one_file else _LARGE_PAGE
    page = _PAGE if limit is not None and not commit_filter.passes_all else large
    for start in range(0, max_commits, page):
        batch = versions[start : min(start + page, max_commits)]
        commits, unread_here = readable_commits(table_format, batch)
        unread.update(unread_here)
        if unread_here and not commit_filter.passes_all:
            commits = commits.filter(pc.invert(pc.is_in(commits["version"], pa.array(unread_here, pa.int64()))))
        # Before the yield: the consumer may stop there.
        reading.advance(len(batch))
        yield commit_filter.passing(commits)


def _take_rows(pages: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    left = limit
    for page in pages:
        if left is None:
            yield page
            continue
        yield page.slice(0, left)
        left -= min(left, page.num_rows)
        if left == 0:
            return


def commit_of(commits: pa.Table) -> Commit:
    """Return the single row of a COMMITS table as a record, with the secrets of URLs hidden."""
    values = without_url_secrets(commits).to_pylist()[0]
    return Commit(**values | {"tags": tuple(values["tags"] or ())})
