"""Row ids and sequence numbers: columns that tables with row tracking give when they are asked for by name."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.formats.paimon.files.data_files import DataFile
from snapshot_explorer.formats.paimon.metadata.schema import DataType, Field

ROW_ID = Field(id=2_147_483_642, name="_ROW_ID", type=DataType(root="BIGINT"))
SEQUENCE_NUMBER = Field(id=2_147_483_646, name="_SEQUENCE_NUMBER", type=DataType(root="BIGINT"))
HIDDEN = (ROW_ID, SEQUENCE_NUMBER)
"""The columns that are given only when asked for."""


def metadata_fields(names: Sequence[str], *, tracked: bool) -> list[Field]:
    """Return those of the hidden columns that are among the names.

    Args:
        names: Columns asked for.
        tracked: Whether the table keeps them.

    Raises:
        InvalidArgumentError: One is asked for where the table does not keep them.

    Source: paimon docs, "Row Tracking".
    """
    found = [field for field in HIDDEN if field.name in names]
    if found and not tracked:
        raise InvalidArgumentError(
            f"The column {found[0].name!r} was asked for, but the table does not track its rows: it needs the option "
            "row-tracking.enabled, and no primary key. Leave the column out."
        )
    return found


def stored(fields: Sequence[Field], file: DataFile) -> list[Field]:
    """Return those of the hidden columns among the fields that the file holds itself."""
    return [field for field in fields if field in HIDDEN and file.write_columns and field.name in file.write_columns]


def values(field: Field, batch: pa.RecordBatch, file: DataFile, start: int) -> pa.Array:
    """Return a hidden column for rows of a file.

    What the file holds counts; where it holds none, a row's id follows from its position in the file, and its
    sequence number is that of the commit that wrote the file.

    Args:
        field: One of `HIDDEN`.
        batch: Rows of the file, with the columns that `stored` names.
        file: The file.
        start: The position of the first row in the file.

    Raises:
        CorruptTableError: A row has no id.

    Source: paimon docs, "Row Tracking".
    """
    rows = batch.num_rows
    own = batch.column(field.name) if field.name in batch.schema.names else pa.nulls(rows, pa.int64())
    if not own.null_count:
        return own
    if field == SEQUENCE_NUMBER:
        return pc.fill_null(own, pa.scalar(file.max_sequence, pa.int64()))
    if file.first_row_id is None:
        raise CorruptTableError(
            f"The data file {file.path} has rows without an id: neither the file nor its manifest entry gives one. "
            "Leave out the column _ROW_ID."
        )
    return pc.coalesce(own, pa.array(np.arange(rows) + (file.first_row_id + start), pa.int64()))
