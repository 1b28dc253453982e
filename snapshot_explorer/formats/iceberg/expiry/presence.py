"""Existence of the files that versions need, with the recorded sizes: data files, delete files and manifests."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.expiry import Presence, checked_files, presence_from
from snapshot_explorer.formats.iceberg.files.data_files import is_read_despite_size
from snapshot_explorer.formats.iceberg.files.field_ids import id_rules
from snapshot_explorer.formats.iceberg.metadata.contents import Source, manifests_of, readable_entries
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import DELETES
from snapshot_explorer.formats.iceberg.metadata.manifests import live_entries, nonempty_manifests
from snapshot_explorer.formats.iceberg.metadata.schema import parse_schema


def presence(source: Source, history: IcebergHistory, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
    """Return which data files, delete files, manifest lists and manifests of versions exist.

    Reads the manifest lists, and each manifest of delete files. A listing for each folder.
    """
    paths = single_chunk(lifetimes.column("path"))
    sizes = single_chunk(lifetimes.column("size_bytes"))
    checked = checked_files(source.storage, paths, sizes)
    if len(checked.resized):
        checked = replace(
            checked, resized=_unreadable(source, checked.resized, pc.take(sizes, pc.index_in(checked.resized, paths)))
        )
    lists = manifests_of(source, [history.snapshots[version] for version in versions])
    locations = lists.column("location")
    manifests = checked_files(source.storage, single_chunk(locations), single_chunk(lists.column("length")))
    without: dict[int, str] = {}
    unchecked: dict[int, str] = {}
    for files, problem, versions_of in (
        (manifests.unknown, "is on another storage", unchecked),
        # Releases of Iceberg that copied tables left the old sizes in manifest lists.
        (manifests.resized, "has another size than recorded, and was not read", unchecked),
        (manifests.gone, "is missing", without),
    ):
        for row in lists.filter(pc.is_in(locations, files)).select(["snapshot_id", "location"]).to_pylist():
            versions_of[history.numbers[row["snapshot_id"]]] = f"its manifest {row['location']} {problem}"
    is_bad = pc.is_in(locations, pa.concat_arrays([manifests.gone, manifests.resized, manifests.unknown]))
    lacking, elsewhere, unread = _check_deletes(source, history, lists.filter(pc.invert(is_bad)))
    return replace(
        presence_from(checked, paths),
        missing_metadata=unread | without,
        missing_deletes=lacking,
        unchecked_files=elsewhere | unchecked,
    )


def _unreadable(source: Source, resized: pa.Array, recorded: pa.Array) -> pa.Array:
    """Return the data files of another size whose rows cannot be read. Reads the footer of each.

    Files that were registered in the table may have been replaced since, and early releases recorded wrong sizes.
    """
    metadata = source.metadata
    rules = id_rules(metadata.properties, [parse_schema(schema) for schema in metadata.schemas.values()])
    constants = frozenset(
        int(field["source-id"])
        for spec in metadata.specs.values()
        for field in spec["fields"]
        if field.get("transform") == "identity" and "source-id" in field
    )
    files = zip(resized.to_pylist(), recorded.to_pylist(), strict=True)
    return pa.array(
        [path for path, size in files if not is_read_despite_size(source.storage, path, size, rules, constants)],
        pa.string(),
    )


def _check_deletes(
    source: Source, history: IcebergHistory, lists: pa.Table
) -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
    """Return for versions the numbers of delete files that are missing or resized, and that were not checked.

    Also the manifest of delete files that cannot be read, if any.

    Reads each manifest of delete files once.
    """
    of_deletes = nonempty_manifests(
        lists.filter(pc.equal(lists.column("content"), DELETES)), "added_files", "existing_files"
    )
    encoded = single_chunk(of_deletes.column("location")).dictionary_encode()
    codes = encoded.indices.to_numpy()
    manifests = of_deletes.take(pa.array(np.unique(codes, return_index=True)[1]))
    entries, unread = readable_entries(source, manifests)
    entries = live_entries(entries)
    locations, sizes = (single_chunk(entries.column(name)) for name in ("location", "size_bytes"))
    checked = checked_files(source.storage, locations, sizes)
    versions = [history.numbers[item] for item in of_deletes.column("snapshot_id").to_pylist()]

    def with_any_of(files: pa.Array, problem: str) -> dict[int, str]:
        manifests_of = entries.filter(pc.is_in(locations, files)).column("manifest").to_numpy()
        counts: Counter[int] = Counter()
        for version, count in zip(versions, np.bincount(manifests_of, minlength=len(manifests))[codes], strict=True):
            counts[version] += int(count)
        return {version: f"{count:,} of its delete files are {problem}" for version, count in counts.items() if count}

    return (
        with_any_of(pa.concat_arrays([checked.gone, checked.resized]), "missing or have another size than recorded"),
        with_any_of(checked.unknown, "on another storage"),
        {version: str(unread[code]) for version, code in zip(versions, codes.tolist(), strict=True) if code in unread},
    )
