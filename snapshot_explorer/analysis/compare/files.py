"""Compare the data files of two versions, in total and by partition and bucket."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import Codes, codes_of_maps, group_ids
from snapshot_explorer.core import frames
from snapshot_explorer.core.text import pluralize

_Mask = npt.NDArray[np.bool_]
_KEY = ("path", "level", "deletion_vector")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    """The data files of versions A and B, matched with each other."""

    a: pa.Table
    """FILES of A."""
    b: pa.Table
    """FILES of B."""
    of_a: npt.NDArray[np.int64]
    """For each file of A the index of the same file in B; -1 if there is none."""
    of_b: npt.NDArray[np.int64]
    """For each file of B the index of the same file in A; -1 if there is none."""
    moved: _Mask
    """For each file of B, whether A has it at another level."""
    deleted: _Mask
    """For each file of B, whether A has it with another deletion vector."""

    @property
    def removed(self) -> pa.Table:
        """Return the files that only A has."""
        return self.a.filter(pa.array(self.of_a < 0))

    @property
    def added(self) -> pa.Table:
        """Return the files that only B has."""
        return self.b.filter(pa.array(self.of_b < 0))

    @property
    def shared(self) -> pa.Table:
        """Return the files of B that A also has, at any level, with any deletion vector."""
        return self.b.filter(pa.array(self.of_b >= 0))

    def before(self, chosen: _Mask) -> pa.Table:
        """Return the rows of A for files of B that A also has."""
        return self.a.take(pa.array(self.of_b[chosen]))


def compare_files(a: pa.Table, b: pa.Table) -> FileDifference:
    """Return the FILES of two versions, matched with each other.

    Files match by path; if a version has a path twice, by path, level and deletion vector.
    """
    both = pa.concat_tables([a.select(_KEY), b.select(_KEY)])
    codes = group_ids([both.column("path")])
    if any(len(np.unique(part)) < len(part) for part in (codes[: len(a)], codes[len(a) :])):
        codes = group_ids(both.columns)
    of_a, of_b = _indices_in(codes[: len(a)], codes[len(a) :]), _indices_in(codes[len(a) :], codes[: len(a)])
    existing = of_b >= 0
    before, after = a.take(pa.array(of_b[existing])), b.filter(pa.array(existing))
    moved, deleted = np.zeros(len(b), np.bool_), np.zeros(len(b), np.bool_)
    moved[existing] = _differs(before, after, "level")
    # With levels, the same vector may be written again elsewhere. Then compare its row counts, which only grow.
    where, rows = _differs(before, after, "deletion_vector"), _differs(before, after, "deleted_rows")
    counted = _valid(after, "level") & (_valid(after, "deleted_rows") | _valid(before, "deleted_rows"))
    deleted[existing] = np.where(counted, rows, where | rows)
    return FileDifference(a=a, b=b, of_a=of_a, of_b=of_b, moved=moved, deleted=deleted)


def with_partition_names(files: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Return FILES with renamed partition columns; `names` maps old names to new ones."""
    if not names:
        return files
    partition = single_chunk(files.column("partition"))
    keys = partition.keys.dictionary_encode()
    called = pa.array([names.get(name, name) for name in keys.dictionary.to_pylist()], pa.string()).take(keys.indices)
    index = files.schema.get_field_index("partition")
    renamed = pa.MapArray.from_arrays(partition.offsets, called, partition.items)
    return files.set_column(index, files.schema.field(index), renamed)


def _indices_in(codes: Codes, others: Codes) -> npt.NDArray[np.int64]:
    """Return the index of each code among others; -1 if it is missing there."""
    matches = pc.index_in(pa.array(codes), pa.array(others))
    indices: npt.NDArray[np.int64] = pc.fill_null(matches, -1).to_numpy().astype(np.int64)
    return indices


def _valid(files: pa.Table, name: str) -> _Mask:
    valid: _Mask = single_chunk(files.column(name).is_valid()).to_numpy(zero_copy_only=False)
    return valid


def _differs(before: pa.Table, after: pa.Table, name: str) -> _Mask:
    codes = group_ids([pa.concat_arrays([single_chunk(before.column(name)), single_chunk(after.column(name))])])
    differs: _Mask = codes[: len(before)] != codes[len(before) :]
    return differs


