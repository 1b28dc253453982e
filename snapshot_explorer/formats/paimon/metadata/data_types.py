"""Paimon's data types: their text in schema files, and the Arrow types of their values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.records import FieldIds
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonDataType:
    """A Paimon type. Only the fields of its root are set."""

    root: str
    """BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, CHAR, VARCHAR, BINARY, VARBINARY, DATE,
    TIME, TIMESTAMP, TIMESTAMP_LTZ, VARIANT, BLOB, ARRAY, MAP, MULTISET, ROW or VECTOR. STRING and BYTES are
    VARCHAR and VARBINARY of the maximum length."""
    nullable: bool = True
    length: int | None = None
    """Characters, bytes, or the items of a VECTOR."""
    precision: int | None = None
    """Digits of a DECIMAL, fraction digits of a TIME or TIMESTAMP."""
    scale: int | None = None
    key: "PaimonDataType | None" = None
    element: "PaimonDataType | None" = None
    """Type of an ARRAY's, MULTISET's or VECTOR's items, and of a MAP's values."""
    fields: "tuple[PaimonField, ...]" = ()

    @property
    def parts(self) -> "list[PaimonDataType]":
        """The nested types: of keys, of items, of fields."""
        return [part for part in (self.key, self.element) if part] + [field.type for field in self.fields]

    def has(self, *roots: str) -> bool:
        """Return whether it, or a type in it, has one of these roots."""
        return self.root in roots or any(part.has(*roots) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonField:
    """A column, or a field of a ROW."""

    id: int
    """The id, which renames keep; never reused after a drop."""
    name: str
    type: PaimonDataType
    description: str | None = None


def parse_fields(raw: object) -> tuple[PaimonField, ...]:
    """Return the fields in a schema file.

    Raises: as `parse_type`, and KeyError, TypeError or ValueError if `raw` is not a list, or the id, name or type of a
        field is missing or invalid.
    """
    if not isinstance(raw, list):
        raise TypeError("its fields are not a list")
    return tuple(_field(item) for item in raw)


def _field(raw: Mapping[str, Any]) -> PaimonField:
    number, name, description = raw["id"], raw["name"], raw.get("description")
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"the id of a field is {number!r}")
    if not -_LARGEST_ID <= number <= _LARGEST_ID:
        raise ValueError(f"a field id must fit 32 bits, got {number}")
    if not isinstance(name, str):
        raise TypeError(f"the name of a field is {name!r}")
    if description is not None and not isinstance(description, str):
        raise TypeError(f"the description of the field {name!r} is not text")
    return PaimonField(id=number, name=name, type=parse_type(raw["type"]), description=description)


_LARGEST_ID = 2**31 - 1
_SYNONYMS = {
    "INTEGER": "INT",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "DOUBLE PRECISION": "DOUBLE",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
    "TIMESTAMP WITH LOCAL TIME ZONE": "TIMESTAMP_LTZ",
}
_ARROW = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.large_binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
    "VARIANT": pa.struct(
        # Readers such as Spark's need this metadata to recognize a variant.
        [pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]
    ),
}
_SPATIAL = ("GEOMETRY", "GEOGRAPHY")
MAX_LENGTH = 2_147_483_647
"""The length of STRING and BYTES."""
_PARTS = re.compile(r"<.*>", re.DOTALL)
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*|`[^`]*`|\d+|[<>(),])")


def parse_type(raw: object) -> PaimonDataType:
    """Return a type from its text or object in a schema file.

    Raises:
        ValueError: The text is not a type.

    Source: paimon docs, "Data Types"; paimon DataTypeJsonParser.
    """
    if isinstance(raw, str):
        return _TypeText(raw).parse()
    if not isinstance(raw, Mapping):
        raise ValueError(f"{raw!r} is not a type")  # noqa: TRY004 - the caller names the file
    # pypaimon 2.0 repeats the parts of a map in its word: MAP<STRING NOT NULL, BIGINT>.
    root, nullable = _split_nullable(_PARTS.sub("", str(raw["type"])))
    if root == "ROW":
        return PaimonDataType(root=root, nullable=nullable, fields=parse_fields(raw["fields"]))
    if root == "MAP":
        return PaimonDataType(
            root=root, nullable=nullable, key=parse_type(raw["key"]), element=parse_type(raw["value"])
        )
    if root in ("ARRAY", "MULTISET"):
        return PaimonDataType(root=root, nullable=nullable, element=parse_type(raw["element"]))
    if root == "VECTOR":
        length = _within(int(raw["length"]), 1, MAX_LENGTH)
        return PaimonDataType(root=root, nullable=nullable, element=parse_type(raw["element"]), length=length)
    raise ValueError(f"{root!r} is not a constructed type")


def _within(number: int, minimum: int, maximum: int) -> int:
    if not minimum <= number <= maximum:
        raise ValueError(f"{number} is not in the allowed range of {minimum} to {maximum}")
    return number


def _split_nullable(text: str) -> tuple[str, bool]:
    words = text.upper().split()
    if words[-2:] == ["NOT", "NULL"]:
        return " ".join(words[:-2]), False
    if words[-1:] == ["NULL"]:
        return " ".join(words[:-1]), True
    return " ".join(words), True


class _TypeText:
    """Reads a type from text such as `DECIMAL(5, 2) NOT NULL` or `MAP<STRING, ARRAY<INT>>`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._next = 0
        if _TOKEN.sub("", text).strip():
            raise ValueError(f"{text!r} is not a type")

    def parse(self) -> PaimonDataType:
        parsed = self._type()
        if self._next != len(self._tokens):
            raise ValueError(f"{self._text!r} is not a type")
        return parsed

    def _peek(self) -> str:
        return str(self._tokens[self._next]).upper() if self._next < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self._tokens[self._next] if self._next < len(self._tokens) else ""
        if not token or (expected and token.upper() != expected):
            raise ValueError(f"{self._text!r} is not a type")
        self._next += 1
        return str(token)

    def _type(self) -> PaimonDataType:
        name = self._take().upper()
        if name in ("ARRAY", "MULTISET", "MAP", "ROW", "VECTOR") and self._peek() == "<":
            parsed = self._constructed(name)
        else:
            parsed = self._atomic(name)
        parsed = replace(parsed, nullable=self._nullable())
        while self._peek() in ("ARRAY", "MULTISET"):
            parsed = PaimonDataType(root=self._take().upper(), element=parsed)
            parsed = replace(parsed, nullable=self._nullable())
        return parsed

    def _nullable(self) -> bool:
        if self._peek() == "NOT":
            self._take()
            self._take("NULL")
            return False
        if self._peek() == "NULL":
            self._take()
        return True

    def _constructed(self, root: str) -> PaimonDataType:
        self._take("<")
        if root == "ROW":
            fields = self._row_fields()
            self._take(">")
            return PaimonDataType(root=root, fields=fields)
        first = self._type()
        if root in ("MAP", "VECTOR"):
            self._take(",")
        parsed = {
            "MAP": lambda: PaimonDataType(root=root, key=first, element=self._type()),
            "VECTOR": lambda: PaimonDataType(
                root=root, element=first, length=_within(int(self._take()), 1, MAX_LENGTH)
            ),
        }.get(root, lambda: PaimonDataType(root=root, element=first))()
        self._take(">")
        return parsed

    def _row_fields(self) -> tuple[PaimonField, ...]:
        """Return the fields of a ROW in text form, which has no ids: they are numbered from 0."""
        fields: list[PaimonField] = []
        while True:
            name = self._take().strip("`")
            fields.append(PaimonField(id=len(fields), name=name, type=self._type()))
            if self._peek() != ",":
                return tuple(fields)
            self._take(",")

    def _numbers(self) -> list[int]:
        if self._peek() != "(":
            return []
        self._take("(")
        numbers = [int(self._take())]
        while self._peek() == ",":
            self._take(",")
            numbers.append(int(self._take()))
        self._take(")")
        return numbers

    def _atomic(self, name: str) -> PaimonDataType:
        if name in _SPATIAL:
            raise refusal(features.SPATIAL_TYPES, type=self._text)
        if name == "DOUBLE" and self._peek() == "PRECISION":
            self._take()
        numbers = self._numbers()
        name = self._zoned(_SYNONYMS.get(name, name))
        if name in ("STRING", "BYTES"):
            return PaimonDataType(root="VARCHAR" if name == "STRING" else "VARBINARY", length=MAX_LENGTH)
        if name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
            return PaimonDataType(root=name, length=(numbers or [1])[0])
        if name == "DECIMAL":
            precision, scale = (numbers or [10])[0], (numbers[1:] or [0])[0]
            return PaimonDataType(root=name, precision=_within(precision, 1, 38), scale=_within(scale, 0, precision))
        if name == "TIME":
            return PaimonDataType(root=name, precision=_within((numbers or [0])[0], 0, 9))
        if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return PaimonDataType(root=name, precision=_within((numbers or [6])[0], 0, 9))
        if name not in _ARROW:
            raise refusal(features.UNKNOWN_TYPES, type=self._text)
        return PaimonDataType(root=name)

    def _zoned(self, name: str) -> str:
        """Return the type name with an optional WITH [LOCAL] TIME ZONE or WITHOUT TIME ZONE."""
        words: list[str] = []
        while self._peek() in ("WITH", "WITHOUT", "LOCAL", "TIME", "ZONE"):
            words.append(self._take().upper())
        text = " ".join([name, *words])
        return _SYNONYMS.get(text, name if not words or words[0] == "WITHOUT" else text)


