"""Metadata columns of rows: their file, position, partition spec, and lineage.

Source: iceberg specification, "Reserved Field IDs", "Row Lineage".
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType, IcebergField, arrow_field
from snapshot_explorer.formats.iceberg.scan.plans import IcebergPlan

FILE = IcebergField(id=2_147_483_646, name="_file", type=IcebergDataType(root="string"), required=True)
POSITION = IcebergField(id=2_147_483_645, name="_pos", type=IcebergDataType(root="long"), required=True)
SPEC_ID = IcebergField(id=2_147_483_643, name="_spec_id", type=IcebergDataType(root="int"), required=True)
ROW_ID = IcebergField(id=2_147_483_540, name="_row_id", type=IcebergDataType(root="long"))
LAST_UPDATED = IcebergField(id=2_147_483_539, name="_last_updated_sequence_number", type=IcebergDataType(root="long"))
LINEAGE = (ROW_ID, LAST_UPDATED)
"""The columns of row lineage, which data files may store."""
METADATA_COLUMNS = (FILE, POSITION, SPEC_ID, *LINEAGE)
"""The columns that rows have only when requested."""


def metadata_fields(names: Sequence[str], *, has_row_ids: bool) -> list[IcebergField]:
    """Return the metadata columns among the names."""
    result = [field for field in METADATA_COLUMNS if field.name in names]
    lineage = next((field for field in result if field in LINEAGE), None)
    if lineage is not None and not has_row_ids:
        raise InvalidArgumentError(
            f"The column {lineage.name!r} was requested, but rows have ids only from format version 3 on. Leave the "
            "column out."
        )
    return result


def metadata_schema(names: Sequence[str], *, has_row_ids: bool) -> pa.Schema:
    """Return the Arrow schema of the metadata columns among the names; arguments and errors as `metadata_fields`."""
    return pa.schema([arrow_field(field) for field in metadata_fields(names, has_row_ids=has_row_ids)])


def constants(plan: IcebergPlan, fields: Sequence[IcebergField]) -> dict[int, pa.Scalar]:
    """Return the metadata columns among some that are constant in a data file, by id."""
    result = {}
    for field in fields:
        if field.id == FILE.id:
            result[FILE.id] = pa.scalar(plan.path)
        elif field.id == SPEC_ID.id:
            result[SPEC_ID.id] = pa.scalar(plan.spec_id, pa.int32())
    return result


def values(field: IcebergField, own: pa.Array | None, plan: IcebergPlan, start: int, rows: int) -> pa.Array:
    """Return a metadata column that is not constant, for rows of a data file.

    Values stored in the file take precedence. Otherwise the id of a row follows from its position, and the sequence
    number of its last update is the file's. A file that was written before the table had row ids has neither.

    Args:
        field: `POSITION` or one of `LINEAGE`.
        own: The stored column of `LINEAGE`.
        start: The position of the first row in the file.
    """
    if field == POSITION:
        return pa.array(np.arange(start, start + rows, dtype=np.int64))
    if plan.first_row_id is None or own is None:
        return pa.nulls(rows, pa.int64())
    if not own.null_count:
        return own
    if field == LAST_UPDATED:
        return pc.fill_null(own, pa.scalar(plan.sequence_number, pa.int64()))
    return pc.coalesce(own, pa.array(np.arange(rows, dtype=np.int64) + (plan.first_row_id + start)))
