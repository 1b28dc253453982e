"""Checks of manifests against their manifest lists: whether each is the file that the list names, and its counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.avro.files import DecodedFiles
from snapshot_explorer.formats.iceberg.metadata.avro_files import broken_file_error
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_WORDS = {1: "added", 0: "existing", 2: "deleted"}
_ADDED, _DELETED = 1, 2
_DATA = 0
_REQUIRED = {"schema", "partition-spec", "partition-spec-id"}
"""Keys in the header of manifests. Source: iceberg specification, "Manifests"."""
_CONTENTS = {b"data": 0, b"deletes": 1}

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """How far the metadata confirms the numbers in the entries of manifests, in their order."""

    rows: pa.Array
    """Whether another number agrees with the number of rows of a file, or contradicts it; null if there is none."""
    doubted_size: pa.Array
    """Whether the size of a file is probably wrong."""


def check_manifests(
    decoded: Sequence[DecodedFiles],
    manifests: pa.Table,
    sizes: Sequence[int],
    column_ids: Sequence[int],
    storage: Storage,
) -> Sequence[Confirmation]:
    """Check the ids, counts and sizes of manifests against their lists. Return how far their numbers are confirmed.

    A size alone proves nothing: releases of Iceberg before 1.12 that copy a table to another path
    (`rewrite_table_path`) leave the old sizes in manifest lists, and so did iceberg-go before 0.3. A manifest of
    another size is read if its entries name the snapshot and have the counts that the list records.

    Counts alone prove nothing either: Iceberg reads a table whatever they are. A manifest of the recorded size may
    have other numbers of files than its list records, if the list's numbers do not add up to the snapshot's total.
    Other numbers of rows are accepted in the same case, and also if not every file has as many values as rows.

    A manifest without the header that the specification requires was rewritten by a tool, such as avro-tools. Its
    ids and counts are checked only if its size differs too.

    Args:
        decoded: The manifests, with the fields 0 (status), 1 (snapshot_id), 2.103 (record_count), 2.104
            (file_size_in_bytes) and 2.109 (value_counts).
        manifests: MANIFEST_FILES, in the order that the indices in `decoded` refer to.
        sizes: The size of each manifest in bytes.
        column_ids: Columns that have as many values in a file as the file has rows.
        storage: The table's storage, for warnings.

    Source: iceberg specification, "Manifest Lists", fields 501 to 514; apache/iceberg issues 13719 and 16905,
    apache/iceberg-go issue 438, ClickHouse issues 104321 and 121222.
    """
    listed = {name: manifests.column(name).to_pylist() for name in _NEEDED}
    ids = pa.array(column_ids, pa.int32())
    return [_check_manifest(part, listed, sizes, ids, storage) for part in decoded]


def _check_manifest(
    part: DecodedFiles,
    listed: Mapping[str, Sequence[Any]],
    sizes: Sequence[int],
    column_ids: pa.Array,
    storage: Storage,
) -> Confirmation:
    entries = _Entries.of(part)
    owners = np.repeat(np.arange(len(part.files)), part.counts)
    writers = np.array([listed["added_snapshot_id"][position] or -1 for position in part.files], np.int64)
    is_own = (entries.ids < 0) | (entries.ids == writers[owners])
    counts = _counts(owners, entries, is_own, len(part.files))
    by_values = _confirmed_by_values(entries, column_ids)
    by_list = np.full(len(part.files), None, np.object_)
    end = 0
    for index, (position, container) in enumerate(zip(part.files, part.containers, strict=True)):
        begin, end = end, end + container.rows
        manifest = _Manifest(
            recorded={name: column[position] for name, column in listed.items()},
            counts={name: int(column[index]) for name, column in counts.items()},
            size_bytes=sizes[position],
            warn=partial(storage.warn_once, log),
        )
        if not manifest.has_size or _REQUIRED & container.header.keys():
            _check_header(manifest, container.header)
            _check_writer(manifest, entries.ids[begin:end])
            _check_counts(manifest, has_confirmed_rows=all(item is True for item in by_values[begin:end]))
        if not manifest.has_size:
            manifest.warn(
                "%s has %d bytes, but its manifest list records %d; its entries are those that the list records",
                manifest.path,
                manifest.size_bytes,
                manifest.recorded["length"],
            )
        by_list[index] = manifest.confirms_rows
        if any(item is False for item in by_values[begin:end]):
            manifest.warn(
                "%s records other numbers of rows for data files than of values in their columns: the rows are counted "
                "in the files",
                manifest.path,
            )
    confirmed = np.where(by_values == None, by_list[owners], by_values)  # noqa: E711 - element by element
    return Confirmation(pa.array(confirmed, pa.bool_()), _doubted_sizes(entries, owners, confirmed))


_COUNTED = tuple(f"{word}_{unit}" for word in _WORDS.values() for unit in ("files", "rows"))
_NEEDED = (
    "path",
    "length",
    "spec_id",
    "content",
    "added_snapshot_id",
    "files_add_up",
    "rows_add_up",
    *_COUNTED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    status: Counts
    ids: Counts
    """The snapshot of each entry; -1 where null."""
    rows: Counts
    sizes: Counts
    values: pa.Array
    """The number of values of columns, by id."""

    @classmethod
    def of(cls, part: DecodedFiles) -> "_Entries":
        fields = dict(zip((field.name for field in part.rows.type), part.rows.flatten(), strict=True))
        file = dict(zip((field.name for field in fields["2"].type), fields["2"].flatten(), strict=True))
        status, ids, rows, sizes = (
            pc.fill_null(column.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
            for column in (fields["0"], fields["1"], file["103"], file["104"])
        )
        return cls(status=status, ids=ids, rows=rows, sizes=sizes, values=file["109"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    recorded: Mapping[str, Any]
    """Its row of MANIFEST_FILES."""
    counts: Mapping[str, int]
    """The counts of its entries."""
    size_bytes: int
    warn: Callable[..., None]
    """Logs a warning about it."""

    @property
    def path(self) -> str:
        return str(self.recorded["path"])

    @property
    def has_size(self) -> bool:
        return self.recorded["length"] in (None, self.size_bytes)

    def agrees(self, name: str) -> bool | None:
        """Return whether a count of its entries is the recorded one; None if none is recorded.

        A manifest that was appended as a whole may contain files that other snapshots added. Only some writers count
        them.
        """
        recorded = self.recorded[name]
        return None if recorded is None or recorded < 0 else recorded in (self.counts[name], self.counts[f"own {name}"])

    @property
    def confirms_rows(self) -> bool | None:
        """Whether its files' numbers of rows agree with the manifest list and with the snapshot."""
        agrees = [self.agrees("added_rows"), self.agrees("existing_rows")]
        if False in agrees:
            return False
        if self.recorded["content"] != _DATA:
            return None if None in agrees else True
        adds_up: bool | None = self.recorded["rows_add_up"]
        return None if None in agrees else adds_up