def arrow_type(data_type: PaimonDataType) -> pa.DataType:
    """Return the Arrow type of values of a Paimon type.

    TIMESTAMP(p) is a timestamp of s, ms, us or ns without zone (p 0, 1-3, 4-6, 7-9; p 0 is kept in ms), its LTZ
    form the same in UTC. TIME is time32[ms], MULTISET a map to int32, VARIANT a struct of value and metadata.

    Raises:
        ValueError: A nested type lacks the type of its items or keys, which `parse_type` never returns.
    """
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        unit = "ms" if (data_type.precision or 0) <= 3 else "us" if (data_type.precision or 0) <= 6 else "ns"  # noqa: PLR2004
        return pa.timestamp(unit, tz="UTC" if data_type.root == "TIMESTAMP_LTZ" else None)
    if data_type.root == "DECIMAL":
        return pa.decimal128(data_type.precision or 10, data_type.scale or 0)
    if data_type.root == "ROW":
        return pa.struct([arrow_field(item) for item in data_type.fields])
    if data_type.root in _ARROW:
        return _ARROW[data_type.root]
    if data_type.element is None:
        raise ValueError(f"{data_type.root} without items")
    item = pa.field("element", arrow_type(data_type.element), nullable=data_type.element.nullable)
    if data_type.root == "ARRAY":
        return pa.list_(item)
    if data_type.root == "VECTOR":
        return pa.list_(item, data_type.length or 0)
    if data_type.root == "MULTISET":
        return pa.map_(arrow_type(data_type.element), pa.int32())
    if data_type.key is None:
        raise ValueError("MAP without keys")
    return pa.map_(arrow_type(data_type.key), pa.field("value", item.type, nullable=item.nullable))


