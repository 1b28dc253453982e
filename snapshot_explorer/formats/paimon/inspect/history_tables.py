"""Paimon's system tables of a whole table: snapshots, schemas, options, tags, branches, consumers, aggregates.

Each function returns the result of `SELECT * FROM t$NAME`, without Paimon. The columns are in `schemas`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError, StorageError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.paimon.inspect.schemas import schema_of
from snapshot_explorer.formats.paimon.inspect.texts import format_iso_duration, java_type
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import Layout, number_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, checked_schema, parse_schema
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot, read_snapshots
from snapshot_explorer.storage import Storage


def snapshots(storage: Storage, layout: Layout, history: PaimonHistory) -> pa.Table:
    """Return a row per snapshot file, ascending. A listing, the hint, and a small file each.

    Tags and long-lived changelogs are not included. The watermark is in milliseconds, as stored.
    """
    newest, numbers = history.newest().latest, _numbers(storage, layout, "snapshot")
    if newest is not None and newest not in numbers:
        raise StorageError(
            f"The listing of {layout.folder('snapshot')} in {storage.root} lacks snapshot {newest}, the newest one: "
            "the listing is incomplete. Try again."
        )
    snapshot_records = read_snapshots(storage, [layout.numbered("snapshot", number) for number in numbers])
    if newest is not None and snapshot_records[numbers.index(newest)] is None:
        raise StorageError(
            f"{layout.numbered('snapshot', newest)} in {storage.root}, the newest snapshot, vanished while it was "
            "read: it was rolled back or deleted. Try again."
        )
    return _rows("snapshots", [_snapshot(item) for item in snapshot_records if item])


def _snapshot(snapshot: PaimonSnapshot) -> dict[str, Any]:
    return {
        "snapshot_id": snapshot.id,
        "schema_id": snapshot.schema_id,
        "commit_user": snapshot.user,
        "commit_identifier": snapshot.identifier,
        "commit_kind": snapshot.kind,
        "commit_time": _wall(snapshot.committed_at),
        "base_manifest_list": snapshot.base_manifest_list,
        "delta_manifest_list": snapshot.delta_manifest_list,
        "changelog_manifest_list": snapshot.changelog_manifest_list,
        "total_record_count": snapshot.total_rows,
        "delta_record_count": snapshot.delta_rows,
        "changelog_record_count": snapshot.changelog_rows,
        "watermark": orjson.loads(snapshot.stored).get("watermark"),
        "next_row_id": snapshot.next_row_id,
        "operation": snapshot.operation,
        "writer_version": snapshot.writer_version,
    }


def schemas(storage: Storage, layout: Layout) -> pa.Table:
    """Return a row per schema file, ascending; Paimon's order is undefined. A listing, and a small file each."""
    paths = [layout.numbered("schema", number) for number in _numbers(storage, layout, "schema")]
    contents = zip(paths, storage.read_present(paths), strict=True)
    return _rows("schemas", [_schema(path, content) for path, content in contents if content is not None])


def _schema(path: str, content: bytes) -> dict[str, Any]:
    number = int(path.rpartition("-")[2])
    schema, raw = checked_schema(parse_schema(content, path), number, path), orjson.loads(content)
    millis = raw.get("timeMillis") or 0
    try:
        updated = _wall(datetime.fromtimestamp(millis / 1_000, UTC))
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise CorruptTableError(
            f"{path} has no readable time: timeMillis is {millis!r}. Compare it with a copy of the table."
        ) from error
    return {
        "schema_id": schema.id,
        "fields": json_text.dumps(raw["fields"]),
        "partition_keys": json_text.dumps(schema.partition_keys),
        "primary_keys": json_text.dumps(schema.primary_keys),
        "options": json_text.dumps(schema.options),
        "comment": schema.comment,
        "update_time": updated,
    }


def options(newest: PaimonSchema) -> pa.Table:
    """Return a row per option of the newest schema, in its order."""
    return _rows("options", [{"key": key, "value": value} for key, value in newest.options.items()])


def tags(history: PaimonHistory) -> pa.Table:
    """Return a row per tag, sorted by name; create_time is the writer's local time. A small file per tag."""
    return _rows(
        "tags",
        [
            {
                "tag_name": name,
                "snapshot_id": tag.id,
                "schema_id": tag.schema_id,
                "commit_time": _wall(tag.committed_at),
                "record_count": tag.total_rows,
                "create_time": _millis(tag.tag_created_at),
                "time_retained": format_iso_duration(tag.tag_retained),
            }
            for name, tag in history.tags().items()
        ],
    )


def branches(storage: Storage) -> pa.Table:
    """Return a row per branch, sorted. create_time is its folder's time, null if the storage records none."""
    rows = [
        {
            "branch_name": entry.name.removeprefix("branch-"),
            "create_time": None if entry.modified is None else _wall(entry.modified),
        }
        for entry in storage.list("branch")
        if entry.is_folder and entry.name.startswith("branch-")
    ]
    return _rows("branches", sorted(rows, key=lambda row: str(row["branch_name"])))


def consumers(storage: Storage, layout: Layout) -> pa.Table:
    """Return a row per consumer, sorted. A listing, and a small file each."""
    folder = layout.folder("consumer")
    names = sorted(entry.name for entry in storage.list(folder) if entry.name.startswith("consumer-"))
    contents = storage.read_present([f"{folder}/{name}" for name in names])
    return _rows(
        "consumers",
        [
            {
                "consumer_id": name.removeprefix("consumer-"),
                "next_snapshot_id": parse_json(content, f"{folder}/{name}", lambda raw: _whole(raw["nextSnapshot"])),
            }
            for name, content in zip(names, contents, strict=True)
            if content is not None
        ],
    )


def aggregation_fields(newest: PaimonSchema) -> pa.Table:
    """Return a row per column of the newest schema with its `fields.COLUMN.*` options, lists in brackets.

    Source: paimon AggregationFieldsTable.
    """
    options_of: dict[str, list[tuple[str, str]]] = {}
    for option, value in newest.options.items():
        prefix, _, rest = option.partition(".")
        column, dot, _ = rest.partition(".")
        if prefix == "fields" and dot:
            options_of.setdefault(column, []).append((option, value))
    return _rows(
        "aggregation_fields",
        [
            {
                "field_name": field.name,
                "field_type": java_type(field.type),
                "function": _bracket([value for _, value in options_of.get(field.name, ())]),
                "function_options": _bracket([option for option, _ in options_of.get(field.name, ())]),
                "comment": field.description,
            }
            for field in newest.fields
        ],
    )


def parse_json(content: bytes, path: str, take: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Return the result of `take` for the content of a small JSON file."""
    try:
        return take(json_text.loads(content, path))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptTableError(
            f"{path} cannot be read ({type(error).__name__}: {error}). It may have been cut short; if a writer is at "
            "work, try again."
        ) from error


def _numbers(storage: Storage, layout: Layout, kind: str) -> list[int]:
    names = [entry.name for entry in storage.list(layout.folder(kind)) if not entry.is_folder]
    return sorted(number for name in names if (number := number_of(name, kind)) is not None)


def _rows(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema_of(name))


def _bracket(values: Sequence[str]) -> str:
    return f"[{', '.join(values)}]"


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError(f"{value!r} is not a 64-bit number")
    return value


def _wall(moment: datetime) -> datetime:
    return _millis(moment.astimezone(UTC).replace(tzinfo=None)) or moment


def _millis(moment: datetime | None) -> datetime | None:
    """Return a time truncated to milliseconds, the precision of the column."""
    return moment and moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
