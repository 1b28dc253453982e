"""Row ids and sequence numbers: hidden columns of tables with row tracking, read only if requested by name."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField

ROW_ID = PaimonField(id=2_147_483_642, name="_ROW_ID", type=PaimonDataType(root="BIGINT"))
SEQUENCE_NUMBER = PaimonField(id=2_147_483_646, name="_SEQUENCE_NUMBER", type=PaimonDataType(root="BIGINT"))
HIDDEN = (ROW_ID, SEQUENCE_NUMBER)
"""The columns that are read only if requested."""


def metadata_fields(names: Sequence[str], *, tracked: bool) -> list[PaimonField]:
    """Return the hidden columns among the names.

    Source: paimon docs, "Row Tracking".
    """
    result = [field for field in HIDDEN if field.name in names]
    if result and not tracked:
        raise InvalidArgumentError(
            f"The column {result[0].name!r} needs row tracking, which the table does not have: it needs the option "
            "row-tracking.enabled, and no primary key. Leave the column out."
        )
    return result


def stored_columns(fields: Sequence[PaimonField], file: PaimonDataFile) -> list[PaimonField]:
    """Return the hidden columns among the fields that the file contains."""
    return [field for field in fields if field in HIDDEN and file.write_columns and field.name in file.write_columns]


def values(field: PaimonField, batch: pa.RecordBatch, file: PaimonDataFile, start: int) -> pa.Array:
    """Return a hidden column for rows of a file.

    Values in the file take precedence. Otherwise a row's id follows from its position in the file, and its sequence
    number is the commit's that wrote the file.

    Args:
        field: One of `HIDDEN`.
        batch: Rows of the file, with the columns from `stored_columns`.
        start: The position of the first row in the file.

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
            f"The data file {file.path} has rows without an id: neither the file nor its manifest entry contains one. "
            "Leave out the column _ROW_ID."
        )
    return pc.coalesce(own, pa.array(np.arange(rows) + (file.first_row_id + start), pa.int64()))
