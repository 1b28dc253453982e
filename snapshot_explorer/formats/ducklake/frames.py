"""What each snapshot changed in a table, and its frames: COMMITS, FILES, CHANGES, ENTRIES and MANIFESTS.

A commit is a snapshot that touched the table. A snapshot is an index in the line of existing snapshots, which begins
with one before the first: a row of the catalog lives from its first index up to the last, without that.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.formats.ducklake.metadata.table_metadata import (
    COMPACTIONS,
    DELETES,
    INSERTS,
    REWRITES,
    DuckLakeMetadata,
    Ints,
    Mask,
    kind_of,
    live_rows,
    numbers,
    parse_changes,
)
from snapshot_explorer.formats.ducklake.scan import inlined_positions, last_deletes, partition_maps

_MAX_OTHERS = 100
"""The maximum number of changes of other tables in the details of a commit."""
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """Rows of the catalog with lifetimes, as indices of snapshots."""

    begins: Ints
    """The index of the first snapshot that sees each row."""
    ends: Ints
    """The index of the first later snapshot that does not; the number of snapshots for a row that is there."""
    length: int
    """The number of snapshots."""

    @property
    def is_seen(self) -> Mask:
        """Whether an existing snapshot sees each row."""
        return self.begins < self.ends

    def begun(self, amounts: Ints | Mask | None = None) -> Ints:
        """Return for each snapshot the number of rows that begin at it, or their sum of amounts."""
        return self._sums(self.begins, amounts)

    def ended(self, amounts: Ints | Mask | None = None) -> Ints:
        """Return for each snapshot the number of rows that end at it, or their sum of amounts."""
        return self._sums(self.ends, amounts)

    def live(self, amounts: Ints | Mask | None = None) -> Ints:
        """Return for each snapshot the number of rows that live at it, or their sum of amounts."""
        return np.cumsum(self.begun(amounts) - self.ended(amounts))

    def _sums(self, indices: Ints, amounts: Ints | Mask | None) -> Ints:
        result = np.zeros(self.length + 1, np.int64)
        seen = self.is_seen
        np.add.at(result, indices[seen], 1 if amounts is None else amounts[seen])
        return result


class TableEvents:
    """What the rows of the catalog about a table say of each snapshot."""

    def __init__(self, metadata: DuckLakeMetadata) -> None:
        """Compare the lifetimes of all rows with the existing snapshots. Reads nothing."""
        existing = metadata.snapshot_ids
        self._line = np.concatenate([existing[:1] - 1, existing])
        self.files = self._lifetimes([metadata.rows["data_file"]])
        self.deletes = self._lifetimes([metadata.rows["delete_file"]])
        self.inlined = self._lifetimes([table.rows for table in metadata.inlined])
        self._metadata = metadata

    def _lifetimes(self, tables: Sequence[pa.Table]) -> Lifetimes:
        begins, ends = (
            np.searchsorted(self._line, np.concatenate([_NO_ROWS, *(numbers(rows, name) for rows in tables)]))
            for name in ("begin_snapshot", "end_snapshot")
        )
        return Lifetimes(begins=begins, ends=ends, length=len(self._line))

    def indices(self, versions: Ints) -> Ints:
        """Return the indices of existing snapshots."""
        return np.searchsorted(self._line, versions)

    def follows(self, indices: Ints) -> Mask:
        """Return whether the snapshot before each has not expired."""
        return np.asarray(self._line[indices] - self._line[indices - 1] == 1, np.bool_)

    def unknown_added(self) -> Mask:
        """Return for each snapshot whether it is unknown how many rows it adds: some are in merged files."""
        begins, lasts = self._ranges_of_partials()
        return self._in_ranges(begins, self.indices(lasts) + 1)

    def unknown_removed(self) -> Mask:
        """Return for each snapshot whether it is unknown how many rows it removes: deletes hide some, or are new."""
        deletes, inlined = self._metadata.rows["delete_file"], self._metadata.rows["inlined_delete"]
        partials = np.fromiter(self._metadata.partials, np.int64)
        with_hidden = np.concatenate([partials, numbers(deletes, "data_file_id"), numbers(inlined, "file_id")])
        hidden = self.files.ended(np.isin(numbers(self._metadata.rows["data_file"], "data_file_id"), with_hidden)) > 0
        begins, new = numbers(deletes, "begin_snapshot"), numbers(inlined, "begin_snapshot")
        lasts = np.maximum(begins, numbers(deletes, "partial_max", -1))
        return hidden | self._in_ranges(begins, self.indices(lasts) + 1) | self._in_ranges(new, self.indices(new) + 1)

    def total_rows(self) -> tuple[Ints, Mask]:
        """Return for each snapshot its number of rows, and whether that is unknown.

        Unknown are snapshots with rows in merged files, and those at which delete files hide other rows than the sum of
        their counts: if one has rows of several snapshots, or a data file has several of them.

        Source: reference, "Statistics", "Deletes".
        """
        files, deletes, inlined = (self._metadata.rows[name] for name in ("data_file", "delete_file", "inlined_delete"))
        hidden_by_files = self._ended_with_files(self.deletes, numbers(deletes, "data_file_id"))
        of_files = numbers(deletes, "data_file_id")
        in_order = np.lexsort((hidden_by_files.begins, of_files))
        is_same = np.diff(of_files[in_order]) == 0
        overlaps = is_same & (hidden_by_files.begins[in_order][1:] < hidden_by_files.ends[in_order][:-1])
        # Delete files of files that a flush wrote have rows of several snapshots too, although no partial_max says so.
        others = np.asarray([*numbers(inlined, "file_id"), *self._metadata.partials], np.int64)
        is_uncounted = np.isin(of_files, others) | deletes.column("partial_max").is_valid().to_numpy()
        is_uncounted |= deletes.column("delete_count").is_null().to_numpy()
        is_uncounted[in_order[1:][overlaps]] = is_uncounted[in_order[:-1][overlaps]] = True
        distinct = inlined.group_by(["file_id", "row_id"], use_threads=False).aggregate([("begin_snapshot", "min")])
        begins = np.searchsorted(self._line, numbers(distinct, "begin_snapshot_min"))
        endless = Lifetimes(begins=begins, ends=np.full(len(begins), len(self._line)), length=len(self._line))
        hidden_inlined = self._ended_with_files(endless, numbers(distinct, "file_id"))
        hidden = hidden_by_files.live(numbers(deletes, "delete_count", 0)) + hidden_inlined.live()
        firsts, lasts = self._ranges_of_partials()
        merged = self._in_ranges(firsts, self.indices(lasts))
        live = self.files.live(numbers(files, "record_count")) + self.inlined.live()
        return live - hidden, (hidden_by_files.live(is_uncounted) > 0) | merged

    def _ended_with_files(self, lifetimes: Lifetimes, of_files: Ints) -> Lifetimes:
        """Return the lifetimes of deletes, which end with their data files at the latest."""
        ids = numbers(self._metadata.rows["data_file"], "data_file_id")
        order = np.argsort(ids)
        places = np.searchsorted(ids[order], of_files)
        ends = np.append(self.files.ends[order], 0)[places]
        is_known = np.append(ids[order], -1)[places] == of_files
        return replace(lifetimes, ends=np.where(is_known, np.minimum(lifetimes.ends, ends), 0))

    def _in_ranges(self, begins: Ints, ends: Ints) -> Mask:
        """Return for each snapshot whether it is in a range: from a snapshot on, up to an index, without that."""
        length = len(self._line)
        return Lifetimes(begins=self.indices(begins), ends=np.minimum(ends, length), length=length).live() > 0

    def _ranges_of_partials(self) -> tuple[Ints, Ints]:
        """Return the first and the last snapshots whose rows are in merged files."""
        partials = self._metadata.partials.values()
        begins, lasts = np.asarray([(item.begin, item.last) for item in partials], np.int64).reshape(-1, 2).T
        return begins, lasts

    def changed_files(self, indices: Ints) -> tuple[Ints, Ints, Mask]:
        """Return the data files that snapshots remove and add, in order: the snapshot, the file, whether it is added.

        Args:
            indices: The snapshots. A returned snapshot is a position in them, a file one in ducklake_data_file.
        """
        ranks = np.full(len(self._line) + 1, -1, np.int64)
        ranks[indices] = np.arange(len(indices))
        seen = np.flatnonzero(self.files.is_seen)
        of_files = np.concatenate([ranks[self.files.ends[seen]], ranks[self.files.begins[seen]]])
        files, is_new = np.concatenate([seen, seen]), np.repeat([False, True], len(seen))
        order = np.lexsort((files, is_new, of_files))
        order = order[of_files[order] >= 0]
        return of_files[order], files[order], is_new[order]


def commits_frame(metadata: DuckLakeMetadata, versions: Sequence[int]) -> pa.Table:
    """Return the COMMITS frame of versions, in the given order. Reads nothing.

    Counts of files are of the catalog as it is now: files that were merged later are no longer in it.
    """
    events = TableEvents(metadata)
    at = events.indices(np.asarray(versions, np.int64))
    files, rows = events.files, metadata.rows["data_file"]
    counts, sizes = numbers(rows, "record_count"), numbers(rows, "file_size_bytes")
    words = [metadata.words.get(version, ()) for version in versions]
    added = (files.begun(counts) + events.inlined.begun())[at]
    # A commit that inserted rows and shows none: they are in a merged file, which no longer says so after a migration.
    is_lost = np.asarray([not INSERTS.isdisjoint(own) for own in words], np.bool_) & (added == 0)
    no_added = events.unknown_added()[at] | is_lost
    recorded = metadata.rows["snapshot_changes"]
    recorded = recorded.filter(pc.is_in(recorded.column("snapshot_id"), value_set=pa.array(versions, pa.int64())))
    changes = {row["snapshot_id"]: row for row in recorded.to_pylist()}
    snapshots = metadata.rows["snapshot"].take(pa.array(at - 1, pa.int64()))
    columns: dict[str, object] = {
        "version": list(versions),
        "committed_at": snapshots.column("snapshot_time").cast(frames.COMMITS.field("committed_at").type, safe=False),
        "kind": [
            kind_of(own, creates=version == metadata.begin, alters=version in metadata.alterations)
            for version, own in zip(versions, words, strict=True)
        ],
        "operation": [_operation(metadata, version, own) for version, own in zip(versions, words, strict=True)],
        "user": [changes.get(version, {}).get("author") for version in versions],
        "schema_id": snapshots.column("schema_version"),
        "added_files": files.begun()[at],
        "removed_files": files.ended()[at],
        "added_rows": from_numpy(added, no_added),
        "removed_rows": from_numpy((files.ended(counts) + events.inlined.ended())[at], events.unknown_removed()[at]),
        "added_bytes": files.begun(sizes)[at],
        "removed_bytes": files.ended(sizes)[at],
        **_row_counts(metadata, events, versions, added, no_added),
        "tags": [[]] * len(at),
        "details": [_details(metadata, changes.get(version, {})) for version in versions],
    }
    arrays = {name: pa.array(value) if isinstance(value, np.ndarray) else value for name, value in columns.items()}
    return frames.table_of(frames.COMMITS, arrays)


def _row_counts(
    metadata: DuckLakeMetadata, events: TableEvents, versions: Sequence[int], added: Ints, no_added: Mask
) -> dict[str, object]:
    """Return the columns of COMMITS with numbers of rows of the table, as far as the catalog proves them.

    Args:
        added: The rows that versions add to files and to the catalog.
        no_added: Where that is unknown.
    """
    at = events.indices(np.asarray(versions, np.int64))
    total, is_unknown = events.total_rows()
    is_known, more = ~(is_unknown[at - 1] | is_unknown[at]), total[at] - total[at - 1]
    words = [metadata.words.get(version, ()) for version in versions]
    inserts, deletes, rewrites = (
        np.asarray([bool(own) and of.issuperset(own) for own in words], np.bool_)
        for of in (INSERTS, DELETES, REWRITES | {"altered_table"})
    )
    is_created = np.asarray([not own for own in words], np.bool_) & (np.asarray(versions, np.int64) == metadata.begin)
    # Rows have the default of a new column as a value.
    defaults = metadata.rows["column"].filter(metadata.rows["column"].column("initial_default").is_valid())
    changes_none = (rewrites & ~np.isin(versions, numbers(defaults, "begin_snapshot"))) | is_created
    is_inserted = inserts & (events.files.ended()[at] == 0) & (~no_added | (is_known & (more > 0)))
    # A delete whose vector was replaced by a later one is no longer recorded: it hides no row.
    is_deleted = deletes & ~no_added & (added == 0) & is_known & (more < 0)
    is_counted = (changes_none | is_inserted | is_deleted) & events.follows(at)
    return {
        "rows_inserted": from_numpy(np.where(is_inserted, np.where(no_added, more, added), 0), ~is_counted),
        "rows_updated": from_numpy(np.zeros(len(at), np.int64), ~is_counted),
        "rows_deleted": from_numpy(np.where(is_deleted, -more, 0), ~is_counted),
        "rows_rewritten": from_numpy(np.where(changes_none, added, 0), ~is_counted | (changes_none & no_added)),
        "rows_source": ["metadata" if known else None for known in is_counted.tolist()],
        "total_rows": from_numpy(total[at], is_unknown[at]),
    }


def _operation(metadata: DuckLakeMetadata, version: int, words: Sequence[str]) -> str | None:
    created = ["created_table"] if version == metadata.begin else []
    return ", ".join(dict.fromkeys([*created, *words])) or None


def _details(metadata: DuckLakeMetadata, change: Mapping[str, str | None]) -> str:
    own: list[str] = []
    others: list[str] = []
    for word, value in parse_changes(change.get("changes_made")):
        (own if value == str(metadata.table_id) else others).append(f"{word}:{value}")
    recorded = {name: change.get(name) for name in ("author", "commit_message", "commit_extra_info")}
    values = {"changes_made": ",".join(own) or None, **recorded, "other_changes": others[:_MAX_OTHERS] or None}
    return json.dumps({name: value for name, value in values.items() if value is not None}, ensure_ascii=False)


def _file_columns(metadata: DuckLakeMetadata, files: pa.Table) -> dict[str, object]:
    existing, begins = (
        single_chunk(rows.column(name))
        for rows, name in ((metadata.rows["snapshot"], "snapshot_id"), (files, "begin_snapshot"))
    )
    known = pc.index_in(begins, value_set=existing)
    return {
        "path": metadata.locate(files),
        "partition": partition_maps(metadata, files),
        "rows": files.column("record_count"),
        "size_bytes": files.column("file_size_bytes"),
        "schema_id": single_chunk(metadata.rows["snapshot"].column("schema_version")).take(known),
        "added_version": existing.take(known),
    }


def files_frame(metadata: DuckLakeMetadata, files: pa.Table, snapshot: int) -> pa.Table:
    """Return the FILES frame of live data files at a snapshot.

    `deletion_vector` has the delete files of a file, `inlined` for deletes in the catalog, and for a merged file with
    later rows the snapshot up to which its rows are visible. `deleted_rows` is null where a delete file may contain
    deletes of later snapshots, or several may delete the same row. `schema_id` and `added_version` are of the first
    snapshot of the file's rows; null if it has expired.
    """
    texts, counts = _deletions(metadata, files, snapshot)
    columns = _file_columns(metadata, files) | {"deletion_vector": texts, "deleted_rows": counts}
    return frames.table_of(frames.FILES, columns)


def _deletions(metadata: DuckLakeMetadata, files: pa.Table, snapshot: int) -> tuple[pa.Array, pa.Array]:
    """Return what hides rows of each file, and how many. Texts are equal only if the same rows are hidden."""
    names: dict[int, list[str]] = {}
    counts: dict[int, int | None] = {}
    live = live_rows(metadata.rows["delete_file"], snapshot)
    columns = [live.column("data_file_id").to_pylist(), metadata.locate(live).to_pylist()]
    columns.append(live.column("delete_count").to_pylist())
    for number, path, count, last in zip(*columns, last_deletes(metadata, live).tolist(), strict=True):
        is_whole = last <= snapshot
        counts[number] = count if is_whole and number not in counts else None
        names.setdefault(number, []).append(path if is_whole else f"{path} up to {snapshot}")
    for number, positions in inlined_positions(metadata, snapshot).items():
        counts[number] = None if number in counts else len(positions)
        names.setdefault(number, []).append(f"inlined ({len(positions)})")  # they only grow
    for number, partial in metadata.partials.items():
        if partial.last > snapshot:
            counts[number] = None
            names.setdefault(number, []).append(f"rows up to snapshot {snapshot}")
    ids = files.column("data_file_id").to_pylist()
    texts = pa.array([", ".join(names[number]) if number in names else None for number in ids], pa.string())
    return texts, pa.array([counts.get(number) for number in ids], pa.int64())


def changes_frame(metadata: DuckLakeMetadata, versions: Sequence[int]) -> pa.Table:
    """Return the CHANGES frame: the data files that commits added and removed, as the catalog has them now.

    Files that were merged later are no longer in it. Deletes are not in it: they are at the versions' files.
    """
    events, numbers = TableEvents(metadata), np.asarray(versions, np.int64)
    of_versions, of_files, is_new = events.changed_files(events.indices(numbers))
    changes_rows = np.asarray([_changes_rows(metadata, version) for version in versions], np.bool_)
    columns = _file_columns(metadata, metadata.rows["data_file"].take(pa.array(of_files, pa.int64()))) | {
        "version": pa.array(numbers[of_versions], pa.int64()),
        "change": pa.array(["remove", "add"]).take(pa.array(is_new.astype(np.int64))),
        "list": "delta",
        "data_change": pa.array(changes_rows[of_versions]),
    }
    return frames.table_of(frames.CHANGES, columns)


def _changes_rows(metadata: DuckLakeMetadata, version: int) -> bool:
    """Return whether a commit did more than move rows to other files."""
    words = metadata.words.get(version)
    return not words or not COMPACTIONS.issuperset(words)


def entries_frame(metadata: DuckLakeMetadata, version: int) -> pa.Table:
    """Return the ENTRIES of what stands for the manifest of a version: its changes; of the first version all files."""
    if version != metadata.versions[0]:
        return changes_frame(metadata, [version]).select(frames.ENTRIES.names)
    columns = _file_columns(metadata, live_rows(metadata.rows["data_file"], version))
    return frames.table_of(frames.ENTRIES, columns | {"change": "add", "data_change": _changes_rows(metadata, version)})


def manifest_path(metadata: DuckLakeMetadata, version: int) -> str:
    """Return the path that stands for the catalog's rows of a version."""
    return f"{metadata.catalog}#{version}"


def manifests_frame(metadata: DuckLakeMetadata, number: int) -> pa.Table:
    """Return the MANIFESTS frame: a manifest per version with what it changed, the own one last."""
    events, versions = TableEvents(metadata), metadata.versions[metadata.versions <= number]
    at = events.indices(versions)
    added, removed = events.files.begun()[at], events.files.ended()[at]
    added[0], removed[0] = events.files.live()[at[0]], 0
    columns = {
        "version": number,
        "list": ["delta" if version == number else "base" for version in versions.tolist()],
        "position": pa.array(np.arange(len(at))),
        "path": [manifest_path(metadata, version) for version in versions.tolist()],
        "added_files": pa.array(added),
        "removed_files": pa.array(removed),
        "schema_id": metadata.rows["snapshot"].column("schema_version").take(pa.array(at - 1, pa.int64())),
    }
    return frames.table_of(frames.MANIFESTS, columns)
