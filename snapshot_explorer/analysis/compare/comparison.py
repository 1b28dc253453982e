"""`Comparison`: the differences between two versions of a table."""

from __future__ import annotations

from collections import Counter
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.compare.files import (
    compare_files,
    difference_proof,
    files_frame,
    partitions_frame,
    summary_frame,
    with_partition_names,
)
from snapshot_explorer.analysis.compare.manifests import compare_manifests, entries_of, find_manifest
from snapshot_explorer.analysis.compare.schemas import compare_properties, compare_schemas, partition_names
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import (
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import gaps_note, gaps_text, runs_of, runs_text
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.core.shown import Shown, figure_of
from snapshot_explorer.core.text import format_utc
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.formats.unread_versions import (
    Reasons,
    read_apart,
    readable_changes,
    readable_commits,
    unread_notes,
)
from snapshot_explorer.history.lifetimes import time_of
from snapshot_explorer.results import Frame, drawn_of_commits, non_empty_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from snapshot_explorer.analysis.compare.files import FileDifference
    from snapshot_explorer.core.records import Listing
    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.history import Divergence


log = logger_of(__name__)


_PAGE = 2_000
"""The number of versions whose changes are read at a time."""
PARTS = ("summary", "commits", "schema", "properties", "partitions", "files", "manifests")
"""The parts of a comparison."""
_DRAWN = ("summary", "schema", "properties", "partitions", "files")
EMPTY_TEXTS = {
    "commits": "No commits lie between.",
    "schema": "The schema is the same.",
    "properties": "The properties are the same.",
    "partitions": "No partition differs.",
    "files": "No file differs.",
    "manifests": "Neither version has a manifest.",
}
"""The text in place of a part without rows."""


class Comparison(Shown):
    """The differences from version A to version B of a table. Displays itself. Each part is read once, at first use.

    Either may be the newer one. All parts go from A to B: items that only B has are added, items that only A has are
    removed. Comparing a version with itself returns no differences.
    """

    def __init__(
        self,
        name: str,
        table_format: TableFormat,
        a: TableVersion,
        b: TableVersion,
        listing: Listing,
        *,
        commits: Callable[[Sequence[int]], tuple[pa.Table, Reasons]] | None = None,
        divergence: Divergence | None = None,
    ) -> None:
        """Bind to two versions. Use `Table.compare` to get a comparison.

        Args:
            commits: Returns COMMITS of versions, and which cannot be read; by default the format's.
            divergence: The branches of A and B, where neither history has both.
        """
        self._read_commits = commits or partial(readable_commits, table_format)
        self._unread_commits: Reasons = {}
        """The commits that could not be read, after the first attempt."""
        self._name = name
        self._format = table_format
        self._a, self._b = a, b
        self.a, self.b = _number_of(a), _number_of(b)
        """Version A, to compare with, and version B."""
        self._divergence = divergence
        self._is_same = divergence is None and self.a == self.b
        older, newer = sorted((self.a, self.b))
        if divergence is not None:
            older, newer = -1 if divergence.shared_b is None else divergence.shared_b, self.b
        self._between = listing.between(older, newer)
        self._gaps = listing.gaps_between(older, newer) if older >= 0 or divergence is None else ()
        self._without_files = listing.without_files
        self.shown: tuple[str, ...] = ()
        """The parts that `showing` chose; empty for the usual ones."""

    @property
    def call(self) -> str:
        """The Python that returns the comparison, of a table in a variable of its name."""
        return f"{self._name}.compare({self.a}, {self.b})"

    @cached_property
    def commits(self) -> Frame:
        """Return the COMMITS after the older version, up to the newer one, newest first; expired ones are missing.

        They are commits as recorded, whichever version is newer; if A is, the title states that B does not include
        them. If the versions are on branches that have diverged, they are the commits of B that are missing from A.
        Costs the same as `Table.history`.
        """
        nothing: tuple[pa.Table, Reasons] = (frames.COMMITS.empty_table(), {})
        rows, unread = self._read_commits(self._between[::-1]) if self._between else nothing
        self._unread_commits = unread
        total = len(self._between) + sum(gap.missing_count for gap in self._gaps)
        notes = (*gaps_note(self._gaps, "what was committed there is unknown"), *unread_notes(unread, "the commit of"))
        drawn = drawn_of_commits(rows)
        topic = "Commits missing from B" if self._backwards else "Commits between"
        title = self._title("Commits of B missing from A" if self._divergence else topic)
        return Frame(
            rows,
            title=title,
            noun="versions",
            total=total,
            drawn=drawn,
            kind="log",
            notes=notes,
        )

    @cached_property
    def manifests(self) -> Frame:
        """Return the status of each manifest from A to B: COMPARED_MANIFESTS.

        If B is newer, the status is added, rewritten, merged away, left behind or carried over. If B is older, a
        manifest is added, removed or carried over. Reads the manifest lists of both versions. If B is newer and its
        base has new manifests, also reads the delta lists of the commits between.
        """
        a, b = self._a.manifests(), self._b.manifests()
        new = b.filter(pc.invert(pc.is_in(b["path"], pa.array(a["path"].to_pylist(), pa.string()))))
        needs_delta_paths = not self._backwards and pc.any(pc.equal(new["list"], "base")).as_py()
        delta_paths, notes = self._delta_manifests if needs_delta_paths else ((), ())
        rows = compare_manifests(
            a, b, delta_paths=delta_paths, backwards=self._backwards, merges=self._format.merged_manifests is not None
        )
        drawn: tuple[str, ...] = ("status", "list_a", "list_b", "path", "size_bytes", "added_files", "removed_files")
        has_bounds = rows["partition_min"].null_count < len(rows) and any(rows["partition_min"].to_pylist())
        drawn += ("partition_min", "partition_max") if has_bounds else ()
        return Frame(rows, title=self._title("Manifests"), noun="manifests", drawn=drawn, notes=notes)

    def entries(self, manifest: str) -> Frame:
        """Return the entries of a manifest: ENTRIES, in order; for Delta, of a commit or a checkpoint file.

        They are the entries as recorded, whichever version is newer; the title states which of the two list the
        manifest. Reads the manifest.

        Args:
            manifest: Its path as in `manifests`, its name, or an unambiguous suffix.
        """
        rows = self.manifests.to_arrow()
        known = rows["path"].to_pylist()
        owner = f"version {self.a}" if self._is_same else f"version {self.a} or {self.b}"
        path = find_manifest(str(manifest), known, owner=owner)
        row = rows.slice(known.index(path), 1).to_pylist()[0]
        version = self._a if row["list_b"] is None else self._b
        only = f", which only version {version.number} names" if None in (row["list_a"], row["list_b"]) else ""
        return entries_of(version, path, note=only)

    @cached_property
    def files(self) -> Frame:
        """Return the data files that differ: COMPARED_FILES. Reads both versions' files, and the commits between.

        Partition columns have their names in B.
        """
        rows = files_frame(self._difference, self._changes, backwards=self._backwards)
        return Frame(
            rows,
            title=self._title("Files"),
            noun="files that differ",
            drawn=non_empty_columns(rows, exclude=("schema_id",)),
            notes=unread_notes(self._read_changes[1], "the changes of"),
        )

    @cached_property
    def partitions(self) -> Frame:
        """Return the differences by partition and bucket: COMPARED_PARTITIONS. Reads as `files` does."""
        rows = partitions_frame(self._difference)
        noun = "partitions and buckets that differ"
        return Frame(rows, title=self._title("Partitions"), noun=noun, drawn=non_empty_columns(rows))

    @cached_property
    def schema(self) -> Frame:
        """Return the differences of the schemas, by field id: COMPARED_SCHEMAS. Reads one schema per version."""
        rows = compare_schemas(self._a.schema, self._b.schema)
        return Frame(rows, title=self._title("Schema"), noun="changes of the schema", drawn=non_empty_columns(rows))

    @cached_property
    def properties(self) -> Frame:
        """Return the differences of the properties recorded with each version: COMPARED_PROPERTIES.

        In Paimon the newest properties are in force at every version, whatever was recorded with it.
        """
        rows = compare_properties(self._a.recorded_properties, self._b.recorded_properties)
        return Frame(rows, title=self._title("Properties"), noun="changes of properties")

    @cached_property
    def summary(self) -> Frame:
        """Return COMPARED: files, rows and bytes of A and B, shared, removed and added. Reads as `files` does."""
        return Frame(
            summary_frame(self._difference, self.files.to_arrow()),
            title=self._title("Summary"),
            noun="parts",
            kind="parts",
        )

    @cached_property
    def proof(self) -> str:
        """Return a sentence on what metadata proves about the rows. Reads as `files` does, and the commits."""
        if self._is_same:
            return "A version is the same as itself."
        if self._has_other_rows:
            changed = Hint("table.diff_rows", {"a": self.a, "b": self.b})
            return Message(
                "Files alone do not determine the rows of a version here: ", changed, " finds the rows that changed."
            )
        kinds = None if self._gaps or self._divergence else set(self.commits["kind"].to_pylist())
        keyed = self._a.schema.is_merged or self._b.schema.is_merged
        sentence = difference_proof(self._difference, self.files.to_arrow(), self._changes, kinds, keyed=keyed)
        return f"{sentence} The schema differs." if len(self.schema) else sentence

    def showing(self, *names: str) -> Comparison:
        """Return the same comparison, displayed with only these parts: summary, commits, schema, ..."""
        for name in names:
            if name not in PARTS:
                raise InvalidArgumentError(f"{name!r} is not a part. Parts: {', '.join(PARTS)}.")
        other = copy(self)
        other.shown = names
        return other

    @property
    def title(self) -> str:
        """The heading: the table and its versions."""
        return self._title(self._name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts to display: the parts given to `showing`, or else the parts that most questions are about."""
        return self.shown or _DRAWN

    def read_together(self) -> None:
        """Read the metadata that the parts need, concurrently on remote storage. A part raises its own error later."""

        def attempt(read: Callable[[], object]) -> None:
            try:
                read()
            except SnapshotExplorerError as error:
                log.debug("a part of a comparison cannot be read: %s", error)

        reads: list[Callable[[], object]] = [lambda: self.schema]
        if {"summary", "commits"}.intersection(self.parts):
            reads += [lambda: self._commit_times, lambda: self._has_other_rows]
        if {"summary", "partitions", "files"}.intersection(self.parts):
            reads += [lambda: self._changes, lambda: self._difference]
        with self._a.storage.keeping_immutable():
            self._a.storage.together(*(partial(attempt, read) for read in reads))

    def picture(self) -> Shown:
        """Return a figure of files and bytes by part and by partition, whose `svg` is its text as SVG.

        Draws the partitions and buckets with the most files that differ. Reads as `files` does.
        """
        return figure_of(self)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return A, B and the commits between, each as text. Reads the commits."""
        commits, unread = self.commits, self._unread_commits
        known = zip(commits["version"].to_pylist(), commits["kind"].to_pylist(), strict=True)
        kinds = Counter(kind for version, kind in known if version not in unread)
        kinds_text = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common()) or "none"
        gone = f"; {gaps_text(self._gaps)}" if self._gaps else ""
        gone += f"; {runs_text(runs_of(sorted(unread)))} cannot be read" if unread else ""
        undone = "; B does not include them" if self._backwards and self._between else ""
        between = ("commits between", kinds_text + gone + undone)
        if self._divergence:
            between = ("commits of B", f"{kinds_text}{gone}, {self._divergence.since}")
        return ("A", self._version_text(self.a, of_a=True)), ("B", self._version_text(self.b, of_a=False)), between

    def _version_text(self, version: int, *, of_a: bool) -> str:
        committed_at = self._commit_times[0 if of_a else 1]
        time = "an unknown time" if committed_at is None else format_utc(committed_at)
        if self._divergence:
            branch = self._divergence.name_a if of_a else self._divergence.name_b
            return f"version {version} of branch {branch}, of {time}"
        side = "" if self._is_same else f", the {'newer' if version == max(self.a, self.b) else 'older'} one"
        return f"version {version} of {time}{side}"

    @cached_property
    def _has_other_rows(self) -> bool:
        """Return whether the table has rows that none of the compared files contains."""
        return not self._format.row_modifiers().isdisjoint(("another branch", "rows outside of files"))

    @cached_property
    def _commit_times(self) -> tuple[datetime | None, datetime | None]:
        """Return when A and B were committed. Reads both commits unless they are among the commits between."""
        between = self.commits.to_arrow()
        times = dict(zip(between["version"].to_pylist(), between["committed_at"].to_pylist(), strict=True))
        formats = (self._divergence.format_a if self._divergence else self._format), self._format
        known = ({} if self._divergence else times), times
        first, second = (
            of_commits[version] if version in of_commits else time_of(table_format, version)
            for version, of_commits, table_format in zip((self.a, self.b), known, formats, strict=True)
        )
        return first, second

    def _title(self, topic: str) -> str:
        if self._divergence:
            name_a, name_b = self._divergence.name_a, self._divergence.name_b
            return f"{topic}: version {self.a} of branch {name_a} to {self.b} of branch {name_b}"
        return f"{topic}: version {self.a} to {self.b}"

    @property
    def _backwards(self) -> bool:
        return self._divergence is None and self.a > self.b

    @cached_property
    def _difference(self) -> FileDifference:
        with step("Reading the files of two versions", total=2) as reading:
            if self._is_same:
                files = self._a.files()
                return compare_files(files, files)
            names = partition_names(self._a.schema, self._b.schema)
            a, b = self._a.storage.together(self._a.files, self._b.files)
            reading.advance(2)
            return compare_files(with_partition_names(a, names), b)

    @cached_property
    def _read_changes(self) -> tuple[pa.Table | None, Reasons]:
        """The changes of the commits between, None if some are gone or cannot be read; and the unreadable commits."""
        if not self._is_whole:
            return None, {}
        parts = [frames.CHANGES.empty_table()]
        with step("Reading the changes between", total=len(self._between)) as reading:
            for start in range(0, len(self._between), _PAGE):
                page = self._between[start : start + _PAGE]
                changes, unread = readable_changes(self._format, page, changelog=False)
                if unread:
                    return None, unread
                parts.append(changes.filter(pc.equal(changes["list"], "delta")))
                reading.advance(len(page))
        return pa.concat_tables(parts), {}

    @property
    def _changes(self) -> pa.Table | None:
        """The changes of the commits between; None if not all of them are known."""
        return self._read_changes[0]

    @property
    def _is_whole(self) -> bool:
        """Return whether all commits between the versions exist, with their changes."""
        return self._divergence is None and not self._gaps and not set(self._between).intersection(self._without_files)

    @cached_property
    def _delta_manifests(self) -> tuple[Collection[str] | None, tuple[str, ...]]:
        """The delta manifests of the commits between, None if they are not known; and why, in sentences."""
        manifests = self._format.merged_manifests
        if manifests is None or not self._is_whole:
            return None, ()
        read = read_apart(manifests.of_delta, self._between, self._format.storage)
        parts = [part for _, part in read.parts if part is not None]
        if read.unread:
            return None, unread_notes(read.unread, "the delta manifests of")
        if len(parts) < len(read.parts):
            span = f"versions {self._between[0]} to {self._between[-1]}"
            gone = f"The delta manifest list of one of {span} is gone. "
            return None, (Message(gone, Hint("table.verify"), " names the file."),)
        return frozenset().union(*parts), ()


def _number_of(version: TableVersion) -> int:
    if version.number is None:
        raise SnapshotNotFoundError("The table has no version yet, so there is nothing to compare.")
    return version.number
