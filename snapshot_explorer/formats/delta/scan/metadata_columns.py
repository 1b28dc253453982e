"""Row ids and commit versions of rows: metadata columns, returned when requested.

Source: delta PROTOCOL.md, "Row Tracking", "Reader Requirements for Row Tracking".
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.formats.delta.files.data_files import DeltaDataFile
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, DeltaField, arrow_field
from snapshot_explorer.formats.delta.metadata.records import Metadata
from snapshot_explorer.formats.delta.metadata.schema import schema_of
from snapshot_explorer.formats.delta.scan.plans import RowTracking
from snapshot_explorer.formats.settings import parse_flag

ROW_ID = DeltaField(name="_row_id", type=DeltaDataType(root="long"), stored="_row_id")
ROW_COMMIT_VERSION = DeltaField(
    name="_row_commit_version", type=DeltaDataType(root="long"), stored="_row_commit_version"
)
HIDDEN = (ROW_ID, ROW_COMMIT_VERSION)


def row_tracking(metadata: Metadata) -> RowTracking | None:
    """Return the columns of row ids; None if the table does not track rows."""
    options = metadata.configuration
    if not parse_flag(options, "delta.enableRowTracking"):
        return None
    return RowTracking(
        id_column=options.get("delta.rowTracking.materializedRowIdColumnName"),
        version_column=options.get("delta.rowTracking.materializedRowCommitVersionColumnName"),
    )


def metadata_fields(names: Sequence[str], tracking: RowTracking | None) -> list[DeltaField]:
    """Return the metadata columns among the names."""
    result = [field for field in HIDDEN if field.name in names]
    if result and tracking is None:
        raise InvalidArgumentError(
            f"The column {result[0].name!r} was requested, but the table does not track its rows: it needs the "
            "property delta.enableRowTracking. Leave the column out."
        )
    return result


def metadata_schema(names: Sequence[str], metadata: Metadata) -> pa.Schema:
    """Return the Arrow schema of the metadata columns among the names."""
    known = {field.name for field in schema_of(metadata).fields}
    requested = [name for name in names if name not in known]
    return pa.schema([arrow_field(field) for field in metadata_fields(requested, row_tracking(metadata))])


def stored_columns(fields: Sequence[DeltaField], tracking: RowTracking | None) -> list[tuple[DeltaField, DeltaField]]:
    """Return the metadata columns that data files may store, each with the storing column."""
    names = {} if tracking is None else {ROW_ID: tracking.id_column, ROW_COMMIT_VERSION: tracking.version_column}
    return [
        (field, DeltaField(name=name, type=field.type, stored=name)) for field in fields if (name := names.get(field))
    ]


def values(field: DeltaField, own: pa.Array | None, file: DeltaDataFile, start: int, rows: int) -> pa.Array:
    """Return a metadata column for rows of a file.

    A stored value takes precedence. Otherwise a row's id follows from its position in the file, and its version is the
    version of the commit that added the file.

    Args:
        field: One of `HIDDEN`.
        own: The stored column; None if the file has none.
        start: The position of the first row in the file.
    """
    own = pa.nulls(rows, pa.int64()) if own is None else own
    if not own.null_count:
        return own
    base = file.base_row_id if field == ROW_ID else file.commit_version
    if base is None:
        raise CorruptTableError(
            f"The data file {file.path} has rows without {field.name}: neither the file nor its add action has one. "
            "Leave the column out."
        )
    if field == ROW_ID:
        return pc.coalesce(own, pa.array(np.arange(rows) + (base + start), pa.int64()))
    return pc.fill_null(own, pa.scalar(base, pa.int64()))
