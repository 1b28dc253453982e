"""Snapshot, tag and long-lived changelog files: one record for all three."""

import hashlib
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

import orjson

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.core.milliseconds import from_millis
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.missing_versions import pause
from snapshot_explorer.formats.paimon.metadata.layout import number_of
from snapshot_explorer.storage import Storage

NO_WATERMARK = -(2**63)
"""The value that writers store without a watermark."""
_TRIES = 3
_MAX_DAMAGED_BYTES = 1 << 16
"""The largest damaged file whose content is remembered."""

V = TypeVar("V")
FileKind = Literal["snapshot", "tag", "changelog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonSnapshot:
    """A snapshot file, or a tag or long-lived changelog file, which have the same fields."""

    id: int
    """The version; N of `snapshot-N`."""
    format_version: int
    """1 to Paimon 0.2, 2 in 0.3, 3 since 0.4."""
    schema_id: int
    """The newest schema at the commit."""
    base_manifest_list: str
    """Manifest list of all files before the commit."""
    base_manifest_list_bytes: int | None
    """Its size; null before Paimon 1.1."""
    delta_manifest_list: str
    """Manifest list of the files that the commit changed."""
    delta_manifest_list_bytes: int | None
    changelog_manifest_list: str | None
    changelog_manifest_list_bytes: int | None
    index_manifest: str | None
    """The index manifest: all index files, not only the new ones."""
    user: str
    """The id of the writer that committed."""
    identifier: int
    """The writer's number of the commit; not unique."""
    kind: str
    """APPEND, COMPACT, OVERWRITE or ANALYZE."""
    committed_at: datetime
    """The writer's clock at the commit, aware, UTC. Clocks may run backwards."""
    total_rows: int | None
    """Rows in all live files, before any merge."""
    delta_rows: int | None
    """Rows in added less rows in removed files."""
    changelog_rows: int | None
    watermark: int | None
    """Milliseconds since 1970; null without a watermark."""
    statistics: str | None
    """Name of the file with the statistics of an ANALYZE."""
    properties: Mapping[str, str]
    next_row_id: int | None
    operation: str | None
    """The writer's name of the operation, such as WRITE or MERGE; since Paimon 2.0."""
    uuid: str | None
    """A random id of the commit; since Paimon 2.0."""
    writer_version: str | None
    tag_created_at: datetime | None
    """When a tag was created, by the writer's local clock, without zone; null without a retention."""
    tag_retained: timedelta | None
    """How long a tag is kept; null is forever."""
    stored: str = field(repr=False)
    """The file's JSON text, including unknown fields."""
    digest: str
    """A hash of the content, to detect another file under the same name."""
    path: str
    file_kind: FileKind
    """The kind of file. For a changelog, the version's data files are no longer known."""


def parse_snapshot(
    content: bytes, path: str, file_kind: FileKind = "snapshot", *, limits: Limits = DEFAULT
) -> PaimonSnapshot:
    """Return the record of a snapshot, tag or changelog file. Unknown fields are kept in `stored`.

    Source: paimon docs, "Snapshot"; paimon Snapshot and Tag.
    """
    try:
        return _parse(json_text.document(content, path, limits), content, path, file_kind)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = "cut short or damaged" if isinstance(error, orjson.JSONDecodeError) else "damaged"
        raise CorruptTableError(
            f"{path} is not a readable Paimon {file_kind} ({_reason(error)}): it is {problem}. "
            "Choose another version; if a writer is at work, try again."
        ) from error


def _reason(error: Exception) -> str:
    return f"it has no field {error}" if isinstance(error, KeyError) else str(error)


def _parse(raw: Mapping[str, Any], content: bytes, path: str, file_kind: FileKind) -> PaimonSnapshot:
    watermark = _integer(raw, "watermark")
    return PaimonSnapshot(
        id=_required(_integer(raw, "id"), "id"),
        format_version=_integer(raw, "version") or 1,
        schema_id=_required(_integer(raw, "schemaId"), "schemaId"),
        base_manifest_list=_required(_text(raw, "baseManifestList"), "baseManifestList"),
        base_manifest_list_bytes=_integer(raw, "baseManifestListSize"),
        delta_manifest_list=_required(_text(raw, "deltaManifestList"), "deltaManifestList"),
        delta_manifest_list_bytes=_integer(raw, "deltaManifestListSize"),
        changelog_manifest_list=_text(raw, "changelogManifestList"),
        changelog_manifest_list_bytes=_integer(raw, "changelogManifestListSize"),
        index_manifest=_text(raw, "indexManifest"),
        user=_required(_text(raw, "commitUser"), "commitUser"),
        identifier=_required(_integer(raw, "commitIdentifier"), "commitIdentifier"),
        kind=_required(_text(raw, "commitKind"), "commitKind"),
        committed_at=from_millis(_required(_integer(raw, "timeMillis"), "timeMillis")),
        total_rows=_integer(raw, "totalRecordCount"),
        delta_rows=_integer(raw, "deltaRecordCount"),
        changelog_rows=_integer(raw, "changelogRecordCount"),
        watermark=None if watermark == NO_WATERMARK else watermark,
        statistics=_text(raw, "statistics"),
        properties={str(key): str(value) for key, value in (raw.get("properties") or {}).items()},
        next_row_id=_integer(raw, "nextRowId"),
        operation=_text(raw, "operation"),
        uuid=_text(raw, "uuid"),
        writer_version=_text(raw, "writerVersion"),
        tag_created_at=_local_time(raw.get("tagCreateTime")),
        tag_retained=_duration(raw.get("tagTimeRetained")),
        stored=content.decode(),
        digest=digest_of(content),
        path=path,
        file_kind=file_kind,
    )


def digest_of(content: bytes) -> str:
    """Return a hash of a file's content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _required(value: V | None, name: str) -> V:
    if value is None:
        raise KeyError(name)
    return value


def _integer(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError(f"its field {name!r} is not a 64-bit number")
    return value


def _text(raw: Mapping[str, Any], name: str) -> str | None:
    value = raw.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"its field {name!r} is not text")
    return value


def _local_time(parts: Any) -> datetime | None:
    """Return a time from [year, month, day, hour, minute, second, nanosecond], without trailing zeros.

    It is only displayed, so that an invalid time is None.
    """
    if not isinstance(parts, list) or not 3 <= len(parts) <= 7:  # noqa: PLR2004 - a date, up to nanoseconds
        return None
    year, month, day, hour, minute, second, nanosecond = [*parts, 0, 0, 0, 0][:7]
    try:
        # The writer stores its local time, without a zone.
        return datetime(year, month, day, hour, minute, second, nanosecond // 1_000)  # noqa: DTZ001
    except (TypeError, ValueError, OverflowError):
        return None


def _duration(seconds: Any) -> timedelta | None:
    try:
        return None if seconds is None else timedelta(seconds=float(seconds))
    except (TypeError, ValueError, OverflowError):
        return None


def _named(content: bytes, path: str, file_kind: FileKind, limits: Limits) -> PaimonSnapshot:
    snapshot = parse_snapshot(content, path, file_kind, limits=limits)
    if file_kind != "tag" and snapshot.id != number_of(path.rpartition("/")[2], file_kind):
        raise CorruptTableError(
            f"{path} contains snapshot {snapshot.id}. It was copied or damaged; choose another version."
        )
    return snapshot


def read_snapshots(
    storage: Storage,
    paths: Sequence[str],
    file_kind: FileKind = "snapshot",
    damaged: MutableMapping[str, bytes] | None = None,
) -> list[PaimonSnapshot | None]:
    """Return the records in these files, None for a missing file. One concurrent request each.

    A file that does not parse is read again a few times: some object stores expose partly written files.

    Args:
        damaged: The contents of files that were read again in vain, by path: they are not read again here.
    """
    return reparse(storage, paths, storage.read_present(paths), file_kind, damaged)


def reparse(
    storage: Storage,
    paths: Sequence[str],
    contents: Sequence[bytes | None],
    file_kind: FileKind = "snapshot",
    damaged: MutableMapping[str, bytes] | None = None,
) -> list[PaimonSnapshot | None]:
    """Return the records of files from their content. Reads files that do not parse again; see `read_snapshots`."""
    damaged = {} if damaged is None else damaged
    result: list[PaimonSnapshot | None] = [None] * len(paths)
    pending = list(zip(range(len(paths)), contents, strict=True))
    for attempt in range(1, _TRIES + 1):
        failed: list[int] = []
        for index, content in pending:
            try:
                result[index] = None if content is None else _named(content, paths[index], file_kind, storage.limits)
            except CorruptTableError:
                if attempt == _TRIES or (content is not None and damaged.get(paths[index]) == content):
                    if content is not None and len(content) <= _MAX_DAMAGED_BYTES:
                        damaged[paths[index]] = content
                    raise
                failed.append(index)
        if not failed:
            break
        pause()
        pending = list(zip(failed, storage.read_present([paths[index] for index in failed]), strict=True))
    return result
