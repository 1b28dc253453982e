"""Removal of rows from a batch."""

import decimal
import uuid

import numpy as np
import pyarrow as pa
import pytest

from tests.inner.arrow import filter_rows, mask_of

ROWS = 200
COLUMNS = {
    "int": pa.array(range(ROWS), pa.int32()),
    "long": pa.array([None if one % 7 == 0 else one for one in range(ROWS)], pa.int64()),
    "double": pa.array([-0.0, float("nan")] * (ROWS // 2)),
    "bool": pa.array([True, False, None, True] * (ROWS // 4)),
    "text": pa.array([str(one) * (one % 5) for one in range(ROWS)]),
    "bytes": pa.array([b"", None] * (ROWS // 2), pa.binary()),
    "fixed": pa.array([bytes([one] * 3) for one in range(ROWS)], pa.binary(3)),
    "decimal": pa.array([decimal.Decimal(one) / 4 for one in range(ROWS)], pa.decimal128(9, 2)),
    "uuid": pa.array([uuid.UUID(int=one).bytes for one in range(ROWS)], pa.uuid()),
    "list": pa.array([[one] * (one % 3) for one in range(ROWS)]),
    "struct": pa.array([{"a": one} for one in range(ROWS)]),
    "word": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
    "null": pa.nulls(ROWS),
}


def with_bitmap(values: pa.Array) -> pa.Array:
    """Return values with a bitmap that says that none is null, as those of parquet files have."""
    if values.buffers()[0] is not None or pa.types.is_nested(values.type) or values.type in (pa.null(), pa.uuid()):
        return values
    if pa.types.is_dictionary(values.type):
        return values
    bits = pa.py_buffer(b"\xff" * (len(values) // 8 + 1))
    return pa.Array.from_buffers(values.type, len(values), [bits, *values.buffers()[1:]])


@pytest.mark.parametrize("removed", [0, 1, 3, 20, 100, 199, 200])
@pytest.mark.parametrize("start", [0, 13])
def test_rows_are_removed_from_columns_of_every_kind(removed: int, start: int) -> None:
    batch = pa.record_batch({name: with_bitmap(values) for name, values in COLUMNS.items()}).slice(start)
    kept = np.random.default_rng(removed).permutation(batch.num_rows) >= removed

    found = filter_rows(batch, mask_of(kept))

    expected = batch.take(pa.array(np.flatnonzero(kept)))
    assert found.schema == batch.schema
    assert found.drop_columns("double").equals(expected.drop_columns("double"))
    assert found["double"].to_numpy().tobytes() == expected["double"].to_numpy().tobytes()
    found.validate(full=True)


def test_rows_without_columns_are_counted() -> None:
    batch = pa.record_batch({"id": range(3)}).select([])

    assert filter_rows(batch, mask_of(np.array([True, False, True]))).num_rows == 2
