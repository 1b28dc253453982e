"""Footers of parquet files, as other writers would have written them."""

import pyarrow as pa

from snapshot_explorer.arrow import thrift
from tests.inner.arrow import Field, structs

_REPEATED = 2
_I32, _BYTES, _STRUCT = 5, 8, 12
_REPETITION, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 3, 4, 5, 6, 10
_MAP_KEY_VALUE = 1 + 1
UNKNOWN, STRING = 11, 1
SPATIAL = {"geometry": 17, "geography": 18}
"""Fields of a logical type."""


def rewritten(content, change):
    """Return a parquet file whose footer is another; `change` changes the elements of the schema in place."""
    source = pa.BufferReader(content)
    tree = thrift.footer(source)
    for element in structs(tree, 2):
        change(element)
    footer = thrift.encode_struct(tree)
    length = int.from_bytes(content[-8:-4], "little")
    return content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def like_parquet_mr_1_11(content):
    """Return a file whose maps are as parquet-mr 1.11 writes them: the repeated group has the logical type UNKNOWN."""

    def change(element):
        if _value(element, _REPETITION) == _REPEATED and _value(element, _NAME) in (b"key_value", b"map"):
            with_types(element, UNKNOWN, converted=_MAP_KEY_VALUE)

    return rewritten(content, change)


def with_logical_type(content, logical, *names):
    """Return a file in which the groups of these names have a logical type."""

    def change(element):
        if _value(element, _CHILDREN) and _value(element, _NAME).decode() in names:
            with_types(element, logical)

    return rewritten(content, change)


def with_geometry(content, name, logical, crs=None):
    """Return a file in which a column has the logical type geometry or geography."""
    parts = [] if crs is None else [Field(1, _BYTES, crs.encode())]

    def change(element):
        if _value(element, _NAME) == name.encode():
            element.append(Field(_LOGICAL, _STRUCT, [Field(SPATIAL[logical], _STRUCT, parts)]))

    return rewritten(content, change)


def with_types(element, logical, converted=None):
    """Give an element of a schema a logical type, and maybe a converted one."""
    fields = {field.id: field for field in element} | {
        _LOGICAL: Field(_LOGICAL, _STRUCT, [Field(logical, _STRUCT, [])])
    }
    if converted is not None:
        fields[_CONVERTED] = Field(_CONVERTED, _I32, converted)
    element[:] = [fields[number] for number in sorted(fields)]


def _value(element, number):
    return next((field.value for field in element if field.id == number), None)
