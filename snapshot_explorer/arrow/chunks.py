"""Chunks of Arrow columns, and batches under other schemas."""

import pyarrow as pa


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array, without a copy if it has one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if not column.num_chunks:
        return pa.nulls(0, column.type)  # without pandas; see `arrays`
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def under(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch under a schema with the same names and types in order, without a copy."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if batch.num_rows and batch.schema.equals(schema):
        # Only metadata differs. Other ways to replace the schema cost several times as much per column.
        (result,) = pa.Table.from_batches([batch], schema).to_batches()
        return result
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
