"""Tables of every merge engine, for `make_paimon_java.py`: histories of adds and retracts, out of order and with nulls.

The rows come from a seeded generator, so that they are the same on every run. A commit holds a key at most once or
twice: what Paimon's write buffer merges is part of what is tested.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Change = tuple[str, tuple[Any, ...]]
"""A row kind (+I, -U, +U, -D) and the values."""


class Long(int):
    """An integer that py4j hands to Java as a long however small it is."""

    def __le__(self, other: object) -> bool:
        return False


@dataclass(frozen=True)
class Exact:
    """A decimal of a stated precision."""

    number: Decimal
    precision: int


@dataclass(frozen=True)
class Sketch:
    """A set of numbers as bytes, which Paimon's own classes make."""

    kind: str
    """RoaringBitmap32, RoaringBitmap64, HllSketchUtil or ThetaSketch."""
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class History:
    """A table and its commits, to be written without compaction and then compacted fully."""

    columns: dict[str, Any]
    options: dict[str, str]
    commits: list[list[Change]]
    later: dict[str, str | None] = field(default_factory=dict)
    """Options that a second schema file changes after the commits, or with None removes: they rule all versions.
    Paimon itself refuses to change them, so that this file is written by hand."""
    compact: bool = True
    keys: str = "k"


def _array(**fields: str) -> dict[str, Any]:
    return {"type": "ARRAY", "element": row_type(**fields)}


def row_type(**fields: str) -> dict[str, Any]:
    """Return a ROW type as schema files write it."""
    listed = [{"id": index, "name": name, "type": kind} for index, (name, kind) in enumerate(fields.items())]
    return {"type": "ROW", "fields": listed}


def _commits(
    seed: int, make: Callable[[random.Random, int], tuple[Any, ...]], *, kinds: str, count: int = 3, keys: int = 24
) -> list[list[Change]]:
    """Return commits of random rows; the first holds an add for most keys and a retract for some."""
    dice = random.Random(seed)
    words = kinds.split()
    return [
        [
            (dice.choice(words), make(dice, key))
            for key in sorted(dice.choices(range(keys), k=keys))
            if number or dice.random() < 0.8
        ]
        for number in range(count)
    ]


def _maybe(dice: random.Random, value: Any, chance: float = 0.3) -> Any:
    return None if dice.random() < chance else value


def _text(dice: random.Random) -> str | None:
    return _maybe(dice, dice.choice("abcdefgh"))


def _whole(dice: random.Random, limit: int = 5) -> int | None:
    return _maybe(dice, dice.randrange(limit), 0.2)


_GROUPS = {
    "k": "INT NOT NULL",
    "x": "STRING",
    "g1": "INT",
    "y": "STRING",
    "g2": "INT",
    "z": "STRING",
    "g3": "INT",
    "plain": "STRING",
}


def _group_row(dice: random.Random, key: int) -> tuple[Any, ...]:
    return (
        key,
        _text(dice),
        _whole(dice),
        _text(dice),
        _whole(dice, 3),
        _text(dice),
        _whole(dice, 3),
        _text(dice),
    )


_TWO_GROUPS = {
    "merge-engine": "partial-update",
    "fields.g1.sequence-group": "x,y",
    "fields.g2,g3.sequence-group": "z",
}
_IN_GROUP = {
    "total": ("BIGINT", "sum"),
    "most": ("INT", "max"),
    "least": ("INT", "min"),
    "lv": ("STRING", "last_value"),
    "lnv": ("STRING", "last_non_null_value"),
    "fv": ("STRING", "first_value"),
    "fnv": ("STRING", "first_non_null_value"),
    "texts": ("STRING", "listagg"),
    "all_of": ({"type": "ARRAY", "element": "INT"}, "collect"),
}
_WITHOUT_RETRACT = ("most", "least", "fv", "fnv", "texts", "yes", "both", "nested_part", "timed", "words")


