"""Checks of manifests against what their manifest list records: whether each is the file that the list names."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.avro.files import DecodedFiles
from snapshot_explorer.formats.iceberg.metadata.avro_files import broken
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

_WORDS = {1: "added", 0: "existing", 2: "deleted"}
_ADDED = 1
_REQUIRED = {"schema", "partition-spec", "partition-spec-id"}
"""Keys in the header of manifests. Source: iceberg specification, "Manifests"."""
_CONTENTS = {b"data": 0, b"deletes": 1}

Counts = npt.NDArray[np.int64]


def check_manifests(decoded: Sequence[DecodedFiles], manifests: pa.Table, sizes: Sequence[int]) -> None:
    """Check the ids, the counts and the sizes of manifests against their lists.

    A size alone proves nothing: releases of Iceberg before 1.12 that copy a table to another path
    (`rewrite_table_path`) leave the old sizes in manifest lists, and so did iceberg-go before 0.3. A manifest of
    another size is read if its entries name the snapshot and have the counts that the list records.

    A manifest without the header that the specification requires was rewritten by a tool, such as avro-tools. Its
    ids and counts are checked only if its size differs too.

    Args:
        decoded: The manifests, with the fields 0 (status), 1 (snapshot_id) and 2.103 (record_count).
        manifests: MANIFEST_FILES, in the order that the indices in `decoded` refer to.
        sizes: The size of each manifest in bytes.

    Source: iceberg specification, "Manifest Lists", fields 501 to 514; apache/iceberg issues 13719 and 16905,
    apache/iceberg-go issue 438.
    """
    listed = {name: manifests.column(name).to_pylist() for name in _NEEDED}
    for part in decoded:
        status, ids, records = _columns(part)
        owners = np.repeat(np.arange(len(part.files)), part.counts)
        writers = np.array([listed["added_snapshot_id"][position] or -1 for position in part.files], np.int64)
        is_own = (ids < 0) | (ids == writers[owners])
        counts = _counts(owners, status, records, is_own, len(part.files))
        for index, (position, container) in enumerate(zip(part.files, part.containers, strict=True)):
            recorded = {name: values[position] for name, values in listed.items()}
            path, has_size = recorded["path"], recorded["length"] in (None, sizes[position])
            if has_size and not _REQUIRED & container.header.keys():
                continue
            _check_header(path, container.header, recorded)
            if counts["added"][index] and not counts["own added"][index] and recorded["added_snapshot_id"] is not None:
                raise broken(
                    path,
                    f"its added files are of snapshot {int(ids[owners == index].max())}, but the manifest list "
                    f"records that snapshot {recorded['added_snapshot_id']} wrote it: it is another manifest",
                )
            _check_counts(path, {name: int(values[index]) for name, values in counts.items()}, recorded)
            if not has_size:
                log.warning(
                    "%s has %d bytes, but its manifest list records %d; its entries are those that the list records",
                    path,
                    sizes[position],
                    recorded["length"],
                )


_COUNTED = tuple(f"{word}_{unit}" for word in _WORDS.values() for unit in ("files", "rows"))
_NEEDED = ("path", "length", "spec_id", "content", "added_snapshot_id", *_COUNTED)


def _columns(part: DecodedFiles) -> tuple[Counts, Counts, Counts]:
    """Return status, snapshot id and row count of each entry; -1 where null."""
    fields = dict(zip((field.name for field in part.rows.type), part.rows.flatten(), strict=True))
    file = dict(zip((field.name for field in fields["2"].type), fields["2"].flatten(), strict=True))
    columns = (fields["0"], fields["1"], file["103"])
    status, ids, records = (
        pc.fill_null(column.cast(pa.int64()), -1).to_numpy(zero_copy_only=False) for column in columns
    )
    return status, ids, records


def _counts(
    owners: Counts, status: Counts, records: Counts, is_own: npt.NDArray[np.bool_], files: int
) -> dict[str, Counts]:
    """Return for each manifest the number of entries by status, of their rows, and of those its writer added."""
    counts: dict[str, Counts] = {}
    for number, word in _WORDS.items():
        chosen = status == number
        counts[word] = np.bincount(owners[chosen], minlength=files)
        counts[f"{word}_rows"] = np.bincount(owners[chosen], records[chosen], minlength=files).astype(np.int64)
    own = (status == _ADDED) & is_own
    counts["own added"] = np.bincount(owners[own], minlength=files)
    counts["own added_rows"] = np.bincount(owners[own], records[own], minlength=files).astype(np.int64)
    return counts


def _check_header(path: str, header: Mapping[str, bytes], recorded: Mapping[str, object]) -> None:
    """Check the spec and the content in the header of a manifest; some writers leave them out."""
    spec = header.get("partition-spec-id", b"").strip()
    if spec.isdigit() and int(spec) != recorded["spec_id"]:
        raise broken(path, f"its partition spec is {int(spec)}, but its manifest list records {recorded['spec_id']}")
    content = _CONTENTS.get(header.get("content", b"").strip())
    if content is not None and content != recorded["content"]:
        raise broken(path, "its content is another than its manifest list records")


def _check_counts(path: str, counts: Mapping[str, int], recorded: Mapping[str, int | None]) -> None:
    """Check the number of entries and rows of a manifest.

    A manifest that was appended as a whole may contain files that other snapshots added: some writers count them, some
    do not.
    """
    for word in _WORDS.values():
        for name, actual in ((f"{word}_files", counts[word]), (f"{word}_rows", counts[f"{word}_rows"])):
            known = recorded[name]
            own = counts["own added" if name == "added_files" else "own added_rows"] if word == "added" else actual
            if known is not None and known >= 0 and known not in (actual, own):
                raise broken(
                    path, f"its entries have {actual} {name.replace('_', ' ')}, but its manifest list records {known}"
                )
