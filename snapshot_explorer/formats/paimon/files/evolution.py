"""Schema evolution: rows of an old file as rows of another schema, by field ids.

A field is matched with the file's schema by its id, also inside ROWs, and read under its name there. A field that the
file's schema lacks is null. Values of another type are cast by Paimon's rules.

Source: paimon docs, "Schema evolution"; paimon SchemaEvolutionUtil.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow.nesting import with_entries, with_fields, with_items
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.casts.values import NotCastableError, cast, castable
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, arrow_type, type_text

_NESTED = ("ROW", "ARRAY", "MAP", "MULTISET", "VECTOR", "VARIANT", "BLOB")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """The mapping from the columns of a file to the columns of the read schema."""

    sources: tuple[PaimonField, ...]
    """The file's columns to read, each once, from the file's schema."""
    targets: tuple[tuple[PaimonField, PaimonField | None], ...]
    """The requested columns in order, each with its column in the file; None for a column of nulls."""


def mapping(
    fields: Sequence[PaimonField], stored_fields: Sequence[PaimonField], write_columns: Sequence[str] | None = None
) -> ColumnMapping:
    """Return the mapping from the columns of a file to requested columns.

    Args:
        stored_fields: All columns of the file's own schema.
        write_columns: Names of the columns in the file; None for all.
    """
    by_id = {field.id: field for field in stored_fields if write_columns is None or field.name in write_columns}
    targets = tuple((field, by_id.get(field.id)) for field in fields)
    for target, source in targets:
        if source is not None:
            _check(source.type, target.type, target.name)
    sources = {source.id: source for _, source in targets if source is not None}
    return ColumnMapping(sources=tuple(sources.values()), targets=targets)


def unchanged_names(mapping: ColumnMapping) -> dict[str, str]:
    """Return the file's columns whose values need no conversion, by the requested column's name."""
    return {
        target.name: source.name
        for target, source in mapping.targets
        if source is not None and same(source.type, target.type)
    }


def is_exact(mapping: ColumnMapping) -> bool:
    """Return whether `evolve` returns the file's columns as they are, in their order."""
    return [source for _, source in mapping.targets] == list(mapping.sources) and all(
        source is not None and same(source.type, target.type) and arrow_type(source.type) == arrow_type(target.type)
        for target, source in mapping.targets
    )


def same(left: PaimonDataType, right: PaimonDataType, *, with_ids: bool = True) -> bool:
    """Return whether two types are equal, including the names and ids of fields, ignoring nullability."""
    if left is right:  # files of the version's own schema
        return True
    if (left.root, left.length, left.precision, left.scale) != (right.root, right.length, right.precision, right.scale):
        return False
    if [field.name for field in left.fields] != [field.name for field in right.fields]:
        return False
    if with_ids and [field.id for field in left.fields] != [field.id for field in right.fields]:
        return False
    return len(left.parts) == len(right.parts) and all(
        same(item, other, with_ids=with_ids) for item, other in zip(left.parts, right.parts, strict=True)
    )


def _check(source: PaimonDataType, target: PaimonDataType, name: str) -> None:
    if same(source, target):
        return
    if source.root == target.root == "ROW":
        by_id = {field.id: field for field in source.fields}
        for field in target.fields:
            if field.id in by_id:
                _check(by_id[field.id].type, field.type, f"{name}.{field.name}")
        return
    if source.root == target.root == "ARRAY" and source.element and target.element:
        _check(source.element, target.element, f"{name}[]")
        return
    if source.root == target.root == "MAP" and source.key and target.key and source.element and target.element:
        if same(source.key, target.key):
            _check(source.element, target.element, f"{name}[]")
            return
    elif source.root not in _NESTED and target.root not in _NESTED and castable(source, target):
        return
    raise refusal(features.CASTS, column=name, before=type_text(source), after=type_text(target))


def evolve(batch: pa.RecordBatch, mapping: ColumnMapping, path: str) -> pa.RecordBatch:
    """Return the rows of a file as the requested columns.

    Args:
        batch: Rows with the columns of `mapping.sources`.
    """
    columns = []
    for target, source in mapping.targets:
        if source is None:
            columns.append(pa.nulls(batch.num_rows, arrow_type(target.type)))
            continue
        try:
            columns.append(_evolve_values(batch.column(source.name), source.type, target.type))
        except NotCastableError as error:
            raise refusal(features.CASTS_OF_VALUES, column=target.name, path=path, reason=error) from error
    return pa.RecordBatch.from_arrays(columns, names=[target.name for target, _ in mapping.targets])


def _evolve_values(values: pa.Array, source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    dtype = arrow_type(target)
    if values.type == dtype and same(source, target):
        return values
    if source.root == "ROW":
        return _evolve_row(values, source, target)
    if source.root == "ARRAY" and source.element and target.element:
        return with_items(values, dtype, _evolve_values(values.values, source.element, target.element))
    if source.root == "MAP" and source.element and target.element and source.key and target.key:
        keys = _evolve_values(values.keys, source.key, target.key)
        return with_entries(values, dtype, keys, _evolve_values(values.items, source.element, target.element))
    if same(source, target):  # a MULTISET or VECTOR whose elements differ in nullability
        return values.cast(dtype)
    return cast(values, source, target)


def _evolve_row(values: pa.StructArray, source: PaimonDataType, target: PaimonDataType) -> pa.Array:
    by_id = {field.id: (index, field.type) for index, field in enumerate(source.fields)}
    # The fields of a null row may contain any value: flatten() makes them null, so that they are not cast.
    parts = values.flatten()
    children = []
    for field in target.fields:
        if field.id in by_id:
            index, dtype = by_id[field.id]
            children.append(_evolve_values(parts[index], dtype, field.type))
        else:
            children.append(pa.nulls(len(values), arrow_type(field.type)))
    return with_fields(values, arrow_type(target), children)