def _counts(owners: Counts, entries: _Entries, is_own: npt.NDArray[np.bool_], files: int) -> dict[str, Counts]:
    """Return for each manifest the numbers of entries and rows by status; `own` counts its writer's added entries."""
    counts: dict[str, Counts] = {}
    for number, word in _WORDS.items():
        for prefix, chosen in (
            ("", entries.status == number),
            ("own ", (entries.status == number) & (is_own if number == _ADDED else True)),
        ):
            of_entries = owners[chosen]
            rows = np.bincount(of_entries, entries.rows[chosen], minlength=files)
            counts[f"{prefix}{word}_files"] = np.bincount(of_entries, minlength=files)
            counts[f"{prefix}{word}_rows"] = rows.astype(np.int64)
    return counts


def _confirmed_by_values(entries: _Entries, column_ids: pa.Array) -> npt.NDArray[np.object_]:
    """Return for each entry whether columns have as many values as it has rows; None if no column is counted."""
    offsets = entries.values.offsets.to_numpy(zero_copy_only=False)
    begin, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    ids, values = (column.slice(begin, count) for column in (entries.values.keys, entries.values.items))
    owners = np.repeat(np.arange(len(entries.rows)), np.diff(offsets))
    is_counted = pc.is_in(ids, column_ids).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(values, -1).to_numpy(zero_copy_only=False)
    differs = is_counted & (numbers != entries.rows[owners])
    result = np.full(len(entries.rows), None, np.object_)
    result[owners[is_counted]] = True
    result[owners[differs]] = False
    return result


def _doubted_sizes(entries: _Entries, owners: Counts, confirmed: npt.NDArray[np.object_]) -> pa.Array:
    """Return whether each file's size is doubtful: probably the total of several entries with the same numbers.

    ClickHouse before 26.5 recorded the rows and bytes of a whole commit for each of its files.
    """
    doubted = np.flatnonzero(confirmed == False)  # noqa: E712 - element by element
    result = np.zeros(len(confirmed), np.bool_)
    if len(doubted):
        keys = np.stack([owners[doubted], entries.rows[doubted], entries.sizes[doubted]], axis=1)
        _, codes, sizes = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        result[doubted] = sizes[codes.ravel()] > 1
    return pa.array(result)


def _check_header(manifest: _Manifest, header: Mapping[str, bytes]) -> None:
    """Check the spec and the content in the header of a manifest of another size; some writers leave them out.

    Iceberg reads a manifest by the fields in its list. If a manifest has the recorded size but other values in its
    header, its writer wrote them.
    """
    spec, content = header.get("partition-spec-id", b"").strip(), _CONTENTS.get(header.get("content", b"").strip())
    recorded, problem = manifest.recorded, ""
    if spec.isdigit() and int(spec) != recorded["spec_id"]:
        problem = f"its partition spec is {int(spec)}, but its manifest list records {recorded['spec_id']}"
    elif content is not None and content != recorded["content"]:
        problem = "its content is another than its manifest list records"
    if problem and not manifest.has_size:
        raise broken_file_error(manifest.path, problem)
    if problem:
        manifest.warn("%s: by its header %s", manifest.path, problem)


def _check_writer(manifest: _Manifest, ids: Counts) -> None:
    """Check that the snapshot that wrote a manifest added some of the files that are added in it."""
    writer = manifest.recorded["added_snapshot_id"]
    if manifest.counts["added_files"] and not manifest.counts["own added_files"] and writer is not None:
        raise broken_file_error(
            manifest.path,
            f"its added files are of snapshot {int(ids.max())}, but the manifest list records that snapshot {writer} "
            "wrote it: it is another manifest",
        )


def _check_counts(manifest: _Manifest, *, has_confirmed_rows: bool) -> None:
    """Check the number of entries and rows of a manifest.

    Args:
        has_confirmed_rows: Whether each of its files has as many values as rows.
    """
    tolerated = {
        "files": manifest.has_size and manifest.recorded["files_add_up"] is False,
        "rows": manifest.has_size and (manifest.recorded["rows_add_up"] is False or not has_confirmed_rows),
    }
    for name in _COUNTED:
        if manifest.agrees(name) is not False:
            continue
        noun, actual, recorded = name.replace("_", " "), manifest.counts[name], manifest.recorded[name]
        if not tolerated[name.rpartition("_")[2]]:
            raise broken_file_error(
                manifest.path, f"its entries have {actual} {noun}, but its manifest list records {recorded}"
            )
        manifest.warn("%s has %d %s, but its manifest list records %d", manifest.path, actual, noun, recorded)
