"""Random values of every type of Paimon, in the form that `paimon_core.py` takes, and what types may become."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.scripts.tables_of_merges import row_type

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXTS = (
    "",
    "a",
    "b",
    "ä",
    "🦊 fox",
    " ",
    "it's",
    'say "x"',
    "a long text beyond sixteen",
    "a long text beyond six",
    "Z\t",
    "%",
)
_DAYS = (0, -1, 1, 20_000, -25_567, 2_932_896, -141_427)
"""The days 1970-01-01 and its neighbours, one of 2024, 1900-01-01, 9999-12-31 and the Gregorian calendar's first."""

_FLOATS = (0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 3.0e38, 1.0e-40, 123456.789, -1.0, 0.1)
SIMPLE = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(18, 3)",
    "DECIMAL(38, 10)", "CHAR(4)", "VARCHAR(12)", "STRING", "BINARY(3)", "VARBINARY(6)", "BYTES", "DATE", "TIME(0)",
    "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE",
)  # fmt: skip
NESTED: tuple[Any, ...] = (
    {"type": "ARRAY", "element": "INT"},
    {"type": "ARRAY", "element": {"type": "ARRAY", "element": "STRING"}},
    {"type": "ARRAY", "element": row_type(p="BIGINT", q="TIMESTAMP(3)")},
    {"type": "MAP", "key": "STRING", "value": "DECIMAL(5, 2)"},
    {"type": "MAP", "key": "INT", "value": {"type": "ARRAY", "element": "DATE"}},
    {"type": "MULTISET", "element": "STRING"},
    row_type(x="INT", y="STRING", z="TIMESTAMP(6)"),
    row_type(x=row_type(a="BYTES", b="BOOLEAN"), m={"type": "MAP", "key": "STRING", "value": "INT"}),
)
KEYS = (
    "TINYINT", "INT", "INT", "BIGINT", "STRING", "STRING", "DATE", "DECIMAL(10, 2)", "DECIMAL(25, 2)", "TIMESTAMP(3)",
    "TIMESTAMP(6)", "VARCHAR(8)", "SMALLINT",
)  # fmt: skip
PARTS = ("INT", "STRING", "DATE", "BOOLEAN", "BIGINT", "TIMESTAMP(3)", "DECIMAL(5, 2)")
SUCCESSORS = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT", "DOUBLE", "STRING", "DECIMAL(10, 2)"),
    "SMALLINT": ("INT", "BIGINT", "TINYINT", "STRING", "FLOAT"),
    "INT": ("BIGINT", "SMALLINT", "DOUBLE", "STRING", "DECIMAL(12, 2)", "FLOAT"),
    "BIGINT": ("INT", "STRING", "DOUBLE", "DECIMAL(25, 3)", "TINYINT"),
    "FLOAT": ("DOUBLE", "STRING", "INT", "BIGINT"),
    "DOUBLE": ("FLOAT", "STRING", "INT", "BIGINT", "SMALLINT"),
    "BOOLEAN": ("STRING", "INT"),
    "DECIMAL": ("STRING", "DOUBLE", "DECIMAL(38, 5)", "DECIMAL(6, 1)", "BIGINT"),
    "DATE": ("STRING", "TIMESTAMP(6)"),
    "TIME": ("STRING",),
    "TIMESTAMP": ("STRING", "DATE", "TIMESTAMP(3)", "TIMESTAMP(9)"),
    "STRING": ("VARCHAR(5)", "CHAR(8)", "BYTES"),
    "VARCHAR": ("STRING", "VARCHAR(3)"),
    "CHAR": ("STRING",),
    "VARBINARY": ("BYTES", "BINARY(4)"),
    "BINARY": ("BYTES",),
}
"""What a column of a type may become; Paimon refuses some."""


class Dice(random.Random):
    """A source of random values."""

    far = False
    """Whether moments lie beyond the years 1677 to 2262 as well, which are not read from ORC in nanoseconds."""


def root(kind: Any) -> str:
    """Return the name of a type, without its numbers."""
    return (kind["type"] if isinstance(kind, dict) else kind).split("(")[0].split(" ")[0]