def _functions(functions: dict[str, tuple[Any, str]]) -> dict[str, str]:
    options = {f"fields.{name}.aggregate-function": function for name, (_, function) in functions.items()}
    ignoring = {f"fields.{name}.ignore-retract": "true" for name in functions if name in _WITHOUT_RETRACT}
    return options | ignoring


def _in_group_row(dice: random.Random, key: int) -> tuple[Any, ...]:
    return (
        key,
        _whole(dice),
        _maybe(dice, Long(dice.randrange(-9, 99))),
        _whole(dice, 50),
        _whole(dice, 50),
        *(_text(dice) for _ in range(4)),
        _maybe(dice, dice.choice(["p", "q", "r s", "p,q"])),
        _maybe(dice, [dice.randrange(4) for _ in range(dice.randrange(3))]),
    )


_AGGREGATES: dict[str, tuple[Any, str]] = {
    **_IN_GROUP,
    "times": ("DOUBLE", "product"),
    "money": ("DECIMAL(10, 2)", "sum"),
    "yes": ("BOOLEAN", "bool_or"),
    "both": ("BOOLEAN", "bool_and"),
    "words": ("STRING", "listagg"),
    "set_of": ({"type": "ARRAY", "element": "INT"}, "collect"),
    "map": ({"type": "MAP", "key": "STRING", "value": "INT"}, "merge_map"),
    "default": ("STRING", "last_non_null_value"),
}


def _aggregate_row(dice: random.Random, key: int) -> tuple[Any, ...]:
    first = _in_group_row(dice, key)
    return (
        key,
        *first[2:],
        _maybe(dice, float(dice.choice([1, 2, 4, -0.5]))),
        _maybe(dice, Decimal(dice.randrange(-999, 999)).scaleb(-2)),
        _maybe(dice, dice.random() < 0.5),
        _maybe(dice, dice.random() < 0.5),
        _maybe(dice, dice.choice(["p;q", "q", "r;;s", "p", "q;p"])),
        _maybe(dice, [_whole(dice, 4) for _ in range(dice.randrange(4))]),
        _maybe(dice, {dice.choice("pqr"): _whole(dice) for _ in range(dice.randrange(3))}),
        _text(dice),
    )


def _nested(dice: random.Random) -> list[Any] | None:
    ids = dice.sample([None, 0, 1, 2], dice.randrange(4))  # what becomes of two rows of one id depends on the release
    return _maybe(dice, [(number, _text(dice), _whole(dice)) for number in ids], 0.15)


_NESTED: dict[str, tuple[Any, str]] = {
    "keyed": (_array(id="INT", v="STRING", n="INT"), "nested_update"),
    "listed": (_array(id="INT", v="STRING", n="INT"), "nested_update"),
    "nested_part": (_array(id="INT", v="STRING", n="INT"), "nested_partial_update"),
    "timed": ({"type": "MAP", "key": "STRING", "value": row_type(v="INT", at="STRING")}, "merge_map_with_keytime"),
    "rows": (_array(id="INT", v="STRING", n="INT"), "collect"),
}


def _nested_row(dice: random.Random, key: int) -> tuple[Any, ...]:
    timed = {dice.choice("pqr"): _maybe(dice, (_whole(dice), _text(dice)), 0.1) for _ in range(dice.randrange(4))}
    return (key, *(_nested(dice) for _ in range(3)), _maybe(dice, timed), _nested(dice))


_LIMITED: dict[str, tuple[Any, str]] = {
    "listed": (_array(id="INT", v="STRING", n="INT"), "nested_update"),
    "keyed": (_array(id="INT", v="STRING", n="INT"), "nested_update"),
}
_SKETCHES: dict[str, tuple[Any, str]] = {
    "bits": ("BYTES", "rbm32"),
    "hll": ("BYTES", "hll_sketch"),
    "theta": ("BYTES", "theta_sketch"),
}


