"""The metadata file of a table: one JSON document with every snapshot, schema, spec and ref that still exists."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import orjson

from snapshot_explorer.core.errors import CorruptTableError, LimitError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.metadata.json_fields import JsonObject, wrong

MAIN = "main"
"""The branch that a table has from its first commit on."""
_UNCOUNTED = ("variant", "unknown")
"""Types of columns whose values are not counted."""
_GZIP = b"\x1f\x8b"
_MAX_REFS = 100_000
_MAX_SNAPSHOTS = 1_000_000
_FIRST_PARTITION_FIELD = 1_000
"""The id of the first partition field of each spec, where format 1 records none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSnapshot:
    """A snapshot in a metadata file."""

    id: int
    parent_id: int | None
    """The parent snapshot; None for the first snapshot, and for the first one after a replacement of the table."""
    sequence_number: int
    """The number of its commit in the table; 0 in format 1."""
    timestamp_ms: int
    """The writer's clock."""
    manifest_list: str | None
    """The recorded path of its manifest list; None if it names its manifests itself."""
    manifests: tuple[str, ...]
    """The recorded paths of its manifests if it has no manifest list: very old tables of format 1."""
    summary: Mapping[str, str]
    """The writer's summary of the commit; empty without one."""
    schema_id: int | None
    """The table's schema when the snapshot was created; None if not recorded."""
    key_id: str | None
    raw: Mapping[str, Any] = field(repr=False)
    """The JSON object, unknown fields included."""


class Snapshots(Mapping[int, IcebergSnapshot]):
    """Snapshots by id, in the order recorded. Immutable.

    There may be a million, so fields are stored as columns, and a record is created when it is looked up.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = columns
        self._indices = {item: index for index, item in enumerate(columns["id"])}

    @classmethod
    def of(cls, snapshots: Iterable[IcebergSnapshot]) -> "Snapshots":
        """Return some snapshots."""
        rows = list(snapshots)
        return cls({name: [getattr(row, name) for row in rows] for name in _FIELDS})

    @cached_property
    def parents(self) -> Mapping[int, int | None]:
        """Return the parent of each snapshot, by id."""
        return dict(zip(self._columns["id"], self._columns["parent_id"], strict=True))

    @cached_property
    def numbers(self) -> Mapping[int, int]:
        """Return the sequence number of each snapshot, by id."""
        return dict(zip(self._columns["id"], self._columns["sequence_number"], strict=True))

    def every(self, name: str) -> Sequence[Any]:
        """Return a field of all snapshots, in the order recorded."""
        return self._columns[name]

    def column(self, name: str, ids: Iterable[int]) -> list[Any]:
        """Return a field of some snapshots, in the order of the ids."""
        return self.columns((name,), ids)[0]

    def columns(self, names: Sequence[str], ids: Iterable[int]) -> list[list[Any]]:
        """Return some fields of some snapshots, in the order of the ids."""
        requested, recorded = list(ids), self._columns["id"]
        for step in (1, -1):
            if requested == recorded[::step]:  # mostly all of them, newest first
                return [list(self._columns[name][::step]) for name in names]
        indices = list(map(self._indices.__getitem__, requested))
        return [list(map(self._columns[name].__getitem__, indices)) for name in names]

    def __getitem__(self, snapshot_id: int) -> IcebergSnapshot:
        index = self._indices[snapshot_id]
        return IcebergSnapshot(**{name: column[index] for name, column in self._columns.items()})

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._indices

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


_FIELDS = tuple(field.name for field in fields(IcebergSnapshot))


class SnapshotLog(NamedTuple):
    """When the current snapshot of main changed, oldest first. Columns, because there may be a million rows."""

    times: Sequence[int] = ()
    """When it changed, in milliseconds."""
    ids: Sequence[int] = ()
    """The new current snapshot, which may have been removed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRef:
    """A branch or a tag."""

    name: str
    snapshot_id: int
    """The snapshot that it refers to; for a branch the newest one."""
    is_branch: bool
    """Whether it is a branch, otherwise a tag."""
    min_snapshots_to_keep: int | None
    """The minimum number of snapshots of a branch that expiry keeps; None for the table's setting."""
    max_snapshot_age_ms: int | None
    """The age up to which expiry keeps snapshots of a branch; None for the table's setting."""
    max_ref_age_ms: int | None
    """The age of its snapshot from which expiry removes the ref; None for the table's setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """A metadata file, checked. The files that it names may not exist."""

    path: str
    """The file, below the table's folder."""
    format_version: int
    table_uuid: str | None
    location: str
    """The recorded folder of the table, which may differ from the opened folder."""
    last_sequence_number: int
    """The highest assigned sequence number; 0 in format 1."""
    last_updated_ms: int
    """When the file was written, by the writer's clock."""
    schemas: Mapping[int, Mapping[str, Any]]
    current_schema_id: int
    specs: Mapping[int, Mapping[str, Any]]
    """Partition specs by id. Their fields have ids, in format 1 too."""
    default_spec_id: int
    sort_orders: tuple[Mapping[str, Any], ...]
    default_sort_order_id: int
    properties: Mapping[str, str]
    """The table's properties, which have no history."""
    current_snapshot_id: int | None
    """The newest snapshot of main; None for a table without one."""
    snapshots: Snapshots
    """Snapshots by id, in the order recorded."""
    refs: Mapping[str, SnapshotRef]
    """Branches and tags by name; main is among them if there is a current snapshot."""
    snapshot_log: SnapshotLog
    """When the current snapshot of main changed, and to which one."""
    metadata_log: tuple[tuple[int, str], ...]
    """Earlier metadata files: when they were written, in milliseconds, and their recorded paths."""
    statistics: tuple[Mapping[str, Any], ...]
    partition_statistics: tuple[Mapping[str, Any], ...]

    @property
    def current_schema(self) -> Mapping[str, Any]:
        """Return the current schema."""
        return self.schemas[self.current_schema_id]

    @property
    def counted_columns(self) -> Sequence[int]:
        """Return the ids of the current schema's columns that have one value per row: columns that are not nested.

        A file has as many values of these columns as rows.
        """
        fields = self.current_schema.get("fields")
        return [
            field["id"]
            for field in (fields if isinstance(fields, list) else ())
            if isinstance(field, dict) and isinstance(field.get("type"), str) and field["type"] not in _UNCOUNTED
            if isinstance(field.get("id"), int) and 0 <= field["id"] < 2**31
        ]

    def schema_with(self, number: int | None) -> Mapping[str, Any]:
        """Return the schema with an id; the current schema for None, such as for snapshots without a recorded schema.

        Source: iceberg SnapshotUtil.schemaFor.
        """
        if number is None:
            return self.current_schema
        if number not in self.schemas:
            raise CorruptTableError(
                f"{self.path} is damaged: a snapshot has the schema {number}, which is not among its schemas. Compare "
                "it with a copy of the table, or choose another version."
            )
        return self.schemas[number]

    def without_history(self, kept: Iterable[IcebergSnapshot] = ()) -> "TableMetadata":
        """Return the metadata with only these snapshots, for another process: there may be a million others."""
        return replace(
            self,
            snapshots=Snapshots.of(kept),
            refs={},
            snapshot_log=SnapshotLog(),
            metadata_log=(),
            current_snapshot_id=None,
        )


