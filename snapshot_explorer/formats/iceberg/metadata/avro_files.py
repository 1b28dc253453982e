"""Rows of manifest lists and manifests in Avro as Arrow columns, found by field id.

The names of the fields differ between writers, their ids do not. So the fields of a file's schema are renamed to their
ids before its rows are decoded. In a file whose schema has no ids at all, fields are found by their names.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.avro.container import MAGIC, Container, Shape, parse_shape, read_container
from snapshot_explorer.formats.avro.files import DecodedFiles, decode
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features

_BATCH = 8 * 2**20
"""Bytes that are decoded at a time: more would not fit the processor's cache."""
_PAIR = {"key", "value"}
_IDS = ("field-id", "element-id", "key-id", "value-id")
_PARTITION = "102"
_DEEPEST = 32


def read_avro(
    files: Sequence[tuple[str, bytes]], target: pa.StructType, names: Mapping[str, str], limits: Limits
) -> list[DecodedFiles]:
    """Return the rows of Avro files, grouped by schema.

    Args:
        files: Path, for messages, and content of each.
        target: The fields to read: their names are field ids, except for `key` and `value` of a map. A field that a
            file lacks is null. A struct without fields requests all fields of the file's record.
        names: The ids of fields by their names, for files without any ids.

    Source: Avro specification; iceberg specification, "Avro".
    """
    shapes: dict[bytes, Shape] = {}
    containers: dict[int, Container] = {}
    for index, (path, content) in enumerate(files):
        if content[:4] == b"PAR1":
            raise refusal(features.OTHER_MANIFEST_FORMATS, path=path)
        if content[: len(MAGIC)] != MAGIC:
            problem = f"it begins with {content[:4]!r}, which is not Avro" if content else "it is empty"
            raise broken_file_error(path, problem)
        containers[index] = read_container(
            content, path, shapes, limits=limits, parse=lambda raw: parse_shape(by_ids(raw, names))
        )
    return list(
        decode(
            containers,
            lambda container: _fill(by_ids(stored_schema(container), names), target),
            batch_bytes=_BATCH,
            broken=broken_file_error,
        )
    )


def stored_schema(container: Container) -> Any:
    """Return the Avro schema of a file."""
    return orjson.loads(container.schema_text)


def broken_file_error(path: str, problem: str) -> CorruptTableError:
    """Return the error for a manifest list or manifest that cannot be decoded."""
    return CorruptTableError(
        f"{path} is not a readable manifest: {problem}. It is cut short or damaged; compare it with a copy of the "
        "table, or choose another version."
    )


def by_ids(raw: Any, names: Mapping[str, str]) -> Any:
    """Return an Avro schema whose record fields are named by their field ids, if they have ids.

    The key and the value of a map keep these names.

    Args:
        raw: The schema.
        names: The ids of fields by their names, for a schema without any ids. Partition fields then keep their names,
            which are the names in the partition spec.

    Raises:
        ValueError: The schema is nested too deeply.

    Source: iceberg NameMappingDatumReader.setSchema, MappingUtil.create.
    """
    return _name_by_ids(raw, {} if has_ids(raw) else names, 0)


def has_ids(raw: Any, depth: int = 0) -> bool:
    """Return whether an Avro schema has any ids. Fields without one are not found in a file that has some.

    Raises:
        ValueError: The schema is nested too deeply.

    Source: iceberg AvroSchemaUtil.hasIds.
    """
    if depth > _DEEPEST:
        raise ValueError("its schema is implausibly deep")
    if isinstance(raw, list):
        return any(has_ids(branch, depth + 1) for branch in raw)
    if not isinstance(raw, dict):
        return False
    parts = (raw.get("type"), raw.get("items"), raw.get("values"), raw.get("fields"))
    return any(name in raw for name in _IDS) or any(has_ids(part, depth + 1) for part in parts)


def _name_by_ids(raw: Any, names: Mapping[str, str], depth: int, *, in_array: bool = False) -> Any:
    if depth > _DEEPEST:
        raise ValueError("its schema is implausibly deep")
    if isinstance(raw, list):
        return [_name_by_ids(branch, names, depth + 1, in_array=in_array) for branch in raw]
    if not isinstance(raw, dict):
        return raw
    avro_type = raw.get("type")
    if avro_type == "record":
        # A map whose keys are not text is an array of such records. Partition fields may have these names too.
        is_pair = in_array and {field["name"] for field in raw["fields"]} == _PAIR
        return {**raw, "fields": [_field_by_id(field, names, depth, is_pair=is_pair) for field in raw["fields"]]}
    inner = {
        name: _name_by_ids(raw[name], names, depth + 1, in_array=name == "items")
        for name in ("items", "values")
        if name in raw
    }
    if isinstance(avro_type, dict | list):
        inner["type"] = _name_by_ids(avro_type, names, depth + 1, in_array=in_array)
    return {**raw, **inner}


def _field_by_id(field: Mapping[str, Any], names: Mapping[str, str], depth: int, *, is_pair: bool) -> Mapping[str, Any]:
    name = field["name"] if is_pair else str(field.get("field-id", names.get(field["name"], field["name"])))
    in_type = {} if name == _PARTITION else names
    return {**field, "name": name, "type": _name_by_ids(field["type"], in_type, depth + 1)}


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


def _fill(schema: Any, target: pa.StructType) -> pa.StructType:
    """Return the fields to decode: a struct without fields gets all fields of the file's record."""
    parts = []
    for part in target:
        dtype = part.type
        if pa.types.is_struct(dtype):
            inner = field_of(schema, part.name)
            if dtype.num_fields:
                dtype = _fill(inner, dtype)
            else:
                fields = inner.get("fields", []) if isinstance(inner, dict) else []
                dtype = pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in fields])
        parts.append(pa.field(part.name, dtype))
    return pa.struct(parts)