def _sketch_row(dice: random.Random, key: int) -> tuple[Any, ...]:
    """Return sets of numbers in a row, of scattered ones and, for a few keys, of so many that sketches estimate."""
    made: list[Sketch | None] = []
    for kind in ("RoaringBitmap32", "HllSketchUtil", "ThetaSketch"):
        start, count = dice.randrange(40), dice.choice([0, 1, 2, 3, 3, 7, 30])
        numbers = range(start, start + count)
        if dice.random() < 0.3:
            numbers = sorted(dice.sample(range(70_000), count))
        if key == 0 and kind != "ThetaSketch":
            numbers = range(start * 100, start * 100 + 3000, 1 if kind == "RoaringBitmap32" else 7)
        made.append(_maybe(dice, Sketch(kind, tuple(numbers)), 0.15))
    return (key, *made)


def _wide_row(dice: random.Random, key: int) -> tuple[Any, ...]:
    """Return a set of 64-bit numbers: runs, a large container, or ones that differ in one of their upper bytes."""
    shift, start = dice.choice([16, 24, 40, 56]), dice.choice([0, 0, 1 << 40, -(1 << 60)])
    count = 0 if key == 0 else dice.choice([1, 2, 3, 5, 12, 20, 30])
    if key in (2, 3):
        shift, start, count = 16, 0, 30
    numbers = [_signed(start | byte << shift | key) for byte in dice.sample(range(256), count)]
    if key == 1:
        numbers = [*range(-20, 20 * dice.randrange(5)), *range(70_000, 79_000 if dice.random() < 0.5 else 70_009, 2)]
    return key, _maybe(dice, Sketch("RoaringBitmap64", tuple(numbers)), 0.1)