def parse_table_metadata(content: bytes, path: str, limits: Limits) -> TableMetadata:
    """Return a metadata file, which may be compressed by gzip under any name.

    Source: iceberg specification, "Table Metadata Fields"; TableMetadataParser.fromJson.
    """
    if content[:2] == _GZIP:
        content = _unzip(content, path, limits)
    try:
        raw = json_text.document(content, path, limits)
    except orjson.JSONDecodeError as error:
        raise CorruptTableError(
            f"{path} is not a readable metadata file: {error}. It is cut short or damaged. If a writer is active, try "
            "again; otherwise compare it with a copy of the table, or open another metadata file of it."
        ) from error
    if not isinstance(raw, dict):
        raise wrong(path, "the document", "an object", raw)
    return _parse(JsonObject(raw, path))


def _unzip(content: bytes, path: str, limits: Limits) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(content, limits.value_bytes + 1)
    except zlib.error as error:
        raise CorruptTableError(
            f"{path} cannot be decompressed: {error}. It is damaged; compare it with a copy of the table."
        ) from error
    limits.check_value(path, len(content), len(text), "one JSON document")
    if not stream.eof:
        raise CorruptTableError(f"{path} is cut short. Compare it with a copy of the table.")
    return text


def _parse(top: JsonObject) -> TableMetadata:
    version = top.integer("format-version")
    _check_format_version(version, top.path)
    schemas, current_schema_id = _schemas(top)
    current = top.optional_integer("current-snapshot-id")
    current = None if current == -1 else current
    snapshots = _snapshots(top)
    return TableMetadata(
        path=top.path,
        format_version=version,
        table_uuid=top.optional_text("table-uuid"),
        location=top.text("location"),
        last_sequence_number=top.integer("last-sequence-number", 0),
        last_updated_ms=top.integer("last-updated-ms", 0),
        schemas=schemas,
        current_schema_id=current_schema_id,
        specs=_specs(top),
        default_spec_id=top.integer("default-spec-id", 0),
        sort_orders=tuple(order.raw for order in top.objects("sort-orders")),
        default_sort_order_id=top.integer("default-sort-order-id", 0),
        properties=top.texts("properties"),
        current_snapshot_id=_check_current(top, current, snapshots),
        snapshots=snapshots,
        refs=_refs(top, current, snapshots),
        snapshot_log=_snapshot_log(top),
        metadata_log=tuple(
            (item.integer("timestamp-ms"), item.text("metadata-file")) for item in top.objects("metadata-log")
        ),
        statistics=tuple(item.raw for item in top.objects("statistics")),
        partition_statistics=tuple(item.raw for item in top.objects("partition-statistics")),
    )


