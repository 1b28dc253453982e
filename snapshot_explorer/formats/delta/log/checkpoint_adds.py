"""File actions of checkpoints as ADDS: which fields are stored how, and what becomes of them."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.delta.log.locations import decoded_array
from snapshot_explorer.formats.delta.log.records import ADDS, DELETION_VECTOR, STRINGS

STORED: Mapping[str, tuple[str, pa.DataType]] = {
    "path": ("path", pa.string()),
    "partition_values": ("partitionValues", STRINGS),
    "size_bytes": ("size", pa.int64()),
    "data_change": ("dataChange", pa.bool_()),
    "stats": ("stats", pa.string()),
    "base_row_id": ("baseRowId", pa.int64()),
    "default_row_commit_version": ("defaultRowCommitVersion", pa.int64()),
    "tags": ("tags", STRINGS),
    "modified_at": ("modificationTime", pa.int64()),
    "clustering_provider": ("clusteringProvider", pa.string()),
}
"""Columns of ADDS, each with its name and type in a checkpoint; beside them there are deletion vectors."""
_VECTOR = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
PARSED = "stats_parsed"
"""Statistics as structs, of which the text is made where a checkpoint has no other."""


def adds_of(rows: pa.StructArray, wanted: set[str]) -> pa.Table:
    """Return ADDS of file actions, with `stats_parsed` where that is wanted; what is not wanted is null."""
    columns: dict[str, pa.Array] = {"version": pa.nulls(len(rows), pa.int64())}
    for name, (stored, kind) in STORED.items():
        found = pc.struct_field(rows, [stored]) if stored in wanted else pa.nulls(len(rows), kind)
        columns[name] = found if found.type == kind else _cast(found, kind)
    columns["path"] = decoded_array(columns["path"])
    columns["deletion_vector"] = (
        _vectors(pc.struct_field(rows, ["deletionVector"]))
        if "deletionVector" in wanted
        else pa.nulls(len(rows), DELETION_VECTOR)
    )
    table = pa.table([columns[name] for name in ADDS.names], schema=ADDS)
    table.validate(full=True)
    return table.append_column(PARSED, pc.struct_field(rows, [PARSED])) if PARSED in wanted else table


def _cast(found: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        if not pa.types.is_map(found.type):
            raise CorruptBytesError(f"a map of type {found.type}")
        return pa.MapArray.from_arrays(
            _offsets(found), found.keys.cast(pa.string()), found.items.cast(pa.string()), type=kind
        )
    return found.cast(kind)


def _offsets(found: pa.MapArray) -> pa.Array:
    """Return the offsets of a map array, null where the map is null, from the first key on."""
    offsets = found.offsets
    empty = pc.is_null(found)
    if not pc.any(empty).as_py():
        return offsets
    marked = pa.concat_arrays([empty, pa.array([False])])
    return pc.if_else(marked, pa.scalar(None, pa.int32()), offsets)


def _vectors(found: pa.StructArray) -> pa.Array:
    if found.null_count == len(found):
        return pa.nulls(len(found), DELETION_VECTOR)
    names = {field.name for field in found.type}
    children = [
        pc.struct_field(found, [stored]).cast(field.type) if stored in names else pa.nulls(len(found), field.type)
        for stored, field in zip(_VECTOR, DELETION_VECTOR, strict=True)
    ]
    described = pc.is_valid(children[0])
    return pa.StructArray.from_arrays(children, fields=list(DELETION_VECTOR), mask=pc.invert(described))


def joined_adds(tables: Sequence[pa.Table]) -> pa.Table:
    """Return ADDS as one table; a column that only some have, or have with other fields, is null where it is absent."""
    some = [table for table in tables if table.num_rows] or tables[:1]
    if len(some) < 2:  # noqa: PLR2004 - nothing to join
        return some[0] if some else ADDS.empty_table()
    try:
        return pa.concat_tables(some, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        # Statistics as structs of types that have nothing in common: to know nothing of the values is safe.
        return pa.concat_tables([table.select(ADDS.names) for table in some])