def _signed(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


_PLAIN = {"k": "INT NOT NULL", "a": "STRING", "b": "INT", "c": "STRING"}


def _plain_row(dice: random.Random, key: int) -> tuple[Any, ...]:
    return key, _text(dice), _whole(dice), _text(dice)


def _columns(functions: dict[str, tuple[Any, str]], **first: str) -> dict[str, Any]:
    return {"k": "INT NOT NULL", **first, **{name: kind for name, (kind, _) in functions.items()}}


_ADDS, _BOTH = "+I +U", "+I +I +I +U -U -D"
_AGGREGATION = {"merge-engine": "aggregation"}
_OVERFLOWING: list[list[Change]] = [
    [("+I", (key, Decimal("99.99"), Exact(Decimal("9" * 20), 20), Exact(Decimal("9" * 38), 38)))
     for key in range(3)],
    [("+I", (0, Decimal("0.00"), Exact(Decimal(1), 20), Exact(Decimal(0), 38))),
     ("+I", (1, Decimal("-0.01"), Exact(Decimal(-1), 20), Exact(Decimal(1), 38)))],
    [("+I", (0, Decimal("0.00"), Exact(Decimal(5), 20), Exact(Decimal(-1), 38))),
     ("-U", (1, Decimal("1.01"), Exact(Decimal(7), 20), Exact(Decimal(3), 38)))],
]  # fmt: skip

HISTORIES: dict[str, History] = {
    "partial_groups_retract": History({**_GROUPS}, {**_TWO_GROUPS}, _commits(2, _group_row, kinds=_BOTH, keys=40)),
    "partial_groups_remove": History(
        {**_GROUPS},
        {**_TWO_GROUPS, "partial-update.remove-record-on-sequence-group": "g1"},
        _commits(3, _group_row, kinds=_BOTH, keys=40),
    ),
    "partial_aggregates": History(
        _columns(_IN_GROUP, g="INT"),
        {
            "merge-engine": "partial-update",
            "fields.g.sequence-group": ",".join(_IN_GROUP),
            **_functions(_IN_GROUP),
        },
        _commits(4, _in_group_row, kinds=_BOTH, keys=40),
    ),
    "partial_remove": History(
        _PLAIN,
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        _commits(5, _plain_row, kinds=_BOTH, keys=40),
    ),
    "partial_ignore_delete": History(
        _PLAIN,
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        _commits(6, _plain_row, kinds=_BOTH, keys=40),
        {"partial-update.remove-record-on-delete": None, "ignore-delete": "true"},
    ),
    "aggregates": History(
        _columns(_AGGREGATES),
        {
            **_AGGREGATION,
            **_functions(_AGGREGATES),
            "fields.set_of.distinct": "true",
            "fields.words.distinct": "true",
            "fields.words.list-agg-delimiter": ";",
        },
        _commits(7, _aggregate_row, kinds=_BOTH, keys=30),
    ),
    "aggregates_nested": History(
        _columns(_NESTED),
        {
            **_AGGREGATION,
            **_functions(_NESTED),
            "fields.keyed.nested-key": "id",
            "fields.nested_part.nested-key": "id",
            "fields.rows.distinct": "true",
        },
        _commits(8, _nested_row, kinds=_BOTH, keys=30),
    ),
    "aggregates_limited": History(
        _columns(_LIMITED),
        {
            **_AGGREGATION,
            **_functions(_LIMITED),
            "fields.listed.count-limit": "3",
            "fields.keyed.count-limit": "8",
            "fields.keyed.nested-key": "id",
        },
        _commits(13, lambda dice, key: (key, _nested(dice), _nested(dice)), kinds=_BOTH, keys=30),
    ),
    "aggregates_sketches": History(
        _columns(_SKETCHES),
        {**_AGGREGATION, **_functions(_SKETCHES)},
        _commits(14, _sketch_row, kinds=_ADDS, keys=12),
    ),
    "aggregates_bitmaps": History(
        _columns({"bits": ("BYTES", "rbm64")}),
        {**_AGGREGATION, **_functions({"bits": ("BYTES", "rbm64")})},
        _commits(15, _wide_row, kinds=_ADDS, keys=12, count=4),
    ),
    "aggregates_remove": History(
        {**_PLAIN, "s": "BIGINT", "f": "STRING"},
        {
            **_AGGREGATION,
            "aggregation.remove-record-on-delete": "true",
            "fields.default-aggregate-function": "last_value",
            "fields.b.aggregate-function": "sum",
            "fields.c.aggregate-function": "last_non_null_value",
            "fields.f.aggregate-function": "first_value",
        },
        _commits(
            9,
            lambda dice, key: (*_plain_row(dice, key), _maybe(dice, Long(1)), _text(dice)),
            kinds="+I +I +U -D",
            keys=40,
        ),
    ),
    "aggregates_descending": History(
        {**_PLAIN, "s": "INT"},
        {
            **_AGGREGATION,
            "sequence.field": "b,s",
            "sequence.field.sort-order": "descending",
            "fields.c.aggregate-function": "last_value",
        },
        _commits(10, lambda dice, key: (*_plain_row(dice, key), _whole(dice, 2)), kinds=_BOTH, keys=40),
    ),
    "aggregates_overflow": History(
        {"k": "INT NOT NULL", "small": "DECIMAL(4, 2)", "wide": "DECIMAL(20, 0)", "whole": "DECIMAL(38, 0)"},
        {**_AGGREGATION, "fields.default-aggregate-function": "sum"},
        _OVERFLOWING,
        compact=False,
    ),
    "aggregates_refused": History(
        _PLAIN,
        {**_AGGREGATION, "fields.b.aggregate-function": "max"},
        [[("+I", (1, "a", 1, None))], [("-D", (1, "a", 1, None))]],
        compact=False,
    ),
}


def lookup_commits() -> list[list[Change]]:
    """Return the commits of a table that compacts as it is written: keys meet on several levels."""
    return _commits(12, lambda dice, key: (key, Long(dice.randrange(1, 9)), _text(dice)), kinds="+I", count=4, keys=12)