def _check_format_version(version: int, path: str) -> None:
    if version not in (1, 2, 3):
        raise refusal(features.OTHER_FORMAT_VERSIONS, path=path, version=version)


def _schemas(top: JsonObject) -> tuple[Mapping[int, Mapping[str, Any]], int]:
    """Return the schemas by id, and the id of the current one.

    Format 1 may have a single `schema`, which counts only where `schemas` is absent.
    """
    if top.raw.get("schemas") is None:
        raw = top.raw.get("schema")
        if not isinstance(raw, dict):
            raise wrong(top.path, "schema", "an object", raw)
        only = JsonObject(raw, top.path, "schema").integer("schema-id", 0)
        return {only: raw}, only
    schemas = {item.integer("schema-id", 0): item.raw for item in top.objects("schemas")}
    current = top.integer("current-schema-id")
    if current not in schemas:
        raise CorruptTableError(
            f"{top.path} is damaged: current-schema-id is {current}, which is not among its schemas. Compare it with "
            "a copy of the table."
        )
    return schemas, current


def _specs(top: JsonObject) -> Mapping[int, Mapping[str, Any]]:
    """Return the partition specs by id, with ids for all their fields.

    Source: iceberg specification, "Partition Evolution", for the ids of format 1.
    """
    if top.raw.get("partition-specs") is None:
        return {0: {"spec-id": 0, "fields": _with_ids(top, "partition-spec")}}
    return {
        item.integer("spec-id", 0): {**item.raw, "fields": _with_ids(item, "fields")}
        for item in top.objects("partition-specs")
    }


def _with_ids(where: JsonObject, name: str) -> list[Mapping[str, Any]]:
    return [
        {**item.raw, "field-id": item.integer("field-id", _FIRST_PARTITION_FIELD + index)}
        for index, item in enumerate(where.objects(name))
    ]


def _snapshots(top: JsonObject) -> Snapshots:
    _check_count(top, "snapshots", _MAX_SNAPSHOTS)
    raws = top.list("snapshots")
    columns = _plain_columns(raws)
    plain = None if columns is None else Snapshots(columns)
    if plain is not None and len(plain) == len(raws):
        return plain
    snapshots: dict[int, IcebergSnapshot] = {}
    for item in top.objects("snapshots"):
        snapshot = _snapshot(item)
        if snapshot.id in snapshots:
            raise CorruptTableError(
                f"{top.path} is damaged: it has two snapshots with the id {snapshot.id}. Compare it with a copy of "
                "the table."
            )
        snapshots[snapshot.id] = snapshot
    return Snapshots.of(snapshots.values())


def _plain_columns(raws: Sequence[Any]) -> dict[str, Sequence[Any]] | None:
    """Return the fields of snapshots; None if one of them is unusual or damaged, which `_snapshot` examines."""
    if not {dict}.issuperset(map(type, raws)):
        return None
    required = [_plain_integers(raws, name) for name in ("snapshot-id", "timestamp-ms")]
    names = ("sequence-number", "parent-snapshot-id", "schema-id")
    optional = [_plain_integers(raws, name, is_required=False) for name in names]
    if None in required or None in optional:
        return None
    (ids, times), (numbers, parents, schema_ids) = required, optional
    numbers = [number or 0 for number in numbers or ()]
    lists, keys, summaries = ([raw.get(name) for raw in raws] for name in ("manifest-list", "key-id", "summary"))
    is_plain = (
        {str}.issuperset(map(type, lists))
        and {type(None)}.issuperset(map(type, keys))
        and {dict}.issuperset(map(type, summaries))
        and {str}.issuperset(map(type, chain.from_iterable(map(dict.values, summaries))))
    )
    if not is_plain:
        return None
    values = (ids, parents, numbers, times, lists, [()] * len(raws), summaries, schema_ids, keys, raws)
    return {name: column or () for name, column in zip(_FIELDS, values, strict=True)}


