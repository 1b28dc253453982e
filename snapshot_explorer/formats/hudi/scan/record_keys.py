"""The record keys of rows: stored in a column, or computed from the key columns.

Source: hudi KeyGenUtils, SimpleKeyGenerator, ComplexKeyGenerator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.types import HudiField
from snapshot_explorer.formats.hudi.scan.meta_columns import FIELDS, RECORD_KEY

_NULL, _EMPTY = "__null__", "__empty__"
_PLAIN = ("int", "long", "string")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeys:
    """The columns from which the keys of rows are read or computed. Picklable."""

    columns: tuple[HudiField, ...]
    is_stored: bool
    is_named: bool
    """Whether the text of a computed key names its columns, such as `id:1`."""


def record_keys(config: TableConfig, fields: Sequence[HudiField]) -> RecordKeys:
    """Return the location of the keys of the table's rows."""
    names = config.record_keys
    by_name = {field.name: field for field in fields}
    columns = tuple(by_name[name] for name in names if name in by_name)
    if config.has_meta_fields or not names or len(columns) < len(names):
        return RecordKeys(columns=(FIELDS[RECORD_KEY],), is_stored=True, is_named=False)
    is_named = len(names) > 1 or config.key_generator in ("COMPLEX", "CUSTOM")
    return RecordKeys(columns=columns, is_stored=False, is_named=is_named)


def check_deletes(keys: RecordKeys) -> None:
    """Check that the keys in delete blocks can be compared with the keys of rows."""
    if keys.is_stored:
        return
    is_ambiguous = keys.is_named and len(keys.columns) == 1 and keys.columns[0].type.root == "string"
    if is_ambiguous or any(field.type.root not in _PLAIN or field.type.logical for field in keys.columns):
        raise refusal(features.DELETES_OF_COMPUTED_KEYS, columns=", ".join(field.name for field in keys.columns))


def keys_of(batch: pa.RecordBatch, keys: RecordKeys) -> pa.Array:
    """Return the keys of rows as text."""
    values = [batch.column(field.name) for field in keys.columns]
    if keys.is_stored:
        return values[0]
    if len(values) == 1:
        return _text(values[0])
    parts = [
        pc.binary_join_element_wise(field.name, _marked(_text(column)), ":")
        for field, column in zip(keys.columns, values, strict=True)
    ]
    return pc.binary_join_element_wise(*parts, ",")


def deleted_key(key: str, keys: RecordKeys) -> str:
    """Return a key of a delete block as `keys_of` returns it: releases differ in naming a single key column."""
    if keys.is_stored or len(keys.columns) > 1 or not keys.is_named:
        return key
    return key.removeprefix(f"{keys.columns[0].name}:")


def _text(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        return values.cast(pa.string())
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def _marked(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(values, ""), _EMPTY, values).fill_null(_NULL)