def files_frame(difference: FileDifference, changes: pa.Table | None, *, backwards: bool) -> pa.Table:
    """Return COMPARED_FILES: files that are removed, added, moved, or have deleted rows. Leaves out equal files.

    Args:
        changes: CHANGES of the commits between the versions, in their order; None if they are not all known.
        backwards: Whether A is the newer one.
    """
    both = difference.of_b >= 0
    parts = [
        _part(difference.removed, "removed", changes, "add" if backwards else "remove"),
        _part(difference.added, "added", changes, "remove" if backwards else "add"),
    ]
    for word, chosen in (("moved", difference.moved & ~difference.deleted), ("deletions", difference.deleted)):
        files = difference.b.filter(pa.array(both & chosen))
        parts.append(_part(files, word, changes, "remove" if backwards else "add", difference.before(both & chosen)))
    return pa.concat_tables(parts)


def _part(files: pa.Table, word: str, changes: pa.Table | None, event: str, before: pa.Table | None = None) -> pa.Table:
    """Return the rows of one kind of change, with its commit: the last to add or remove the file."""
    data_change, version = _reasons(files, changes, event)
    # With levels, changes of a file do not contain its deletion vector.
    is_known = (
        single_chunk(files.column("level").is_null())
        if word == "deletions"
        else pa.array([True] * len(files), pa.bool_())
    )
    columns = {
        "change": word,
        "data_change": pc.if_else(is_known, data_change, pa.scalar(None, pa.bool_())),
        "version": pc.if_else(is_known, version, pa.scalar(None, pa.int64())),
        "level_before": None if before is None else before.column("level"),
        "deleted_rows_before": None if before is None else before.column("deleted_rows"),
    }
    return frames.table_of(frames.COMPARED_FILES, dict(zip(files.column_names, files.columns, strict=True)) | columns)


def _reasons(files: pa.Table, changes: pa.Table | None, event: str) -> tuple[pa.Array, pa.Array]:
    """Return for each file whether the commit that added or removed it changed data, and its version."""
    if changes is None or not len(changes):
        return pa.nulls(len(files), pa.bool_()), pa.nulls(len(files), pa.int64())
    events = changes.filter(pc.equal(changes["change"], event))
    names = ("path", "level")
    codes = group_ids(pa.concat_tables([events.select(names), files.select(names)]).columns)
    # The last of equal codes is found first.
    last = _indices_in(codes[len(events) :], codes[: len(events)][::-1])
    indices = pa.array(len(events) - 1 - last, mask=last < 0)
    return single_chunk(events.column("data_change")).take(indices), single_chunk(events.column("version")).take(
        indices
    )


def partitions_frame(difference: FileDifference) -> pa.Table:
    """Return COMPARED_PARTITIONS: partitions and buckets with differences, ordered by path."""
    parts = [difference.removed, difference.added, difference.shared]
    files = pa.concat_tables([part.select(["partition", "bucket", "rows", "size_bytes"]) for part in parts])
    kinds = np.repeat(np.arange(3), [len(part) for part in parts])
    groups = group_ids([pa.array(codes_of_maps(files.column("partition"))), files.column("bucket")])
    _, firsts, of_rows = np.unique(groups, return_index=True, return_inverse=True)
    count = len(firsts)
    deleted = _more_deleted(difference)
    grown = _summed(deleted, of_rows[kinds == 2], count)  # noqa: PLR2004 - the third part: shared files
    columns: dict[str, pa.Array] = {
        "partition": single_chunk(files.column("partition")).take(pa.array(firsts)),
        "bucket": single_chunk(files.column("bucket")).take(pa.array(firsts)),
        "deleted_rows": grown,
    }
    for code, word in enumerate(("removed", "added", "shared")):
        chosen = kinds == code
        columns[f"{word}_files"] = pa.array(np.bincount(of_rows[chosen], minlength=count))
        for unit, name in (("rows", "rows"), ("bytes", "size_bytes")):
            values = single_chunk(files.column(name)).filter(pa.array(chosen))
            columns[f"{word}_{unit}"] = _summed(values, of_rows[chosen], count)
    for unit in ("rows", "bytes"):
        columns[f"net_{unit}"] = pc.subtract(columns[f"added_{unit}"], columns[f"removed_{unit}"])
    table = frames.table_of(frames.COMPARED_PARTITIONS, columns)
    changed = np.bincount(of_rows[kinds < 2], minlength=count) > 0  # noqa: PLR2004 - removed or added
    changed |= np.bincount(of_rows[kinds == 2], difference.deleted[difference.of_b >= 0], count) > 0  # noqa: PLR2004
    return table.filter(pa.array(changed)).take(_in_order(files, firsts[changed]))


