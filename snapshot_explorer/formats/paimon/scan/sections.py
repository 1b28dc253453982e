"""Sections: files of a bucket with overlapping keys, which are merged together."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema

Indices = npt.NDArray[np.int64]


def sections(
    entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]
) -> tuple[Indices, Indices]:
    """Return files in sections: all keys of a section are less than those of the next.

    Files whose schemas have other key types are one section: larger sections have the same rows.

    Args:
        entries: The manifest entries of the files of a bucket, at least one: min_key, max_key and schema_id.
        file_schemas: The schemas that the files were written with, by id.

    Returns:
        The indices of the files, section by section, and where in them each section ends.

    Source: paimon IntervalPartition.
    """
    bounds = _bounds(entries, schema, file_schemas)
    if bounds is None:
        return np.arange(len(entries)), np.array([len(entries)])
    minimum, maximum = bounds
    order = np.lexsort((maximum, minimum))
    maximum_so_far = np.maximum.accumulate(maximum[order])
    return order, np.append(np.flatnonzero(minimum[order][1:] > maximum_so_far[:-1]) + 1, len(order))


def _bounds(
    entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]
) -> tuple[Indices, Indices] | None:
    """Return each file's minimum and maximum key as numbers in the order of the keys."""
    keys = [schema.field(name) for name in schema.trimmed_primary_keys]
    for number in pc.unique(entries.column("schema_id")).to_pylist():
        file_schema = file_schemas[number]
        if [_key_type(file_schema.field(name)) for name in file_schema.trimmed_primary_keys] != [
            _key_type(key) for key in keys
        ]:
            return None
    both = pa.chunked_array(entries.column("min_key").chunks + entries.column("max_key").chunks, pa.binary())
    ends = binary_row.decode(both, keys)
    # Rank of each bound among all bounds, by the first column first; equal for equal keys.
    ranks = [
        order_codes(pa.chunked_array([column]) if isinstance(column, pa.Array) else column) for column in ends.columns
    ]
    order = np.lexsort(ranks[::-1])
    steps = np.any([rank[order][1:] != rank[order][:-1] for rank in ranks], axis=0)
    index = np.empty(len(order), np.int64)
    index[order] = np.concatenate([[0], np.cumsum(steps)])
    return index[: len(entries)], index[len(entries) :]


def _key_type(field: PaimonField) -> tuple[int, PaimonDataType]:
    return field.id, replace(field.type, nullable=False)
