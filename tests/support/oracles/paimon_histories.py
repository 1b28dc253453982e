"""Histories of tables for `paimon_write.py`: random ones, led by a seed, and one for each kind of table.

Nothing here needs Java until a history is written through the core that is handed to it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.scripts import tables_of_files
from tests.scripts.tables_of_merges import HISTORIES, row_type
from tests.support.oracles.paimon_scenario import KEPT, Scenario
from tests.support.oracles.paimon_values import KEYS, NESTED, PARTS, SIMPLE, root, value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.oracles.paimon_values import Dice


def keyed(scenario: Scenario, *, engine: str = "deduplicate", **options: str) -> None:
    """Write a random table with a primary key."""
    dice = scenario.dice
    scenario.options = {
        "bucket": dice.choice(("1", "1", "2", "3", "-1")),
        "file.format": dice.choice(("parquet", "parquet", "orc", "avro")),
        "num-sorted-run.compaction-trigger": dice.choice(("2", "3", "10")),
        "write-only": dice.choice(("true", "false")),
        "manifest.merge-min-count": dice.choice(("2", "30")),
        "merge-engine": engine,
    }
    if dice.random() < 0.3:
        scenario.options["metadata.stats-mode"] = dice.choice(("none", "counts", "full", "truncate(4)"))
    if dice.random() < 0.2:
        scenario.options["manifest.format"] = "orc"
    if dice.random() < 0.2:
        scenario.options["file.format.per.level"] = "0:avro"
        scenario.options["file.format"] = "parquet"
    scenario.options |= options
    _keys(scenario)
    for _ in range(dice.randrange(2, 7)):
        scenario.new_column(dice.choice(scenario.possible((*SIMPLE, *SIMPLE, *NESTED))))
    _engine(scenario, engine)
    scenario.options |= options
    scenario.create()
    _live(scenario)


def _keys(scenario: Scenario) -> None:
    dice = scenario.dice
    for _ in range(dice.choice((0, 0, 1, 2))):
        name = scenario.new_column(f"{dice.choice(PARTS)} NOT NULL")
        scenario.parts.append(name)
    own = [
        scenario.new_column(f"{dice.choice(scenario.possible(KEYS))} NOT NULL") for _ in range(dice.choice((1, 1, 2)))
    ]
    scenario.keys = [*scenario.parts, *own]
    dice.shuffle(scenario.keys)
    scenario.fixed |= set(scenario.keys)
    values = {
        name: [value(dice, scenario.columns[name]) for _ in range(3 if name in scenario.parts else 9)]
        for name in scenario.keys
    }
    scenario.pool = [{name: dice.choice(values[name]) for name in scenario.keys} for _ in range(30)]


def _engine(scenario: Scenario, engine: str) -> None:
    """Set the options of a merge engine, and what changes there may be."""
    dice, options = scenario.dice, scenario.options
    simple = [name for name, kind in scenario.columns.items() if name not in scenario.keys and isinstance(kind, str)]
    producers = {"deduplicate": "none none input lookup full-compaction", "first-row": "none lookup"}
    options["changelog-producer"] = dice.choice(producers.get(engine, "none none lookup full-compaction").split())
    scenario.kinds = ["+I", "+I", "+I", "+U", "-D", "-U"] if engine == "deduplicate" else ("+I", "+I", "+U")
    if engine != "first-row":
        if dice.random() < 0.4:
            chosen = [
                scenario.new_column(dice.choice(("INT", "BIGINT", "TIMESTAMP(3)"))) for _ in range(dice.choice((1, 2)))
            ]
            scenario.fixed |= set(chosen)
            options["sequence.field"] = ",".join(chosen)
            if dice.random() < 0.4 and scenario.release != "0.9":
                options["sequence.field.sort-order"] = "descending"
        if dice.random() < 0.3 and options["changelog-producer"] in ("none", "lookup"):
            options["deletion-vectors.enabled"] = "true"
            if scenario.release != "0.9" and dice.random() < 0.5:
                options["deletion-vectors.bitmap64"] = "true"
    if engine in ("partial-update", "first-row", "deduplicate") and dice.random() < 0.3:
        options["ignore-delete"] = "true"
        scenario.kinds = ["+I", "+I", "+I", "+U", "-D"]
    if engine == "aggregation":
        for name in simple:
            function = dice.choice(_FUNCTIONS.get(root(scenario.columns[name]), ("last_value", "last_non_null_value")))
            if function:
                options[f"fields.{name}.aggregate-function"] = function
                scenario.fixed.add(name)


_FUNCTIONS = {
    **dict.fromkeys(("INT", "SMALLINT", "TINYINT", "BIGINT"), ("max", "min", "last_value", "first_value", "")),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("sum", "max", "min", "last_value", "")),
    "DECIMAL": ("max", "min", "first_value", ""),
    "BOOLEAN": ("bool_or", "bool_and", "first_non_null_value"),
    "STRING": ("listagg", "max", "min", "last_non_null_value", ""),
    "TIMESTAMP": ("max", "min", "last_value"),
    "DATE": ("max", "min", "first_value"),
}


def _live(scenario: Scenario, steps: int = 9) -> None:
    """Let a table live: commits, compactions, changes of its schema."""
    scenario.commit()
    for _ in range(steps):
        draw = scenario.dice.random()
        if draw < 0.55:
            scenario.commit()
        elif draw < 0.75:
            scenario.compact()
        elif draw < 0.95:
            scenario.alter()
        else:
            scenario.overwrite()


def append(scenario: Scenario, **options: str) -> None:
    """Write a random table without a primary key."""
    dice = scenario.dice
    scenario.options = {"bucket": "-1", "file.format": dice.choice(("parquet", "parquet", "orc", "avro"))} | options
    if dice.random() < 0.3:
        scenario.options["metadata.stats-mode"] = dice.choice(("none", "counts", "full", "truncate(4)"))
    if dice.random() < 0.2:
        scenario.options["manifest.format"] = "orc"
    scenario.parts = [scenario.new_column(dice.choice(PARTS)) for _ in range(dice.choice((0, 0, 1, 2)))]
    for _ in range(dice.randrange(3, 8)):
        scenario.new_column(dice.choice(scenario.possible((*SIMPLE, *SIMPLE, *NESTED))))
    scenario.fixed |= set(scenario.parts)
    values = {name: [value(dice, scenario.columns[name]) for _ in range(3)] for name in scenario.parts}
    scenario.pool = [{name: dice.choice(of) for name, of in values.items()} for _ in range(9)]
    if dice.random() < 0.4 and "bucket" not in options:
        key = scenario.new_column("INT")
        scenario.fixed.add(key)
        scenario.options |= {"bucket": "3", "bucket-key": key, "compaction.max.file-num": "3"}
    scenario.create()
    _live(scenario)


def types(scenario: Scenario, file_format: str, *, keyed: bool) -> None:
    """Write a column of every type, with random values."""
    scenario.options = {"bucket": "2" if keyed else "-1", "file.format": file_format}
    scenario.dice.far, scenario.every_type = file_format != "orc", True
    if keyed:
        scenario.keys = [scenario.new_column("INT NOT NULL")]
        scenario.pool = [{scenario.keys[0]: number} for number in range(20)]
    else:
        scenario.pool = [{}]
    variants = ["VARIANT"] if scenario.release != "0.9" and file_format == "parquet" else []
    for kind in scenario.possible((*SIMPLE, *NESTED, *variants)):
        scenario.new_column(kind)
    scenario.create()
    for _ in range(3):
        scenario.commit()
    scenario.compact()


def merged(scenario: Scenario, kind: str) -> None:
    """Write the rows of a history of a merge engine, in another order, cut into other commits, with compactions."""
    history, dice = HISTORIES[kind], scenario.dice
    options = {"bucket": "1", "write-only": "true", "file.format": dice.choice(("avro", "parquet", "orc"))}
    scenario.core.create(scenario.name, history.columns, history.keys, KEPT | options | history.options)
    changes = [change for commit in history.commits for change in commit]
    kinds = sorted({change[0] for change in changes})
    for _ in range(6):
        count = dice.randrange(1, len(changes))
        chosen = [(dice.choice(kinds), values) for _, values in dice.sample(changes, count)]
        scenario.attempt("commit", lambda chosen=chosen: scenario.core.change(scenario.name, chosen))
        if dice.random() < 0.3:
            scenario.compact()


_COLLECTED = {
    "k": "INT NOT NULL",
    "rows": {"type": "ARRAY", "element": row_type(v="INT", text="STRING")},
    "deep": {"type": "ARRAY", "element": row_type(v="INT", inner={"type": "ARRAY", "element": row_type(n="BIGINT")})},
    "lists": {"type": "ARRAY", "element": {"type": "ARRAY", "element": "INT"}},
    "floats": {"type": "ARRAY", "element": row_type(x="DOUBLE")},
    "bytes": {"type": "ARRAY", "element": "BYTES"},
}


def collected(scenario: Scenario) -> None:
    """Write a table whose columns collect nested elements and bytes, equal ones among them, and take none back."""
    dice = scenario.dice
    options = {"bucket": "1", "write-only": "true", "file.format": dice.choice(("avro", "parquet", "orc"))}
    functions = {f"fields.{name}.aggregate-function": "collect" for name in _COLLECTED if name != "k"}
    scenario.core.create(scenario.name, _COLLECTED, "k", KEPT | options | {"merge-engine": "aggregation"} | functions)
    for _ in range(5):
        changes = [(dice.choice(("+I", "+U")), _collected_row(dice, key)) for key in range(12)]
        scenario.attempt("commit", lambda changes=changes: scenario.core.change(scenario.name, changes))
        if dice.random() < 0.3:
            scenario.compact()


def _collected_row(dice: Dice, key: int) -> tuple[Any, ...]:
    def some(make: Callable[[], Any]) -> Any:
        return None if dice.random() < 0.2 else [make() for _ in range(dice.randrange(3))]

    def number() -> Any:
        return dice.choice((None, 0, 1))

    return (
        key,
        some(lambda: (number(), dice.choice(("a", None)))),
        some(lambda: (number(), some(lambda: (None,)))),
        some(lambda: some(number)),
        some(lambda: (dice.choice((0.0, -0.0, None)),)),
        some(lambda: dice.choice((b"", b"xy"))),
    )


def zoned(scenario: Scenario) -> None:
    """Write ORC files on the clocks of several zones, with times around 1970 and 1900."""
    scenario.options = {"bucket": "-1", "file.format": "orc"}
    for kind in (*(one for one in SIMPLE if one.startswith("TIMESTAMP")), "DATE"):
        scenario.new_column(kind)
    scenario.pool = [{}]
    scenario.create()
    for zone in ("Asia/Shanghai", "America/Los_Angeles", "Asia/Kolkata", "GMT+08:00"):
        with scenario.core.clock_of(zone):
            scenario.commit(40)


def rescaled(scenario: Scenario) -> None:
    """Change the count of buckets, and write one of two partitions anew."""
    scenario.options = {"bucket": "2", "file.format": "orc"}
    part, key = scenario.new_column("STRING NOT NULL"), scenario.new_column("INT NOT NULL")
    scenario.new_column("STRING")
    scenario.parts, scenario.keys = [part], [part, key]
    scenario.pool = [{part: "xy"[number % 2], key: number} for number in range(40)]
    scenario.create()
    scenario.commit(40)
    scenario.commit(40)
    scenario.core.alter(scenario.name, scenario.core.paimon.schema.SchemaChange.setOption("bucket", "5"))
    scenario.pool = [key_ for key_ in scenario.pool if key_[part] == "x"]
    scenario.commit(40, overwrite={part: "x"})
    scenario.commit(40)


def crossing(scenario: Scenario) -> None:
    """Move keys between partitions, as a writer of a cross-partition table does: a delete there, a row here."""
    part, key, text = scenario.new_column("INT"), scenario.new_column("INT NOT NULL"), scenario.new_column("STRING")
    scenario.parts, scenario.keys, scenario.options = [part], [key], {"bucket": "-1"}
    scenario.create()
    homes: dict[int, int] = {}
    for _ in range(6):
        changes: list[tuple[Any, ...]] = []
        for number in scenario.dice.sample(range(20), 8):
            home = scenario.dice.randrange(3)
            if homes.get(number, home) != home:
                changes.append(("-D", (homes[number], number, None), number % 2))
            homes[number] = home
            changes.append(("+I", (home, number, value(scenario.dice, scenario.columns[text])), number % 2))
        scenario.core.change(scenario.name, changes)
    scenario.compact(full=True)


def evolving(scenario: Scenario) -> None:
    """Write columns of rows in files of their own, in random order, between changes of the schema."""
    scenario.options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    scenario.options["file.format"] = scenario.dice.choice(("parquet", "orc", "avro"))
    for kind in ("INT", "STRING", "BIGINT", *scenario.dice.sample(scenario.possible(SIMPLE), 3)):
        scenario.new_column(kind)
    blob = scenario.dice.random() < 0.5
    if blob:
        scenario.fixed.add(scenario.new_column("BLOB"))
        scenario.options["blob.target-file-size"] = "400 b"
    scenario.pool = [{}]
    scenario.create()
    files: list[tuple[int, int]] = []
    start = 0
    for _ in range(10):
        draw = scenario.dice.random()
        if draw < 0.4 or not files:
            rows = [scenario.row({}) for _ in range(scenario.dice.randrange(1, 12))]
            scenario.core.change(scenario.name, [("+I", row) for row in rows])
            files.append((start, len(rows)))
            start += len(rows)
        elif draw < 0.75:
            names = [name for name in scenario.columns if scenario.dice.random() < 0.5] or list(scenario.columns)[:1]
            first, count = scenario.dice.choice(files)
            rows = [scenario.core.record(scenario.name, names, scenario.row({})) for _ in range(count)]
            step = partial(tables_of_files.columns, scenario.core, scenario.name, names, rows, first)
            scenario.attempt("columns", step)
        else:
            scenario.alter()


@dataclass(frozen=True)
class Table:
    """A table to write."""

    fill: Callable[[Scenario], None]
    releases: tuple[str, ...] = ("1.4", "0.9")
    unordered: tuple[str, ...] = ()
    """Columns whose arrays have no order."""
    changes_refused: str | None = None
    """Why incremental rows are not read, as the refusal says it."""


def _arrays(columns: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, kind in columns.items() if isinstance(kind, dict) and kind["type"] == "ARRAY")


_ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")


def outside(scenario: Scenario) -> None:
    """Write the data files of a table elsewhere."""
    folder = (scenario.core.warehouse.parent / "outside" / scenario.name).as_uri()
    keyed(scenario, **{"data-file.external-paths": folder, "data-file.external-paths.strategy": "round-robin"})


_SHREDDED = row_type(
    v=row_type(a="BIGINT", b="STRING", c=row_type(d={"type": "ARRAY", "element": "INT"}, e="DECIMAL(9, 2)"))
)
_VARIANTS = (
    '{"a":1,"b":"x","c":{"d":[1,2,3],"e":1.5}}',
    '{"a":2,"b":"y","c":{"d":[4],"e":2.25},"extra":[null]}',
    '{"a":"text","b":null,"c":5,"z":{"q":[]}}',
    '{"c":{"d":[null,"x",[1]],"f":1}}',
    *("{}", '[1,"two",null]', "null", "12.5", '"text"', None),
)


def shredded(scenario: Scenario) -> None:
    """Write variants that the files hold in typed columns."""
    options = {"bucket": "-1", "file.format": "parquet", "parquet.variant.shreddingSchema": json.dumps(_SHREDDED)}
    scenario.core.create(scenario.name, {"id": "INT", "v": "VARIANT"}, "", KEPT | options)
    for _ in range(2):
        rows = [(number, scenario.dice.choice(_VARIANTS)) for number in range(60)]
        scenario.attempt("commit", lambda rows=rows: scenario.core.write(scenario.name, rows))


_ELSEWHERE = {"data-file.path-directory": "data", "index-file-in-data-file-dir": "true"}
TABLES: dict[str, Table] = {
    **{f"keyed_{n}": Table(keyed) for n in range(6)},
    **{
        f"{engine.replace('-', '_')}_{n}": Table(lambda scenario, engine=engine: keyed(scenario, engine=engine))
        for engine in _ENGINES[1:]
        for n in range(2)
    },
    **{f"append_{n}": Table(append) for n in range(4)},
    **{
        f"types_{kind}_{'keyed' if key else 'append'}": Table(
            lambda scenario, kind=kind, key=key: types(scenario, kind, keyed=key)
        )
        for kind in ("parquet", "orc", "avro")
        for key in (True, False)
    },
    **{
        f"merged_{kind}": Table(lambda scenario, kind=kind: merged(scenario, kind), ("1.4",), _arrays(history.columns))
        for kind, history in HISTORIES.items()
        if kind != "aggregates_overflow"  # refused: engines differ in what they show
    },
    **{f"collected_{n}": Table(collected) for n in range(2)},
    "rescaled": Table(rescaled),
    "zoned": Table(zoned),
    "shredded": Table(shredded, ("1.4",)),
    "crossing": Table(crossing),
    **{f"evolving_{n}": Table(evolving, ("1.4",), (), "columns are in several files") for n in range(3)},
    "tracked": Table(lambda scenario: append(scenario, **{"row-tracking.enabled": "true", "bucket": "-1"}), ("1.4",)),
    **{
        name: Table(
            lambda scenario, fill=fill: fill(scenario.core, scenario.name),
            ("1.4",),
            (),
            "postponed|columns are in several files",
        )
        for name, (_, fill) in tables_of_files.TABLES.items()
        if name != "row_tracking"
    },
    "data_elsewhere": Table(lambda scenario: keyed(scenario, **_ELSEWHERE), ("1.4",)),
    "outside": Table(outside, ("1.4",)),
    "vectors": Table(
        lambda scenario: keyed(scenario, **{"deletion-vectors.enabled": "true", "changelog-producer": "none"})
    ),
}
