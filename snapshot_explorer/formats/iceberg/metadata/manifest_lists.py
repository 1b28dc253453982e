"""Manifest lists: the manifests of a snapshot, with the counts of each."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import array, from_numpy, scalar, to_numpy
from snapshot_explorer.arrow.bin_packing import bins
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.avro.files import in_order
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.metadata.avro_files import broken_file_error, read_avro
from snapshot_explorer.formats.iceberg.metadata.locations import Locations
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

DATA, DELETES = 0, 1
"""The content of a manifest."""
_SUMMARY = pa.struct(
    [("509", pa.bool_()), ("518", pa.bool_()), ("510", pa.binary()), ("511", pa.binary())],
)
_STORED = pa.struct(
    [
        ("500", pa.string()),
        ("501", pa.int64()),
        ("502", pa.int32()),
        ("517", pa.int32()),
        ("515", pa.int64()),
        ("516", pa.int64()),
        ("503", pa.int64()),
        *((str(field), pa.int64()) for field in (504, 505, 506, 512, 513, 514)),
        ("507", pa.list_(_SUMMARY)),
        ("519", pa.binary()),
        ("520", pa.int64()),
    ]
)
_NAMES = {
    "manifest_path": "500",
    "manifest_length": "501",
    "partition_spec_id": "502",
    "content": "517",
    "sequence_number": "515",
    "min_sequence_number": "516",
    "added_snapshot_id": "503",
    "added_files_count": "504",
    "existing_files_count": "505",
    "deleted_files_count": "506",
    "added_rows_count": "512",
    "existing_rows_count": "513",
    "deleted_rows_count": "514",
    "partitions": "507",
    "contains_null": "509",
    "contains_nan": "518",
    "lower_bound": "510",
    "upper_bound": "511",
    "key_metadata": "519",
    "first_row_id": "520",
}
"""The ids of the fields by their names in the specification."""
SUMMARIES = pa.list_(
    pa.struct(
        [
            ("contains_null", pa.bool_()),
            ("contains_nan", pa.bool_()),
            ("lower_bound", pa.binary()),
            ("upper_bound", pa.binary()),
        ]
    )
)
MANIFEST_FILES = pa.schema(
    [
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("location", pa.string(), nullable=False),
        pa.field("length", pa.int64()),
        pa.field("spec_id", pa.int32(), nullable=False),
        pa.field("content", pa.int32(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("min_sequence_number", pa.int64(), nullable=False),
        pa.field("added_snapshot_id", pa.int64()),
        pa.field("added_files", pa.int64()),
        pa.field("existing_files", pa.int64()),
        pa.field("deleted_files", pa.int64()),
        pa.field("added_rows", pa.int64()),
        pa.field("existing_rows", pa.int64()),
        pa.field("deleted_rows", pa.int64()),
        pa.field("partitions", SUMMARIES),
        pa.field("key_metadata", pa.binary()),
        pa.field("first_row_id", pa.int64()),
        pa.field("files_add_up", pa.bool_()),
        pa.field("rows_add_up", pa.bool_()),
    ]
)
"""A row is a manifest of a snapshot, in the order of its list. Null counts are unknown; assume more than 0.

`snapshot_id` is the snapshot whose list contains the manifest, `added_snapshot_id` the snapshot that wrote it. `path`
is the recorded text, `location` the path to open. `files_add_up` and `rows_add_up`: whether the counts of all data
manifests of the list add up to the totals in the summary of its snapshot; null if one of them is unknown.

