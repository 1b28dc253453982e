"""Which changes of a column's type old data files may be read under.

Source: delta PROTOCOL.md, "Type Widening".
"""

from snapshot_explorer.formats.delta.log.data_types import DataType, parse_type

_INTEGERS = {"byte": 1, "short": 2, "integer": 4, "long": 8}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""Digits before the point that a decimal must have to hold every value."""


def is_widening(before: DataType, after: DataType) -> bool:
    """Return whether a change of an atomic type is one that keeps every value."""
    if before == after or before.root == "void":
        return True
    if before.root in _INTEGERS and after.root in _INTEGERS:
        return _INTEGERS[before.root] < _INTEGERS[after.root]
    if after.root == "double":
        return before.root in ("float", "byte", "short", "integer")
    if after.root == "decimal" and before.root in _DIGITS:
        return after.precision - after.scale >= _DIGITS[before.root]
    if before.root == after.root == "decimal":
        more = after.scale - before.scale
        return 0 <= more <= after.precision - before.precision
    return before.root == "date" and after.root == "timestamp_ntz"


def is_allowed(before: str, after: str) -> bool:
    """Return whether a change that a schema lists is one that is read."""
    try:
        return is_widening(parse_type(before), parse_type(after))
    except ValueError:
        return False