def _in_order(files: pa.Table, indices: npt.NDArray[np.int64]) -> pa.Array:
    groups = files.take(pa.array(indices)).select(["partition", "bucket"]).to_pylist()
    keys = [
        ([(name, value is not None, value or "") for name, value in item["partition"]], item["bucket"] or 0)
        for item in groups
    ]
    return pa.array(sorted(range(len(groups)), key=keys.__getitem__), pa.int64())


def _more_deleted(difference: FileDifference) -> pa.Array:
    """Return for each shared file how many more rows its deletion vector deletes in B than in A; null if unknown."""
    both = difference.of_b >= 0
    rows = [
        pc.if_else(single_chunk(files["deletion_vector"]).is_null(), 0, single_chunk(files["deleted_rows"]))
        for files in (difference.before(both), difference.b.filter(pa.array(both)))
    ]
    # For files with the same vector, the number of its rows does not matter.
    same = pa.array(~difference.deleted[both])
    return pc.if_else(same, pa.scalar(0, pa.int64()), pc.subtract(rows[1], rows[0]))


def _summed(values: pa.Array, groups: npt.NDArray[np.int64], count: int) -> pa.Array:
    """Return the sum of the values of each group; null if one is null."""
    sums, unknown = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    np.add.at(sums, groups, pc.fill_null(values, 0).to_numpy())
    unknown[groups[values.is_null().to_numpy(zero_copy_only=False)]] = True
    return pa.array(sums, mask=unknown)


def total_deleted(difference: FileDifference) -> tuple[int | None, int | None]:
    """Return how many more, and how many fewer, rows the vectors of shared files delete in B; None if unknown."""
    more = _more_deleted(difference)
    if more.null_count:
        return None, None
    values = more.to_numpy(zero_copy_only=False)
    return int(values[values > 0].sum()), -int(values[values < 0].sum())


def summary_frame(difference: FileDifference, files: pa.Table) -> pa.Table:
    """Return COMPARED: files, rows and bytes of A and B, and of shared, removed and added files.

    If deletion vectors of shared files differ, a part contains the number of these files and how many more rows than
    in A their vectors delete; fewer if negative. Parts of rearranged files are null if the commit that removed or
    added one is unknown.

    Args:
        files: COMPARED_FILES.
    """
    parts = (
        ("in A", difference.a),
        ("removed", difference.removed),
        ("removed, rearranged", _rearranged(files, "removed")),
        ("added", difference.added),
        ("added, rearranged", _rearranged(files, "added")),
        ("shared", difference.shared),
        ("in B", difference.b),
    )
    rows: list[tuple[str, int | None, int | None, int | None]] = [
        (word, None, None, None)
        if part is None
        else (word, len(part), known_sum(part, "rows"), known_sum(part, "size_bytes"))
        for word, part in parts
    ]
    changed = difference.b.filter(pa.array(difference.deleted))
    if len(changed):
        more, fewer = total_deleted(difference)
        net = None if more is None or fewer is None else more - fewer
        rows.insert(-1, ("shared, rows deleted", len(changed), net, known_sum(changed, "size_bytes")))
    columns = [
        pa.array(values, dtype) for values, dtype in zip(zip(*rows, strict=True), frames.COMPARED.types, strict=True)
    ]
    return pa.table(columns, schema=frames.COMPARED)


def _rearranged(files: pa.Table, change: str) -> pa.Table | None:
    """Return the removed or added rows of COMPARED_FILES that commits only rearranged; None if that is unknown."""
    changed = files.filter(pc.equal(files["change"], change))
    return None if changed["data_change"].null_count else changed.filter(pc.invert(changed["data_change"]))


def known_sum(files: pa.Table, name: str) -> int | None:
    """Return the sum of a column; None if a value is unknown."""
    return None if files[name].null_count else pc.sum(files[name]).as_py() or 0


_REARRANGING_KINDS = {"compact", "analyze"}
"""Kinds of commits that change no data."""