Source: iceberg specification, "Manifest Lists"."""

_TOTALS = {
    "files_add_up": ("total-data-files", "504", "505"),
    "rows_add_up": ("total-records", "512", "513"),
}
"""The total in the summary of a snapshot, and the counts of manifests that add up to it."""
_DECODED_BYTES = 4 << 20
"""Bytes of manifest lists, mostly compressed, whose rows are in memory at the same time before some are selected."""
_INTEGER = re.compile(r"[0-9]{1,18}")
_DEFAULTS = {"content": 0, "sequence_number": 0, "min_sequence_number": 0}


def read_manifest_lists(
    storage: Storage,
    locations: Locations,
    snapshots: Sequence[IcebergSnapshot],
    *,
    select: Callable[[pa.Table], pa.Table] | None = None,
) -> pa.Table:
    """Return the MANIFEST_FILES of snapshots, in the order of the snapshots. Reads their lists concurrently.

    Very old snapshots name their manifests themselves: only the paths of these are known.

    Args:
        select: Returns the manifests to keep of some. Without it all rows of the lists are in memory together.
    """
    for snapshot in snapshots:
        if snapshot.key_id is not None:
            raise encrypted_error(snapshot.manifest_list or f"The manifest list of snapshot {snapshot.id}")
    listed = [snapshot for snapshot in snapshots if snapshot.manifest_list is not None]
    paths = [item.manifest_list for item in listed if item.manifest_list is not None]
    contents = storage.read_many(locations.many(array(paths, pa.string())).to_pylist(), immutable=True)
    sizes = np.array([len(content) for content in contents], np.int64)
    parts = [
        _decoded(listed[begin:end], contents[begin:end], locations, storage)
        if select is None
        else select(_decoded(listed[begin:end], contents[begin:end], locations, storage))
        for begin, end in pairwise(bins(sizes, target=_DECODED_BYTES).tolist())
    ]
    embedded = [item for item in snapshots if item.manifest_list is None and item.manifests]
    parts += [_embedded_manifests(snapshot, locations) for snapshot in embedded]
    result = pa.concat_tables(parts) if parts else MANIFEST_FILES.empty_table()
    if embedded and len(snapshots) > 1:
        order = {item.id: index for index, item in enumerate(snapshots)}
        positions = np.array([order[item] for item in result.column("snapshot_id").to_pylist()], np.int64)
        result = result.take(pa.array(np.argsort(positions, kind="stable")))
    return result


def _decoded(
    listed: Sequence[IcebergSnapshot], contents: Sequence[bytes], locations: Locations, storage: Storage
) -> pa.Table:
    """Return the MANIFEST_FILES of manifest lists, in their order."""
    paths = [str(item.manifest_list) for item in listed]
    decoded = read_avro(list(zip(paths, contents, strict=True)), _STORED, _NAMES, storage.limits)
    counts = np.zeros(len(paths), np.int64)
    for part in decoded:
        for index, container in zip(part.files, part.containers, strict=True):
            _check_owner(paths[index], container.header, listed[index])
            counts[index] = container.rows
    files = [index for part in decoded for index in part.files]
    rows = in_order(pa.concat_arrays([part.rows for part in decoded]), files, counts)
    result = _manifest_files(rows, counts, listed, locations, storage)
    is_encrypted = result.column("key_metadata").is_valid()
    if pc.any(is_encrypted).as_py():
        raise encrypted_error(result.column("path").filter(is_encrypted)[0].as_py())
    return result


def _check_owner(path: str, header: Mapping[str, bytes], snapshot: IcebergSnapshot) -> None:
    """Check the snapshot that the header of a manifest list names.

    Some writers leave it out. Some tools rounded the ids in metadata files to floating point numbers, but not those in
    headers.

    Source: `ManifestLists.write`; iceberg-rust, pyiceberg and Impala leave it out in some releases.
    """
    pairs = (("snapshot-id", "the id", snapshot.id), ("sequence-number", "the number", snapshot.sequence_number))
    for key, noun, expected in pairs:
        text = header.get(key, b"").strip()
        if not text.isdigit() or (key == "sequence-number" and not expected):
            continue
        stored = int(text)
        if stored != expected and float(stored) != float(expected):
            raise broken_file_error(
                path, f"its {key} is {stored}, but {noun} of the snapshot that names it is {expected}: it is another's"
            )


def encrypted_error(path: str) -> UnsupportedFeatureError:
    """Return the error for an encrypted manifest list or manifest."""
    return refusal(features.ENCRYPTED_METADATA, path=path)


def _manifest_files(
    rows: pa.StructArray,
    counts: np.ndarray[tuple[int], np.dtype[np.int64]],
    listed: Sequence[IcebergSnapshot],
    locations: Locations,
    storage: Storage,
) -> pa.Table:
    paths = [item.manifest_list for item in listed]
    rows, owners = _without_repeated(rows, np.repeat(np.arange(len(listed)), counts), paths, storage)
    columns = dict(zip((part.name for part in rows.type), rows.flatten(), strict=True))
    data, zero = scalar(DATA, pa.int64()), scalar(0, pa.int64())  # values of Python would load pandas
    is_data = pc.equal(pc.fill_null(columns["517"].cast(pa.int64()), data), data)
    for name, (total, added, existing) in _TOTALS.items():
        live = pc.if_else(is_data, pc.add(known_counts(columns[added]), known_counts(columns[existing])), zero)
        columns[name] = _adds_up(live, owners, [item.summary.get(total) for item in listed])
    ids = array([item.id for item in listed], pa.int64()).take(from_numpy(owners))
    names = [field.name for field in MANIFEST_FILES][3:]
    stored = ["501", "502", "517", "515", "516", "503", "504", "505", "506", "512", "513", "514", "507", "519", "520"]
    stored += _TOTALS
    path = columns["500"]
    # Most manifests are in the lists of many snapshots.
    encoded = path.dictionary_encode()
    arrays = [ids, path, locations.many(encoded.dictionary).take(encoded.indices)]
    for name, field in zip(names, stored, strict=True):
        column = columns[field]
        if name in _DEFAULTS and column.null_count:
            column = pc.fill_null(column, _DEFAULTS[name])
        arrays.append(_summaries(column) if name == "partitions" else column)
    for field, column in zip(MANIFEST_FILES, arrays, strict=True):
        if not field.nullable and column.null_count:
            at = int(owners[np.argmax(column.is_null().to_numpy(zero_copy_only=False))])
            raise broken_file_error(str(paths[at]), f"a manifest in it has no {field.name}")
    return pa.Table.from_arrays(arrays, schema=MANIFEST_FILES)


def known_counts(column: pa.Array) -> pa.Array:
    """Return counts; null for those that some writers of format 1 recorded as -1."""
    counts = column.cast(pa.int64())
    return pc.if_else(pc.less(counts, scalar(0, pa.int64())), scalar(None, pa.int64()), counts)


def _adds_up(
    live: pa.Array, owners: np.ndarray[tuple[int], np.dtype[np.int64]], totals: Sequence[str | None]
) -> pa.Array:
    """Return for each manifest whether the counts of its list add up to a total; null if that is unknown.

    Args:
        live: The live files or rows in each manifest.
        owners: The list of each manifest, as an index.
        totals: The total of each list, as the summary of its snapshot has it.
    """
    is_unknown = to_numpy(live.is_null().cast(pa.uint8())) > 0
    unknown = np.bincount(owners[is_unknown], minlength=len(totals)) > 0
    sums = np.bincount(owners, to_numpy(pc.fill_null(live, scalar(0, pa.int64()))), len(totals))
    known = [
        None if lacks or total is None or not _INTEGER.fullmatch(total) else int(total) == int(added)
        for lacks, total, added in zip(unknown.tolist(), totals, sums.tolist(), strict=True)
    ]
    return array(known, pa.bool_()).take(from_numpy(owners))


def _summaries(column: pa.ListArray) -> pa.ListArray:
    values = column.values
    renamed = pa.StructArray.from_arrays(
        values.flatten(), fields=list(SUMMARIES.value_type), mask=values.is_null() if values.null_count else None
    )
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(column.offsets, renamed, type=SUMMARIES, mask=mask)


def _without_repeated(
    rows: pa.StructArray,
    owners: np.ndarray[tuple[int], np.dtype[np.int64]],
    lists: Sequence[str | None],
    storage: Storage,
) -> tuple[pa.StructArray, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the manifests of lists, each once in its list, and their lists.

    Source: iceberg ManifestGroup, which has sets of manifests.
    """
    encoded = rows.field("500").dictionary_encode(null_encoding="encode")
    ids = owners * len(encoded.dictionary) + to_numpy(encoded.indices)
    firsts = np.unique(ids, return_index=True)[1]
    if len(firsts) == len(ids):
        return rows, owners
    kept = np.zeros(len(ids), np.bool_)
    kept[firsts] = True
    for index in np.flatnonzero(~kept).tolist():
        path = rows.field("500")[index].as_py()
        storage.warn_once(log, "%s names the manifest %s twice; it counts once", lists[owners[index]], path)
    return rows.filter(pa.array(kept)), owners[kept]


def _embedded_manifests(snapshot: IcebergSnapshot, locations: Locations) -> pa.Table:
    """Return the manifests that a snapshot of format 1 names itself.

    Source: iceberg BaseSnapshot, GenericManifestFile.
    """
    count = len(snapshot.manifests)
    paths = pa.array(snapshot.manifests, pa.string())
    known = {
        "snapshot_id": pa.repeat(pa.scalar(snapshot.id, pa.int64()), count),
        "path": paths,
        "location": locations.many(paths),
        "added_snapshot_id": pa.repeat(pa.scalar(snapshot.id, pa.int64()), count),
        **{
            name: pa.repeat(pa.scalar(0, MANIFEST_FILES.field(name).type), count)
            for name in ("spec_id", "content", "sequence_number", "min_sequence_number")
        },
    }
    arrays = [known.get(field.name, pa.nulls(count, field.type)) for field in MANIFEST_FILES]
    return pa.Table.from_arrays(arrays, schema=MANIFEST_FILES)
