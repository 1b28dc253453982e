"""Partition paths: their values as text for frames, typed to skip partitions, and as columns that files lack.

Source: hudi PartitionPathEncodeUtils, KeyGenUtils; hudi HoodieTableConfig.DROP_PARTITION_COLUMNS.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from urllib.parse import unquote

import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.types import HudiField, HudiType, arrow_type

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder of the null value, and of the empty text, which is read as null."""
_OLD_NULL = "default"
_LAST_WITH_OLD_NULL = 4
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,400}(?:\.\d{1,400})?(?:E[+-]?\d{1,3})?", re.ASCII)
_DECIMAL = re.compile(r"-?(?=\d)0*(\d{0,38})(?:\.(\d{1,38}))?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)


def partition_texts(config: TableConfig, path: str) -> dict[str, str | None]:
    """Return the values in the path of a partition as text, by partition column; null is None.

    If the path does not have a level for each column, all of it is the value of the only column, or of `partition`.
    """
    names = config.partition_fields
    if not names:
        return {}
    levels = path.split("/")
    if len(levels) != len(names):
        if len(names) > 1:
            return {"partition": path}
        levels = [path]
    return {name: _value(config, name, level) for name, level in zip(names, levels, strict=True)}


def _value(config: TableConfig, name: str, level: str) -> str | None:
    text = level.removeprefix(f"{name}=")
    if text == NULL or (text == _OLD_NULL and config.version <= _LAST_WITH_OLD_NULL):
        return None
    return unquote(text) if config.is_on("hoodie.datasource.write.partitionpath.urlencode") else text


def typed_columns(
    config: TableConfig, fields: Sequence[HudiField], texts: Sequence[Mapping[str, str | None]]
) -> dict[str, pa.Array]:
    """Return the partition columns whose values all paths contain, by name: a value for each partition."""
    by_name = {field.name: field for field in fields}
    columns: dict[str, pa.Array] = {}
    for name, how in zip(config.partition_fields, config.partition_types, strict=True):
        field = by_name.get(name)
        if field is None or how != "SIMPLE" or any(name not in partition for partition in texts):
            continue
        values = [partition[name] for partition in texts]
        parsed = [None if text is None else _parse(text, field.type) for text in values]
        if not any(value is None and text is not None for value, text in zip(parsed, values, strict=True)):
            columns[name] = pa.array(parsed, arrow_type(field.type))
    return columns


def _parse(text: str, data_type: HudiType) -> object:
    """Return the value of a text in a path; None if the text is not certainly a value of the type."""
    if data_type.root == "string" and not data_type.logical:
        return text
    if data_type.root == "boolean" and text in ("true", "false"):
        return text == "true"
    if data_type.logical == "date":
        matched = _DATE.fullmatch(text)
        try:
            return None if matched is None else date(*map(int, matched.groups()))
        except ValueError:
            return None
    if data_type.root in ("float", "double") and _NUMBER.fullmatch(text):
        return float(text)
    if data_type.logical == "decimal" and (matched := _DECIMAL.fullmatch(text)) is not None:
        whole, fraction = matched.groups(default="")
        fits = len(whole) <= data_type.precision - data_type.scale and len(fraction) <= data_type.scale
        return Decimal(text) if fits else None
    if data_type.root in ("int", "long") and not data_type.logical and _INTEGER.fullmatch(text):
        bits = 31 if data_type.root == "int" else 63
        return int(text) if -(2**bits) <= int(text) < 2**bits else None
    return None


def partition_values(config: TableConfig, fields: Sequence[HudiField], path: str) -> dict[str, pa.Scalar]:
    """Return the values of the partition columns that the path of a partition contains.

    Files may contain other values: rows whose partition column changed stay where a global index finds them.

    Source: hudi on Spark, whose readers take these columns from the path.
    """
    columns = typed_columns(config, fields, [partition_texts(config, path)])
    if config.drops_partition_columns:
        missing = [name for name in config.partition_fields if name not in columns]
        if missing:
            raise refusal(features.DROPPED_PARTITION_COLUMNS, columns=", ".join(missing), path=path)
    return {name: column[0] for name, column in columns.items()}


def partition_column(config: TableConfig, paths: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the partition column of a frame of files from the paths of their partitions."""
    encoded = single_chunk(paths).dictionary_encode()
    texts = [list(partition_texts(config, path).items()) for path in encoded.dictionary.to_pylist()]
    return pa.array(texts, frames.PARTITION).take(encoded.indices)