def numbers(kind: str) -> list[int]:
    """Return the numbers of a type."""
    return [int(word) for word in kind.partition("(")[2].partition(")")[0].split(",") if word]


def value(dice: Dice, kind: Any, *, nulls: float = 0.2) -> Any:
    """Return a value of a type; null with the given chance, where it may be."""
    if not str(kind).endswith("NOT NULL") and dice.random() < nulls:
        return None
    if isinstance(kind, dict):
        return _nested(dice, kind)
    return _MAKERS[root(kind)](dice, kind)


def _nested(dice: Dice, kind: dict[str, Any]) -> Any:
    count = dice.randrange(4)
    if kind["type"] == "ROW":
        return tuple(value(dice, field["type"]) for field in kind["fields"])
    if kind["type"] == "ARRAY":
        return [value(dice, kind["element"]) for _ in range(count)]
    keys = {value(dice, kind.get("key", kind.get("element")), nulls=0) for _ in range(count)}
    return [(key, value(dice, kind.get("value", "INT NOT NULL"))) for key in sorted(keys)]


def _whole(bits: int) -> Callable[[Dice, str], int]:
    top = 2 ** (bits - 1)
    return lambda dice, _: dice.choice((0, 1, -1, dice.randrange(10), dice.randrange(-100, 100), top - 1, -top))


def _decimal(dice: Dice, kind: str) -> Decimal:
    precision, scale = numbers(kind)
    unscaled = dice.choice((0, 1, -1, dice.randrange(10**precision), -dice.randrange(1000), 10**precision - 1))
    return Decimal(f"{unscaled}e-{scale}")


def _moment(dice: Dice, kind: str) -> int:
    digits = numbers(kind)[0]
    far = digits <= 6 and dice.far
    day = dice.choice(_DAYS if far else _DAYS[:5])
    nanos = dice.choice((0, 1, dice.randrange(86_400 * 10**9), 86_400 * 10**9 - 1))
    step = 10 ** (9 - digits)
    return (day * 86_400 * 10**9 + nanos) // step * step


def _bytes(dice: Dice, kind: str) -> bytes:
    if root(kind) == "BINARY":
        return dice.randbytes(numbers(kind)[0])
    return dice.randbytes(dice.randrange(numbers(kind)[0] + 1 if numbers(kind) else 20))


def _text(dice: Dice, kind: str) -> str:
    text = dice.choice((*_TEXTS, str(dice.randrange(-50, 50))))
    if root(kind) == "CHAR":
        # As an engine of SQL fills it up. Paimon's core gives blanks at its end back, but for those in ORC files.
        return text[: numbers(kind)[0]].strip().ljust(numbers(kind)[0], dice.choice(". "))
    return text[: numbers(kind)[0]] if numbers(kind) else text


_MAKERS: dict[str, Callable[[Dice, str], Any]] = {
    "BOOLEAN": lambda dice, _: dice.random() < 0.5,
    "TINYINT": _whole(8),
    "SMALLINT": _whole(16),
    "INT": _whole(32),
    "BIGINT": _whole(64),
    "FLOAT": lambda dice, _: dice.choice(_FLOATS),
    "DOUBLE": lambda dice, _: dice.choice((*_FLOATS, 1e300, 2.0**53)),
    "DECIMAL": _decimal,
    "CHAR": _text,
    "VARCHAR": _text,
    "STRING": _text,
    "BINARY": _bytes,
    "VARBINARY": _bytes,
    "BYTES": _bytes,
    "DATE": lambda dice, _: dice.choice(_DAYS),
    "TIME": lambda dice, kind: dice.randrange(86_400) * 1000 + (dice.randrange(1000) if numbers(kind)[0] else 0),
    "TIMESTAMP": _moment,
    "VARIANT": lambda dice, _: dice.choice(('{"a":1,"b":[true,null,"x"]}', "12.5", '"text"', "[]", "null")),
    "BLOB": lambda dice, _: dice.randbytes(dice.randrange(300)),
}
