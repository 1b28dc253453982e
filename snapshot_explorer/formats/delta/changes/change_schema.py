"""The schema of changed rows, and the check that one schema fits a range of versions.

Source: delta PROTOCOL.md, "Change Data Files"; delta CDCReader.scala, getBatchSchemaModeForTable,
checkBatchCdfReadSchemaIncompatibility.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.changes.events import HIDDEN
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, DeltaField, is_widening
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import Actions, Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema, mapping_mode
from snapshot_explorer.formats.delta.metadata.supported import check_readable
from snapshot_explorer.formats.features import CHANGE_COLUMN_CONFLICT, refusal
from snapshot_explorer.formats.settings import flag
from snapshot_explorer.model import ROW_KIND

RECORDED = ("delta.enableChangeDataFeed", "delta.enableChangeDataCapture")
"""The properties that make writers record changes, new name first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Protocol and metadata in force from a version on."""

    version: int
    protocol: Protocol
    metadata: Metadata


def reading_version(log: DeltaLog, start: int, end: int) -> int:
    """Return the version whose schema the changes of a range are read under.

    That is the newest version; if columns are mapped at the start, at the end or in the newest version, it is the end.
    """
    newest = log.versions()[-1]
    for version in sorted({start, end, newest}):
        metadata = log.protocol_and_metadata(version)[1]
        if mapping_mode(metadata) != "none":
            return end
    return newest


def definitions(log: DeltaLog, start: int, actions: Actions) -> list[Definition]:
    """Return the definition at the first version of a range, and at each version that changed it."""
    protocol, metadata = log.protocol_and_metadata(start)
    result = [Definition(version=start, protocol=protocol, metadata=metadata)]
    for version in sorted({*actions.protocols, *actions.metadatas}):
        if version > start:
            protocol = actions.protocols.get(version, protocol)
            metadata = actions.metadatas.get(version, metadata)
            result.append(Definition(version=version, protocol=protocol, metadata=metadata))
    return result


def check_recorded(defined: Sequence[Definition]) -> None:
    """Check that all versions of a range recorded their changes."""
    for item in defined:
        if not any(flag(item.metadata.configuration, name) for name in RECORDED):
            raise InvalidArgumentError(
                f"Version {item.version} did not record its changes: {RECORDED[0]} is not true there "
                "(DELTA_MISSING_CHANGE_DATA). Start at a version after it was set, or leave out mode='changelog': "
                "changes that were not recorded are then derived from files."
            )


def check_schemas(defined: Sequence[Definition], schema: DeltaSchema, reading: int) -> None:
    """Check that the rows of a range can be read under one schema.

    Columns may have been added or widened; any other change is refused.
    """
    check_names(schema)
    for item in defined:
        older = check_readable(item.protocol, item.metadata)
        problem = _incompatible_column(older.fields, schema.fields, is_mapped=schema.mode != "none")
        if problem is None and _partition_names(older) != _partition_names(schema):
            problem = "the partition columns are others"
        if problem is not None:
            raise refusal(features.CHANGES_ACROSS_SCHEMAS, version=item.version, reading=reading, what=problem)


def check_names(schema: DeltaSchema) -> None:
    """Refuse a table with a column that has the name of a change column."""
    names = {field.name for field in schema.fields}
    taken = [name for name in (ROW_KIND, *HIDDEN.names[:1]) if name in names]
    if taken:
        raise refusal(CHANGE_COLUMN_CONFLICT, column=taken[0])


def _partition_names(schema: DeltaSchema) -> list[str]:
    return [field.stored for field in schema.partition_fields]


def _incompatible_column(
    before: Sequence[DeltaField], after: Sequence[DeltaField], *, is_mapped: bool, prefix: str = ""
) -> str | None:
    """Return what happened to the first column that the later schema lacks or changes."""
    known: Mapping[object, DeltaField] = {_key(field, is_mapped=is_mapped): field for field in after}
    for field in before:
        name = f"{prefix}{field.name}"
        now = known.get(_key(field, is_mapped=is_mapped))
        if now is None:
            return f"the column {name} was dropped or renamed"
        if now.name.lower() != field.name.lower():
            return f"the column {name} was renamed to {now.name}"
        problem = _type_change(field.type, now.type, name, is_mapped=is_mapped)
        if problem is not None:
            return problem
    return None


def _key(field: DeltaField, *, is_mapped: bool) -> object:
    return field.stored if is_mapped else field.name.lower()


def _type_change(before: DeltaDataType, after: DeltaDataType, name: str, *, is_mapped: bool) -> str | None:
    if before.root == after.root == "struct":
        return _incompatible_column(before.fields, after.fields, is_mapped=is_mapped, prefix=f"{name}.")
    if before.root == after.root and before.root in ("array", "map"):
        pairs = [(before.key, after.key), (before.element, after.element)]
        changes = (_type_change(old, new, name, is_mapped=is_mapped) for old, new in pairs if old and new)
        return next((problem for problem in changes if problem is not None), None)
    return None if is_widening(before, after) else f"the type of the column {name} is another"
