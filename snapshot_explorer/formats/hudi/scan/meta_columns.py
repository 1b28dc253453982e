"""The columns that Hudi adds to every row: `_hoodie_commit_time` and others."""

from collections.abc import Sequence

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.types import HudiField, HudiType, arrow_field

COMMIT_TIME = "_hoodie_commit_time"
RECORD_KEY = "_hoodie_record_key"
OPERATION = "_hoodie_operation"
IS_DELETED = "_hoodie_is_deleted"
"""A column of the user that marks deleted records."""
NAMES = (
    COMMIT_TIME,
    "_hoodie_commit_seqno",
    RECORD_KEY,
    "_hoodie_partition_path",
    "_hoodie_file_name",
    OPERATION,
)
FIELDS = {name: HudiField(name=name, type=HudiType(root="string"), nullable=True) for name in NAMES}
"""The columns by name."""


def metadata_columns(names: Sequence[str], config: TableConfig) -> pa.Schema:
    """Return the metadata columns among the names."""
    requested = [FIELDS[name] for name in names if name in FIELDS]
    if requested and not config.has_meta_fields:
        raise InvalidArgumentError(
            f"The table does not store {requested[0].name}: hoodie.populate.meta.fields is false. Leave it out."
        )
    return pa.schema([arrow_field(field) for field in requested])