def difference_proof(
    difference: FileDifference, files: pa.Table, changes: pa.Table | None, kinds: Collection[str] | None, *, keyed: bool
) -> str:
    """Return a sentence on how many rows of two versions can differ, under one schema.

    A row that differs is in a file that only one version has, or a changed vector deletes it. In a table with a primary
    key, it may also be in a file that left level 0, since readers may skip that level. A commit that only rearranged a
    file proves nothing alone: the file may contain rows of an earlier commit.

    Args:
        changes: CHANGES of the commits between; None if they are not all known.
        kinds: Kinds of the commits between; None if they are not all known.
        keyed: Whether rows are merged by a primary key.
    """
    total_files = len(difference.shared) + len(difference.removed) + len(difference.added)
    if not total_files:
        return "Neither version has a file."
    changed = _changed_files(difference, files, total_files)
    may_reveal_rows = keyed and _involves_level_0(files)
    if (
        files.num_rows
        and kinds is not None
        and _REARRANGING_KINDS.issuperset(kinds)
        and not may_reveal_rows
        and _keeps_rows(files, changes, keyed=keyed)
    ):
        return f"The rows are the same, only compactions lie between: {changed}."
    rows = _max_changed_rows(difference, files, changes, may_reveal_rows=may_reveal_rows) if files.num_rows else 0
    if rows is None:
        return f"The metadata does not contain the number of changed rows: {changed}."
    answer = f"At most {pluralize(rows, 'row')} changed" if rows else "The rows are the same"
    return f"{answer}: {changed}."


_CHANGES = {"removed": "removed", "added": "added", "moved": "at another level", "deletions": "with other deleted rows"}
"""The words of COMPARED_FILES, as they follow a number of files."""


def _changed_files(difference: FileDifference, files: pa.Table, total: int) -> str:
    """Return how many files differ, by their change, then how many are shared."""
    counts = Counter(files["change"].to_pylist())
    changes = ", ".join(f"{counts[change]:,} {word}" for change, word in _CHANGES.items() if counts[change])
    number, _, rest = changes.partition(" ")
    differing = f"{number} {'file' if number == '1' else 'files'} {rest}; " if changes else ""
    shared = len(difference.shared)
    if shared == total:
        return differing + (f"all {total:,} files are shared" if total > 1 else "the only file is shared")
    return f"{differing}{shared:,} of {pluralize(total, 'file')} {'is' if shared == 1 else 'are'} shared"


def _involves_level_0(files: pa.Table) -> bool:
    """Return whether files of level 0, or in a postponed bucket, differ."""
    level_0 = [pc.equal(files[name], 0) for name in ("level", "level_before")] + [pc.less(files["bucket"], 0)]
    return any(pc.any(item).as_py() for item in level_0)


def _keeps_rows(files: pa.Table, changes: pa.Table | None, *, keyed: bool) -> bool:
    """Return whether compactions kept all rows: in Paimon, a commit that only deletes by a vector is also a compaction.

    Without a primary key, they must add as many rows as they remove.
    """
    if pc.any(pc.equal(files["change"], "deletions")).as_py():
        return False
    if keyed:
        return True
    sums = [
        None if changes is None else known_sum(changes.filter(pc.equal(changes["change"], word)), "rows")
        for word in ("remove", "add")
    ]
    return sums[0] is not None and sums[0] == sums[1]


def _max_changed_rows(
    difference: FileDifference, files: pa.Table, changes: pa.Table | None, *, may_reveal_rows: bool
) -> int | None:
    """Return the maximum number of rows that can have changed; None if unknown."""
    whole = pc.is_in(files["change"], pa.array(["removed", "added"]))
    if may_reveal_rows:
        # A file that moved and had rows deleted may have made all of its other rows visible.
        whole = pc.or_(whole, pc.fill_null(pc.not_equal(files["level"], files["level_before"]), fill_value=False))
    deleted = total_deleted(difference)
    if None in deleted:
        # An unknown number of deleted rows is at most all rows.
        deleted = (known_sum(files.filter(pc.equal(files["change"], "deletions")), "rows"), 0)
    parts = [known_sum(files.filter(whole), "rows"), *deleted]
    bounds = [sum(part for part in parts if part is not None)] if None not in parts else []
    if changes is not None and all(part["level"].null_count == len(part) for part in (difference.a, difference.b)):
        # Without levels, the log records every data change per file, including deletion vectors.
        data_changes = changes.filter(pc.fill_null(changes["data_change"], fill_value=True))
        changed_rows = known_sum(data_changes, "rows")
        bounds += [] if changed_rows is None else [changed_rows]
    return min(bounds, default=None)
