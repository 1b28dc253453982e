"""Sections: files of a bucket with overlapping keys, which are merged together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.paimon.files.data_files import DataFile
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.schema import DataType, Field, Schema


def sections(
    files: Sequence[DataFile], entries: pa.Table, schema: Schema, file_schemas: Mapping[int, Schema]
) -> Iterator[list[DataFile]]:
    """Yield the files in sections: all keys of a section are less than those of the next.

    Files whose schemas have other key types are one section: larger sections give the same rows.

    Args:
        files: The files of a bucket.
        entries: Their manifest entries, in the same order.
        schema: The version's schema.
        file_schemas: The schemas that the files were written with, by id.

    Source: paimon IntervalPartition.
    """
    bounds = _bounds(files, entries, schema, file_schemas)
    if bounds is None:
        yield list(files)
        return
    least, most = bounds
    order = np.lexsort((most, least))
    greatest = np.maximum.accumulate(most[order])
    ends = [*(np.flatnonzero(least[order][1:] > greatest[:-1]) + 1).tolist(), len(order)]
    begin, places = 0, order.tolist()
    for end in ends:
        yield [files[place] for place in places[begin:end]]
        begin = end


def _bounds(
    files: Sequence[DataFile], entries: pa.Table, schema: Schema, file_schemas: Mapping[int, Schema]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return each file's least and greatest key as numbers in the order of the keys."""
    keys = [schema.field(name) for name in schema.trimmed_primary_keys]
    for number in {file.schema_id for file in files}:
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
    place = np.empty(len(order), np.int64)
    place[order] = np.concatenate([[0], np.cumsum(steps)])
    return place[: len(files)], place[len(files) :]


def _key_type(field: Field) -> tuple[int, DataType]:
    return field.id, replace(field.type, nullable=False)
