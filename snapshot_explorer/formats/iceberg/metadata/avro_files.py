"""Rows of manifest lists and manifests in Avro as Arrow columns, found by field id.

The names of the fields differ between writers, their ids do not. So the fields of a file's schema are renamed to their
ids before its rows are decoded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.avro.arrow_values import pair_type
from snapshot_explorer.formats.avro.columns import decode_rows
from snapshot_explorer.formats.avro.container import (
    MAGIC,
    Atom,
    Container,
    Fixed,
    Items,
    Record,
    Shape,
    TruncatedError,
    Union,
    parse_shape,
    read_container,
)
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.limits import Limits

_BATCH = 8 * 2**20
"""Bytes that are decoded at a time: more would not fit the processor's cache."""
_PAIR = {"key", "value"}
_DEEPEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedRows:
    """The rows of files of one schema."""

    files: tuple[int, ...]
    """The indices of the files among those requested."""
    counts: tuple[int, ...]
    headers: tuple[Mapping[str, bytes], ...]
    """The metadata in the header of each file, by key."""
    rows: pa.StructArray
    """The rows of all these files, in order."""
    schema: Mapping[str, Any]
    """Their Avro schema, whose fields are named by their ids."""


def read_avro(files: Sequence[tuple[str, bytes]], target: pa.StructType, limits: Limits) -> list[DecodedRows]:
    """Return the rows of Avro files, grouped by schema.

    Args:
        files: Path, for messages, and content of each.
        target: The fields to read: their names are field ids, except for `key` and `value` of a map. A field that a
            file lacks is null. A struct without fields requests all fields of the file's record.

    Source: Avro specification; iceberg specification, "Avro".
    """
    schemas: dict[bytes, Mapping[str, Any]] = {}
    shapes: dict[bytes, Shape] = {}
    parsed: list[Mapping[str, Any]] = []

    def shape_of(raw: Any) -> Shape:
        parsed.append(by_ids(raw))
        return parse_shape(parsed[-1])

    groups: dict[bytes, list[tuple[int, Container]]] = {}
    for index, (path, content) in enumerate(files):
        if content[:4] == b"PAR1":
            raise refusal(features.OTHER_MANIFEST_FORMATS, path=path)
        if content[: len(MAGIC)] != MAGIC:
            problem = f"it begins with {content[:4]!r}, which is not Avro" if content else "it is empty"
            raise broken(path, problem)
        container = read_container(content, path, shapes, limits=limits, parse=shape_of)
        if container.schema_text not in schemas:
            schemas[container.schema_text] = parsed[-1]
        groups.setdefault(container.schema_text, []).append((index, container))
    decoded: list[DecodedRows] = []
    for text, group in groups.items():
        _check(group[0][1].shape, target, group[0][1].path, "")
        record_type = _filled(schemas[text], target)
        decoded.extend(
            DecodedRows(
                files=tuple(index for index, _ in batch),
                counts=tuple(container.rows for _, container in batch),
                headers=tuple(container.header for _, container in batch),
                rows=_decoded([container for _, container in batch], record_type),
                schema=schemas[text],
            )
            for batch in pack(group, lambda item: sum(len(block) for _, block in item[1].blocks), target=_BATCH)
        )
    return decoded


def broken(path: str, problem: str) -> CorruptTableError:
    """Return the error for a manifest list or manifest that cannot be decoded."""
    return CorruptTableError(
        f"{path} is not a readable manifest: {problem}. It is cut short or damaged; compare it with a copy of the "
        "table, or choose another version."
    )


def _decoded(files: Sequence[Container], target: pa.StructType) -> pa.StructArray:
    blocks = [block for file in files for block in file.blocks]
    try:
        return decode_rows(blocks, files[0].shape, target)
    except (TruncatedError, pa.ArrowException, OverflowError) as error:
        if len(files) > 1:
            # One of them is corrupt: decode each to find out which.
            return pa.concat_arrays([_decoded([file], target) for file in files])
        raise broken(files[0].path, str(error)) from error


