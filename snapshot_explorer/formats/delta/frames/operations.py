"""The kind of commit of each operation, in words common to all formats.

Source: delta DeltaOperations.scala; delta-rs `DeltaOperation`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from snapshot_explorer.core.records import Kind

KINDS: Mapping[str, Kind] = {
    "WRITE": "append",
    "STREAMING UPDATE": "append",
    "COPY INTO": "append",
    "CONVERT": "append",
    "CLONE": "append",
    "CREATE TABLE AS SELECT": "append",
    "CREATE OR REPLACE TABLE AS SELECT": "append",
    "REPLACE TABLE AS SELECT": "overwrite",
    "REPLACE TABLE": "overwrite",
    "CREATE OR REPLACE TABLE": "schema",
    "CREATE TABLE": "schema",
    "DELETE": "delete",
    "TRUNCATE": "delete",
    "UPDATE": "update",
    "MERGE": "merge",
    "OPTIMIZE": "compact",
    "REORG": "compact",
    "RESTORE": "restore",
    "COMPUTE STATS": "analyze",
    "VACUUM START": "maintenance",
    "VACUUM END": "maintenance",
    "FSCK": "maintenance",
    "OPTIMIZE CHECKPOINT": "maintenance",
    "REORG TABLE UPGRADE UNIFORM": "maintenance",
    "REMOVE COLUMN MAPPING": "maintenance",
    "ROW TRACKING BACKFILL": "maintenance",
    "ROW TRACKING UNBACKFILL": "maintenance",
    "DOMAIN METADATA CLEANUP": "maintenance",
    "Deletion Vector Tombstones": "maintenance",
    "SYNC IDENTITY": "maintenance",
    "DLT REFRESH": "overwrite",
    "DLT SETUP": "schema",
    "SET TBLPROPERTIES": "schema",
    "UNSET TBLPROPERTIES": "schema",
    "ADD COLUMN": "schema",
    "ADD COLUMNS": "schema",
    "DROP COLUMNS": "schema",
    "RENAME COLUMN": "schema",
    "CHANGE COLUMN": "schema",
    "CHANGE COLUMNS": "schema",
    "REPLACE COLUMNS": "schema",
    "UPDATE SCHEMA": "schema",
    "UPDATE FIELD METADATA": "schema",
    "UPDATE TABLE METADATA": "schema",
    "ADD CONSTRAINT": "schema",
    "DROP CONSTRAINT": "schema",
    "UPGRADE PROTOCOL": "schema",
    "ADD FEATURE": "schema",
    "DROP FEATURE": "schema",
    "CLUSTER BY": "schema",
}
_INFERRED = frozenset(("Manual Update", "Empty Commit"))
"""Operations that do not describe the change."""
_REPLACING = frozenset(("CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT", "CLONE"))
"""Operations that overwrite a table if there is one."""
_OVERWRITING = frozenset(("Overwrite", "Complete"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a commit on the table."""

    added_files: int
    removed_files: int
    rearranged: bool
    """Whether there are file actions, and none of them changes data."""
    redefined: bool
    """Whether the commit sets metadata, the protocol or the metadata of a domain."""


def kind_of(operation: str | None, parameters: Mapping[str, object], effect: Effect) -> Kind:
    """Return the kind of a commit.

    Args:
        operation: The operation that the writer recorded; None if missing, then the kind is derived from the actions.
    """
    if operation is None or operation in _INFERRED:
        return _infer_kind(effect)
    kind = KINDS.get(operation, "other")
    if operation in ("WRITE", "STREAMING UPDATE"):
        if effect.rearranged:
            return _rearranging(effect)
        chosen = parameters.get("mode" if operation == "WRITE" else "outputMode")
        return "overwrite" if isinstance(chosen, str) and chosen in _OVERWRITING else kind
    if operation in _REPLACING and effect.removed_files:
        return "overwrite"
    return kind


def _infer_kind(effect: Effect) -> Kind:
    if effect.rearranged:
        return _rearranging(effect)
    if effect.added_files and effect.removed_files:
        return "overwrite"
    if effect.added_files:
        return "append"
    if effect.removed_files:
        return "delete"
    return "schema" if effect.redefined else "other"


def _rearranging(effect: Effect) -> Kind:
    """Return the kind of a commit that changes no row: files, or only their metadata, were rewritten."""
    return "compact" if effect.added_files and effect.removed_files else "maintenance"
