"""The distinct partition tuples of files: each file refers to its tuple by a number."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.decimals import minimal_bytes
from snapshot_explorer.formats.iceberg.metadata.avro_files import arrow_type, without_null


class PartitionTuples:
    """Numbers partition tuples by spec, in the order in which they are found."""

    def __init__(self, specs: Mapping[int, Mapping[str, Any]], expected: Iterable[int] = ()) -> None:
        """Start without tuples.

        Args:
            specs: The partition specs of the table by id, as JSON.
            expected: The ids of specs whose tuples will be found.
        """
        self._specs = specs
        self._known: dict[int, dict[tuple[Any, ...], int]] = {spec_id: {} for spec_id in expected}
        self._fields: dict[int, dict[str, pa.DataType]] = {spec_id: {} for spec_id in expected}

    def numbered(self, spec_ids: pa.Array, tuples: pa.StructArray, schema: Any, *, by_name: bool) -> pa.Array:
        """Return the number of each tuple within its spec.

        Args:
            schema: The Avro schema of the tuples.
            by_name: Whether fields have the names of their spec, not their ids.
        """
        numbers = np.zeros(len(tuples), np.int32)
        for spec_id in pc.unique(spec_ids).to_pylist():
            where = np.flatnonzero(pc.equal(spec_ids, spec_id).to_numpy(zero_copy_only=False))
            rows = tuples if len(where) == len(tuples) else tuples.take(pa.array(where))
            of_spec = _by_ids(rows, schema, self._specs.get(spec_id, {})) if by_name else (rows, schema)
            numbers[where] = self._of_spec(spec_id, *of_spec)
        return pa.array(numbers)

    @property
    def specs(self) -> Collection[int]:
        """The ids of the specs that have tuples, or will have some."""
        return self._known.keys()

    def arrays(self, starts: Mapping[int, int] | None = None) -> Mapping[int, pa.StructArray]:
        """Return the distinct tuples of each spec, by their numbers; only those from some number on, by spec."""
        return {spec_id: self._array(spec_id, (starts or {}).get(spec_id, 0)) for spec_id in self._known}

    def _of_spec(self, spec_id: int, rows: pa.StructArray, schema: Any) -> npt.NDArray[np.int32]:
        fields = self._fields.setdefault(spec_id, {})
        for part in rows.type:
            if pa.types.is_null(fields.get(part.name, pa.null())):
                fields[part.name] = part.type
        known = self._known.setdefault(spec_id, {})
        names = list(fields)
        codes, firsts = _codes(rows)
        distinct = rows.take(pa.array(firsts)) if rows.type.num_fields else rows.slice(0, len(firsts))
        values = dict(_columns(distinct, schema))
        absent = [None] * len(firsts)
        keys = zip(*(values.get(name, absent) for name in names), strict=True) if names else [()] * len(firsts)
        numbers = [known.setdefault(key, len(known)) for key in map(tuple, keys)]
        return np.array(numbers, np.int32)[codes]

    def _array(self, spec_id: int, start: int) -> pa.StructArray:
        known, fields = self._known[spec_id], self._fields[spec_id]
        keys = list(itertools.islice(known, start, None)) if len(known) > start else []
        if not fields:
            return pa.array([{}] * len(keys), pa.struct([]))
        # A tuple that was found before a field has no value of it.
        rows = [key + (None,) * (len(fields) - len(key)) for key in keys]
        arrays = [pa.array([_value(row[index]) for row in rows], dtype) for index, dtype in enumerate(fields.values())]
        return pa.StructArray.from_arrays(arrays, names=list(fields))


def _by_ids(rows: pa.StructArray, schema: Any, spec: Mapping[str, Any]) -> tuple[pa.StructArray, Any]:
    """Return tuples and their Avro schema, whose fields have the names of a spec, with its field ids as names."""
    if not rows.type.num_fields:
        return rows, schema
    ids = {field["name"]: str(field["field-id"]) for field in spec.get("fields", ())}
    names = [ids.get(part.name, part.name) for part in rows.type]
    fields = [{**field, "name": ids.get(field["name"], field["name"])} for field in schema["fields"]]
    return pa.StructArray.from_arrays(rows.flatten(), names=names), {**schema, "fields": fields}


def _codes(rows: pa.StructArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a code per tuple, equal for bitwise equal tuples, and the index of the first tuple of each code."""
    codes = np.zeros(len(rows), np.int64)
    for column in rows.flatten():
        bits = _bits(column)
        encoded = bits.dictionary_encode()
        more = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
        together = codes * (len(encoded.dictionary) + 1) + more
        codes = np.unique(together, return_inverse=True)[1].astype(np.int64)
    _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
    return codes.astype(np.int64), firsts.astype(np.int64)


def _bits(column: pa.Array) -> pa.Array:
    """Return floats as the integers of their bits: 0.0 and -0.0 differ, all NaN are equal."""
    if not pa.types.is_float64(column.type):
        return column
    plain = pc.if_else(pc.is_nan(column), pa.scalar(float("nan")), column)
    return plain.view(pa.int64())


class _Real(bytes):
    """A float as its bits, compared bit by bit."""


def _columns(rows: pa.StructArray, schema: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield the name and the values of each field, decimals in the fewest bytes."""
    avro_types = (
        {field["name"]: field["type"] for field in schema.get("fields", [])} if isinstance(schema, dict) else {}
    )
    for part, column in zip(rows.type, rows.flatten(), strict=True):
        values: list[Any] = column.to_pylist()
        if _is_decimal(avro_types.get(part.name)):
            values = [None if value is None else _fewest(value) for value in values]
        elif pa.types.is_float64(part.type):
            values = [
                None if value is None else _Real(np.float64("nan" if np.isnan(value) else value).tobytes())
                for value in values
            ]
        yield part.name, values


def _is_decimal(schema: Any) -> bool:
    plain = without_null(schema)
    return isinstance(plain, dict) and plain.get("logicalType") == "decimal" and arrow_type(plain) == pa.binary()


def _fewest(value: bytes) -> bytes:
    """Return an unscaled decimal in the fewest bytes: files of one partition may have it in different widths."""
    return minimal_bytes(int.from_bytes(value, "big", signed=True))


def _value(value: Any) -> Any:
    return np.frombuffer(value, np.float64)[0] if isinstance(value, _Real) else value
