"""Under which schema changes are told, and which ranges of versions cannot be told under one.

Source: delta PROTOCOL.md, "Change Data Files"; delta CDCReader.scala, getBatchSchemaModeForTable,
checkBatchCdfReadSchemaIncompatibility.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.formats.delta.changes.events import HIDDEN, ROW_KIND
from snapshot_explorer.formats.delta.log.data_types import DataType, Field, is_widening
from snapshot_explorer.formats.delta.log.features import check_readable
from snapshot_explorer.formats.delta.log.log import Log
from snapshot_explorer.formats.delta.log.records import Actions, Metadata, Protocol
from snapshot_explorer.formats.delta.log.schema import Schema, mapping_mode

RECORDED = ("delta.enableChangeDataFeed", "delta.enableChangeDataCapture")
"""The properties by which writers record changes, the new name and the old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """How a table is defined from a version on."""

    version: int
    """The version."""
    protocol: Protocol
    """In force from there on."""
    metadata: Metadata
    """In force from there on."""


def reading_version(log: Log, start: int, end: int) -> int:
    """Return the version under whose schema the changes of a range are told.

    That is the newest one; but where columns are mapped at the start, the end or the newest version, it is the end.
    """
    newest = log.versions()[-1]
    for version in sorted({start, end, newest}):
        metadata = log.protocol_and_metadata(version)[1]
        if mapping_mode(metadata) != "none":
            return end
    return newest


def definitions(log: Log, start: int, actions: Actions) -> list[Definition]:
    """Return how a table was defined at the first version of a range, and at each that redefined it.

    Args:
        log: The table's log.
        start: The first version.
        actions: What the versions did.
    """
    protocol, metadata = log.protocol_and_metadata(start)
    found = [Definition(version=start, protocol=protocol, metadata=metadata)]
    for version in sorted({*actions.protocols, *actions.metadatas}):
        if version > start:
            protocol = actions.protocols.get(version, protocol)
            metadata = actions.metadatas.get(version, metadata)
            found.append(Definition(version=version, protocol=protocol, metadata=metadata))
    return found


def check_recorded(defined: Sequence[Definition]) -> None:
    """Refuse a range in which changes were not recorded all along.

    Raises:
        InvalidArgumentError: They were not, from a version on that the message names.
    """
    for one in defined:
        if not any(one.metadata.configuration.get(name, "").strip().lower() == "true" for name in RECORDED):
            raise InvalidArgumentError(
                f"Version {one.version} did not record its changes: {RECORDED[0]} is not true there "
                "(DELTA_MISSING_CHANGE_DATA). Begin at a version after it was set, or leave mode='changelog' out: then "
                "what was not recorded is derived from files."
            )


def check_schemas(defined: Sequence[Definition], schema: Schema, reading: int) -> None:
    """Refuse a range of versions whose rows cannot be told under one schema.

    Columns may have been added, and widened; any other change is refused.

    Args:
        defined: How the table was defined in the range.
        schema: What the rows are told under.
        reading: The version that it is of.

    Raises:
        UnsupportedFeatureError: The message names the version and the column, or a feature that is not read.
    """
    check_names(schema)
    for one in defined:
        older = check_readable(one.protocol, one.metadata)
        what = _lost(older.fields, schema.fields, is_mapped=schema.mode != "none")
        if what is None and _stored(older) != _stored(schema):
            what = "the partition columns are others"
        if what is not None:
            raise UnsupportedFeatureError(
                f"The changes from version {one.version} on cannot be told under the schema of version {reading} "
                f"(DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE): {what}. Begin after that change; changelog() of "
                "a snapshot tells of one version under its own schema."
            )


def check_names(schema: Schema) -> None:
    """Refuse a table with a column that is called as what tells of a change.

    Raises:
        UnsupportedFeatureError: The message names the column.
    """
    names = {field.name for field in schema.fields}
    taken = [name for name in (ROW_KIND, *HIDDEN.names[:1]) if name in names]
    if taken:
        raise UnsupportedFeatureError(
            f"The table has a column of its own called {taken[0]!r}, which is what the kind of a change is called; its "
            "changes are not read. changes() shows the files."
        )


def _stored(schema: Schema) -> list[str]:
    return [field.stored for field in schema.partition_fields]


def _lost(before: Sequence[Field], after: Sequence[Field], *, is_mapped: bool, prefix: str = "") -> str | None:
    """Return what became of the first column that the later schema has not, or has as another one."""
    known: Mapping[object, Field] = {_key(field, is_mapped=is_mapped): field for field in after}
    for field in before:
        name = f"{prefix}{field.name}"
        now = known.get(_key(field, is_mapped=is_mapped))
        if now is None:
            return f"the column {name} was dropped or renamed"
        if now.name.lower() != field.name.lower():
            return f"the column {name} was renamed to {now.name}"
        what = _changed(field.type, now.type, name, is_mapped=is_mapped)
        if what is not None:
            return what
    return None


def _key(field: Field, *, is_mapped: bool) -> object:
    return field.stored if is_mapped else field.name.lower()


def _changed(before: DataType, after: DataType, name: str, *, is_mapped: bool) -> str | None:
    if before.root == after.root == "struct":
        return _lost(before.fields, after.fields, is_mapped=is_mapped, prefix=f"{name}.")
    if before.root == after.root and before.root in ("array", "map"):
        pairs = [(before.key, after.key), (before.element, after.element)]
        found = (_changed(old, new, name, is_mapped=is_mapped) for old, new in pairs if old and new)
        return next((what for what in found if what is not None), None)
    return None if is_widening(before, after) else f"the type of the column {name} is another"