def _plain_integers(raws: Sequence[Any], name: str, *, is_required: bool = True) -> list[int | None] | None:
    """Return a field of JSON objects; None if one is not an integer of 64 bits, or a required one is missing."""
    values = [raw.get(name) for raw in raws]
    types = {int} if is_required else {int, type(None)}
    if not types.issuperset(map(type, values)):
        return None
    # The parser returns no integer below the minimum of 64 bits, but some above the maximum.
    known = values if is_required or None not in values else filter(None, values)
    return values if max(known, default=0) < 2**63 else None


def _snapshot_log(top: JsonObject) -> SnapshotLog:
    raws = top.list("snapshot-log")
    if {dict}.issuperset(map(type, raws)):
        times, ids = (_plain_integers(raws, name) for name in ("timestamp-ms", "snapshot-id"))
        if times is not None and ids is not None:
            return SnapshotLog(times, ids)  # type: ignore[arg-type]  # none of them is None
    rows = list(top.objects("snapshot-log"))
    return SnapshotLog([row.integer("timestamp-ms") for row in rows], [row.integer("snapshot-id") for row in rows])


def _snapshot(raw: JsonObject) -> IcebergSnapshot:
    manifest_list = raw.optional_text("manifest-list")
    manifests = raw.list("manifests") if manifest_list is None else []
    if not all(isinstance(path, str) for path in manifests):
        raise wrong(raw.path, raw.named("manifests"), "a list of paths", manifests)
    return IcebergSnapshot(
        id=raw.integer("snapshot-id"),
        parent_id=raw.optional_integer("parent-snapshot-id"),
        sequence_number=raw.integer("sequence-number", 0),
        timestamp_ms=raw.integer("timestamp-ms"),
        manifest_list=manifest_list,
        manifests=tuple(manifests),
        summary=raw.texts("summary"),
        schema_id=raw.optional_integer("schema-id"),
        key_id=raw.optional_text("key-id"),
        raw=raw.raw,
    )


def _refs(top: JsonObject, current: int | None, snapshots: Mapping[int, IcebergSnapshot]) -> Mapping[str, SnapshotRef]:
    """Return branches and tags, main included.

    Source: iceberg specification, "Snapshot References"; TableMetadataParser.refsFromJson.
    """
    _check_count(top, "refs", _MAX_REFS)
    refs = {name: _ref(name, item) for name, item in top.members("refs")}
    for name, ref in refs.items():
        if ref.snapshot_id not in snapshots:
            raise CorruptTableError(
                f"{top.path} is damaged: the ref {name!r} names the snapshot {ref.snapshot_id}, which is not among its "
                "snapshots. Compare it with a copy of the table."
            )
    main = refs.get(MAIN)
    if main is not None and main.snapshot_id != current:
        raise CorruptTableError(
            f"{top.path} is damaged: the branch main is at the snapshot {main.snapshot_id}, but current-snapshot-id is "
            f"{current}. Compare it with a copy of the table."
        )
    if main is None and current is not None:
        refs[MAIN] = _default_main(current)
    return refs


def _default_main(current: int) -> SnapshotRef:
    return SnapshotRef(
        name=MAIN,
        snapshot_id=current,
        is_branch=True,
        min_snapshots_to_keep=None,
        max_snapshot_age_ms=None,
        max_ref_age_ms=None,
    )


def _ref(name: str, raw: JsonObject) -> SnapshotRef:
    ref_type = raw.text("type").lower()
    if ref_type not in ("branch", "tag"):
        raise wrong(raw.path, raw.named("type"), "branch or tag", ref_type)
    return SnapshotRef(
        name=name,
        snapshot_id=raw.integer("snapshot-id"),
        is_branch=ref_type == "branch",
        min_snapshots_to_keep=raw.optional_integer("min-snapshots-to-keep"),
        max_snapshot_age_ms=raw.optional_integer("max-snapshot-age-ms"),
        max_ref_age_ms=raw.optional_integer("max-ref-age-ms"),
    )


def _check_current(top: JsonObject, current: int | None, snapshots: Mapping[int, IcebergSnapshot]) -> int | None:
    if current is not None and current not in snapshots:
        raise CorruptTableError(
            f"{top.path} is damaged: current-snapshot-id is {current}, which is not among its snapshots. Compare it "
            "with a copy of the table, or open another metadata file of it."
        )
    return current


def _check_count(top: JsonObject, name: str, limit: int) -> None:
    value = top.raw.get(name)
    if isinstance(value, list | dict) and len(value) > limit:
        raise LimitError(
            f"{top.path} has {len(value):,} {name}; the limit is {limit:,}. The file may be crafted to exhaust memory."
        )
