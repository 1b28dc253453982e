"""`_last_checkpoint` and the checksum files: hints of writers. Neither may make a read fail.

Source: delta PROTOCOL.md, "Last Checkpoint File" and "Version Checksum File".
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import LimitError, StorageError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.delta.metadata.actions import metadata_of, protocol_of
from snapshot_explorer.formats.delta.metadata.json_columns import integer
from snapshot_explorer.formats.delta.metadata.layout import HINT, checksum_path
from snapshot_explorer.formats.delta.metadata.records import Metadata, Protocol
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksum:
    """The contents of a checksum file."""

    path: str
    size_bytes: int | None
    """Bytes of the live files."""
    files: int | None
    protocol: Protocol | None
    metadata: Metadata | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHint:
    """The contents of `_last_checkpoint`."""

    version: int
    """The version of a checkpoint, mostly the newest one."""
    size_bytes: int | None
    """The size of its files; None if not recorded, or for a checkpoint of version 2: its size includes sidecars."""


def read_hint(storage: Storage) -> tuple[CheckpointHint | None, tuple[str, ...]]:
    """Return the hint, None without a usable one, and notes on problems.

    One request.
    """
    try:
        content = storage.read(HINT)
        storage.limits.check_value(HINT, len(content), len(content), "one JSON document")
    except (StorageError, LimitError):
        return None, ()
    try:
        values = json_text.loads(content, HINT)
        if isinstance(values, dict) and _is_whole(values) and (version := integer(values.get("version"))) >= 0:
            is_plain = "v2Checkpoint" not in values
            return CheckpointHint(version=version, size_bytes=_size_of(values) if is_plain else None), ()
    except (ValueError, LimitError):
        pass
    return None, (f"{HINT} is corrupted. Will search the checkpoint files directly",)


def read_checksum(storage: Storage, version: int) -> Checksum | None:
    """Return a version's checksum file; None if it is missing, empty or damaged. One request."""
    path = checksum_path(version)
    try:
        values = json_text.document(storage.read(path), path, storage.limits)
    except (StorageError, LimitError, orjson.JSONDecodeError):
        return None
    if not isinstance(values, dict):
        return None
    try:
        return Checksum(
            path=path,
            size_bytes=_count(values, "tableSizeBytes"),
            files=_count(values, "numFiles"),
            protocol=protocol_of(values["protocol"]) if isinstance(values.get("protocol"), dict) else None,
            metadata=metadata_of(values["metadata"]) if isinstance(values.get("metadata"), dict) else None,
        )
    except (CorruptBytesError, ValueError):
        return None


@dataclass(slots=True)
class LiveCounts:
    """The number and the size of the live files that have been added."""

    files: int = 0
    size_bytes: int = 0

    def add(self, adds: pa.Table) -> pa.Table:
        """Count ADDS, and return them."""
        self.files += adds.num_rows
        self.size_bytes += pc.sum(adds.column("size_bytes")).as_py() or 0
        return adds


def contradictions(values: Checksum, protocol: Protocol, metadata: Metadata, live: LiveCounts | None) -> list[str]:
    """Return how a checksum contradicts the log, a sentence each. Counts are compared if they are known."""
    pairs: list[tuple[str, object, object]] = [
        ("protocol", values.protocol, protocol),
        ("table id", values.metadata.id if values.metadata else None, metadata.id),
    ]
    if live is not None:
        pairs += [("number of files", values.files, live.files), ("bytes of files", values.size_bytes, live.size_bytes)]
    return [
        f"{values.path} contradicts the log: its {name} is {stated}, that of the log {actual}. The log is used."
        for name, stated, actual in pairs
        if stated is not None and stated != actual
    ]


def _size_of(values: Mapping[str, Any]) -> int | None:
    """Return the size of a checkpoint; its key has another name in early releases of delta-rs."""
    stated = values.get("sizeInBytes", values.get("size_in_bytes"))
    return stated if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0 else None


def _count(values: Mapping[str, Any], name: str) -> int | None:
    return None if values.get(name) is None else integer(values[name])


def _is_whole(values: Mapping[str, Any]) -> bool:
    """Return whether the hint's own checksum, if it has one, matches its contents."""
    stated = values.get("checksum")
    return stated is None or stated == hashlib.md5(canonical(values).encode(), usedforsecurity=False).hexdigest()


def canonical(values: Mapping[str, Any]) -> str:
    """Return the text that the checksum of a hint is computed from.

    Source: delta PROTOCOL.md, "JSON checksum".
    """
    pairs: list[str] = []
    waiting: list[tuple[str, Any]] = [(_quote(name), value) for name, value in values.items() if name != "checksum"]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{path}+{_quote(name)}", inner) for name, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}+{position}", inner) for position, inner in enumerate(value)]
        else:
            pairs.append(f"{path}={_quote(value) if isinstance(value, str) else orjson.dumps(value).decode()}")
    return ",".join(sorted(pairs))


def _quote(text: str) -> str:
    return f'"{quote(text, safe="")}"'