def arrow_field(column: PaimonField) -> pa.Field:
    """Return the Arrow field of a column."""
    return pa.field(column.name, arrow_type(column.type), nullable=column.type.nullable)


def field_ids(data_type: PaimonDataType, number: int | None = None) -> FieldIds:
    """Return a column's id and its nested fields' ids."""
    if data_type.root == "ROW":
        return FieldIds(id=number, parts=tuple(field_ids(field.type, field.id) for field in data_type.fields))
    parts = [field_ids(part) for part in data_type.parts]
    return FieldIds(id=number, parts=(*parts, FieldIds(id=None)) if data_type.root == "MULTISET" else tuple(parts))


def type_text(data_type: PaimonDataType) -> str:
    """Return the SQL text of a type, without the outer NOT NULL."""
    if data_type.root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        if data_type.length == MAX_LENGTH:
            return "STRING" if data_type.root == "VARCHAR" else "BYTES"
        return f"{data_type.root}({data_type.length})"
    if data_type.root == "DECIMAL":
        return f"DECIMAL({data_type.precision}, {data_type.scale})"
    if data_type.root in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return f"{data_type.root}({data_type.precision})"
    if data_type.root == "ROW":
        return f"ROW<{', '.join(f'{item.name} {_spell_item(item.type)}' for item in data_type.fields)}>"
    if data_type.root == "VECTOR" and data_type.element:
        return f"VECTOR<{_spell_item(data_type.element)}, {data_type.length}>"
    if data_type.element:
        return (
            f"{data_type.root}<{', '.join(_spell_item(item) for item in (data_type.key, data_type.element) if item)}>"
        )
    return data_type.root


def _spell_item(data_type: PaimonDataType) -> str:
    return type_text(data_type) + ("" if data_type.nullable else " NOT NULL")