def by_ids(raw: Any, depth: int = 0) -> Any:
    """Return an Avro schema whose record fields are named by their field ids, where they have one.

    The key and the value of a map keep these names.

    Raises:
        ValueError: The schema is nested too deeply.
    """
    if depth > _DEEPEST:
        raise ValueError("its schema is implausibly deep")
    if isinstance(raw, list):
        return [by_ids(branch, depth + 1) for branch in raw]
    if not isinstance(raw, dict):
        return raw
    avro_type = raw.get("type")
    if avro_type == "record":
        names = {field["name"] for field in raw["fields"]}
        fields = [
            {
                **field,
                "name": field["name"] if names == _PAIR else str(field.get("field-id", field["name"])),
                "type": by_ids(field["type"], depth + 1),
            }
            for field in raw["fields"]
        ]
        return {**raw, "fields": fields}
    inner = {name: by_ids(raw[name], depth + 1) for name in ("items", "values") if name in raw}
    if isinstance(avro_type, dict | list):
        inner["type"] = by_ids(avro_type, depth + 1)
    return {**raw, **inner}


def field_of(schema: Any, *names: str) -> Any:
    """Return the type of a nested field of an Avro schema, without its union with null; None without such a field."""
    for name in names:
        schema = without_null(schema)
        fields = schema.get("fields", []) if isinstance(schema, dict) else []
        schema = next((field["type"] for field in fields if field["name"] == name), None)
    return without_null(schema)


def without_null(schema: Any) -> Any:
    """Return the only branch of a union that is not null; any other schema as it is."""
    if isinstance(schema, list):
        rest = [branch for branch in schema if branch != "null"]
        schema = rest[0] if len(rest) == 1 else schema
    if isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
        return without_null(schema["type"])
    return schema


def arrow_type(schema: Any) -> pa.DataType:
    """Return the Arrow type of a primitive Avro type as it is stored: integers have 64 bits, and fixed is binary."""
    plain = without_null(schema)
    word = plain.get("type") if isinstance(plain, dict) else plain
    if word in ("int", "long"):
        return pa.int64()
    if word in ("float", "double"):
        return pa.float64()
    if word in ("bytes", "fixed"):
        return pa.binary()
    return {"boolean": pa.bool_(), "string": pa.string()}.get(str(word), pa.null())


def _filled(schema: Any, target: pa.StructType) -> pa.StructType:
    """Return the fields to decode: a struct without fields gets all those of the file's record."""
    parts = []
    for part in target:
        dtype = part.type
        if pa.types.is_struct(dtype):
            inner = field_of(schema, part.name)
            if dtype.num_fields:
                dtype = _filled(inner, dtype)
            else:
                fields = inner.get("fields", []) if isinstance(inner, dict) else []
                dtype = pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in fields])
        parts.append(pa.field(part.name, dtype))
    return pa.struct(parts)


def _check(shape: Shape, target: pa.DataType, path: str, name: str) -> None:
    match shape:
        case Union(branches):
            for branch in branches:
                _check(branch, target, path, name)
        case Record(fields) if pa.types.is_struct(target):
            inner = dict(fields)
            for part in target:
                if part.name in inner:
                    _check(inner[part.name], part.type, path, part.name)
        case Items(item, keyed=False) if pa.types.is_map(target):
            _check(item, pair_type(target), path, name)
        case Items(item, keyed=False) if pa.types.is_list(target):
            _check(item, target.value_type, path, name)
        case Atom(kind) if _holds(kind, target):
            pass
        case Fixed() if pa.types.is_binary(target):
            pass
        case _:
            field = f"its field {name}" if name else "its row"
            raise broken(path, f"{field} is not of type {target}")


def _holds(avro_type: str, target: pa.DataType) -> bool:
    if avro_type in ("int", "long"):
        return bool(pa.types.is_integer(target))
    if avro_type in ("bytes", "string"):
        return bool(pa.types.is_binary(target) or pa.types.is_string(target))
    return avro_type == "null" or (avro_type == "boolean" and bool(pa.types.is_boolean(target)))


def ordered(
    decoded: Sequence[DecodedRows], count: int
) -> tuple[pa.StructArray | None, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the rows of all files in the order of the files, where their types agree, and the rows of each file."""
    counts = np.zeros(count, np.int64)
    for element in decoded:
        counts[list(element.files)] = element.counts
    if not decoded:
        return None, counts
    if len(decoded) == 1:
        return decoded[0].rows, counts
    together = pa.concat_arrays([item.rows for item in decoded])
    files = np.array([index for item in decoded for index in item.files], np.int64)
    if (files[1:] > files[:-1]).all():
        return together, counts
    begins = np.zeros(count, np.int64)
    begins[files] = np.cumsum(counts[files]) - counts[files]
    indices = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    return together.take(pa.array(indices)), counts
