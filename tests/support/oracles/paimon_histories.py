"""Histories of tables for `paimon_write.py`: random ones, led by a seed, and one for each kind of table.

Nothing here needs Java until a history is written through the core that is handed to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.scripts import tables_of_files
from tests.scripts.tables_of_merges import HISTORIES, row_type
from tests.support.oracles.paimon_scenario import KEPT, Story
from tests.support.oracles.paimon_values import KEYS, NESTED, PARTS, SIMPLE, root, value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.oracles.paimon_values import Dice


def keyed(story: Story, *, engine: str = "deduplicate", **options: str) -> None:
    """Write a random table with a primary key."""
    dice = story.dice
    story.options = {
        "bucket": dice.choice(("1", "1", "2", "3", "-1")),
        "file.format": dice.choice(("parquet", "parquet", "orc", "avro")),
        "num-sorted-run.compaction-trigger": dice.choice(("2", "3", "10")),
        "write-only": dice.choice(("true", "false")),
        "manifest.merge-min-count": dice.choice(("2", "30")),
        "merge-engine": engine,
    }
    if dice.random() < 0.3:
        story.options["metadata.stats-mode"] = dice.choice(("none", "counts", "full", "truncate(4)"))
    if dice.random() < 0.2:
        story.options["manifest.format"] = "orc"
    if dice.random() < 0.2:
        story.options["file.format.per.level"] = "0:avro"
        story.options["file.format"] = "parquet"
    story.options |= options
    _keys(story)
    for _ in range(dice.randrange(2, 7)):
        story.new_column(dice.choice(story.possible((*SIMPLE, *SIMPLE, *NESTED))))
    _engine(story, engine)
    story.options |= options
    story.create()
    _live(story)


def _keys(story: Story) -> None:
    dice = story.dice
    for _ in range(dice.choice((0, 0, 1, 2))):
        name = story.new_column(f"{dice.choice(PARTS)} NOT NULL")
        story.parts.append(name)
    own = [story.new_column(f"{dice.choice(story.possible(KEYS))} NOT NULL") for _ in range(dice.choice((1, 1, 2)))]
    story.keys = [*story.parts, *own]
    dice.shuffle(story.keys)
    story.fixed |= set(story.keys)
    values = {
        name: [value(dice, story.columns[name]) for _ in range(3 if name in story.parts else 9)] for name in story.keys
    }
    story.pool = [{name: dice.choice(values[name]) for name in story.keys} for _ in range(30)]


def _engine(story: Story, engine: str) -> None:
    """Set the options of a merge engine, and what changes there may be."""
    dice, options = story.dice, story.options
    simple = [name for name, kind in story.columns.items() if name not in story.keys and isinstance(kind, str)]
    producers = {"deduplicate": "none none input lookup full-compaction", "first-row": "none lookup"}
    options["changelog-producer"] = dice.choice(producers.get(engine, "none none lookup full-compaction").split())
    story.kinds = ["+I", "+I", "+I", "+U", "-D", "-U"] if engine == "deduplicate" else ("+I", "+I", "+U")
    if engine != "first-row":
        if dice.random() < 0.4:
            chosen = [
                story.new_column(dice.choice(("INT", "BIGINT", "TIMESTAMP(3)"))) for _ in range(dice.choice((1, 2)))
            ]
            story.fixed |= set(chosen)
            options["sequence.field"] = ",".join(chosen)
            if dice.random() < 0.4 and story.release != "0.9":
                options["sequence.field.sort-order"] = "descending"
        if dice.random() < 0.3 and options["changelog-producer"] in ("none", "lookup"):
            options["deletion-vectors.enabled"] = "true"
            if story.release != "0.9" and dice.random() < 0.5:
                options["deletion-vectors.bitmap64"] = "true"
    if engine in ("partial-update", "first-row", "deduplicate") and dice.random() < 0.3:
        options["ignore-delete"] = "true"
        story.kinds = ["+I", "+I", "+I", "+U", "-D"]
    if engine == "aggregation":
        for name in simple:
            function = dice.choice(_FUNCTIONS.get(root(story.columns[name]), ("last_value", "last_non_null_value")))
            if function:
                options[f"fields.{name}.aggregate-function"] = function
                story.fixed.add(name)


_FUNCTIONS = {
    **dict.fromkeys(("INT", "SMALLINT", "TINYINT", "BIGINT"), ("max", "min", "last_value", "first_value", "")),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("sum", "max", "min", "last_value", "")),
    "DECIMAL": ("max", "min", "first_value", ""),
    "BOOLEAN": ("bool_or", "bool_and", "first_non_null_value"),
    "STRING": ("listagg", "max", "min", "last_non_null_value", ""),
    "TIMESTAMP": ("max", "min", "last_value"),
    "DATE": ("max", "min", "first_value"),
}


def _live(story: Story, steps: int = 9) -> None:
    """Let a table live: commits, compactions, changes of its schema."""
    story.commit()
    for _ in range(steps):
        draw = story.dice.random()
        if draw < 0.55:
            story.commit()
        elif draw < 0.75:
            story.compact()
        elif draw < 0.95:
            story.alter()
        else:
            story.overwrite()


def append(story: Story, **options: str) -> None:
    """Write a random table without a primary key."""
    dice = story.dice
    story.options = {"bucket": "-1", "file.format": dice.choice(("parquet", "parquet", "orc", "avro"))} | options
    if dice.random() < 0.3:
        story.options["metadata.stats-mode"] = dice.choice(("none", "counts", "full", "truncate(4)"))
    if dice.random() < 0.2:
        story.options["manifest.format"] = "orc"
    story.parts = [story.new_column(dice.choice(PARTS)) for _ in range(dice.choice((0, 0, 1, 2)))]
    for _ in range(dice.randrange(3, 8)):
        story.new_column(dice.choice(story.possible((*SIMPLE, *SIMPLE, *NESTED))))
    story.fixed |= set(story.parts)
    values = {name: [value(dice, story.columns[name]) for _ in range(3)] for name in story.parts}
    story.pool = [{name: dice.choice(of) for name, of in values.items()} for _ in range(9)]
    if dice.random() < 0.4 and "bucket" not in options:
        key = story.new_column("INT")
        story.fixed.add(key)
        story.options |= {"bucket": "3", "bucket-key": key, "compaction.max.file-num": "3"}
    story.create()
    _live(story)


def types(story: Story, file_format: str, *, keyed: bool) -> None:
    """Write a column of every type, with random values."""
    story.options = {"bucket": "2" if keyed else "-1", "file.format": file_format}
    story.dice.far, story.every_type = file_format != "orc", True
    if keyed:
        story.keys = [story.new_column("INT NOT NULL")]
        story.pool = [{story.keys[0]: number} for number in range(20)]
    else:
        story.pool = [{}]
    variants = ["VARIANT"] if story.release != "0.9" and file_format == "parquet" else []
    for kind in story.possible((*SIMPLE, *NESTED, *variants)):
        story.new_column(kind)
    story.create()
    for _ in range(3):
        story.commit()
    story.compact()


def merged(story: Story, kind: str) -> None:
    """Write the rows of a history of a merge engine, in another order, cut into other commits, with compactions."""
    history, dice = HISTORIES[kind], story.dice
    options = {"bucket": "1", "write-only": "true", "file.format": dice.choice(("avro", "parquet", "orc"))}
    story.core.create(story.name, history.columns, history.keys, KEPT | options | history.options)
    changes = [change for commit in history.commits for change in commit]
    kinds = sorted({change[0] for change in changes})
    for _ in range(6):
        count = dice.randrange(1, len(changes))
        chosen = [(dice.choice(kinds), values) for _, values in dice.sample(changes, count)]
        story.attempt("commit", lambda chosen=chosen: story.core.change(story.name, chosen))
        if dice.random() < 0.3:
            story.compact()


_COLLECTED = {
    "k": "INT NOT NULL",
    "rows": {"type": "ARRAY", "element": row_type(v="INT", text="STRING")},
    "deep": {"type": "ARRAY", "element": row_type(v="INT", inner={"type": "ARRAY", "element": row_type(n="BIGINT")})},
    "lists": {"type": "ARRAY", "element": {"type": "ARRAY", "element": "INT"}},
    "floats": {"type": "ARRAY", "element": row_type(x="DOUBLE")},
    "bytes": {"type": "ARRAY", "element": "BYTES"},
}


def collected(story: Story) -> None:
    """Write a table whose columns collect nested elements and bytes, equal ones among them, and take none back."""
    dice = story.dice
    options = {"bucket": "1", "write-only": "true", "file.format": dice.choice(("avro", "parquet", "orc"))}
    functions = {f"fields.{name}.aggregate-function": "collect" for name in _COLLECTED if name != "k"}
    story.core.create(story.name, _COLLECTED, "k", KEPT | options | {"merge-engine": "aggregation"} | functions)
    for _ in range(5):
        changes = [(dice.choice(("+I", "+U")), _collected_row(dice, key)) for key in range(12)]
        story.attempt("commit", lambda changes=changes: story.core.change(story.name, changes))
        if dice.random() < 0.3:
            story.compact()


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


def rescaled(story: Story) -> None:
    """Change the count of buckets, and write one of two partitions anew."""
    story.options = {"bucket": "2", "file.format": "orc"}
    part, key = story.new_column("STRING NOT NULL"), story.new_column("INT NOT NULL")
    story.new_column("STRING")
    story.parts, story.keys = [part], [part, key]
    story.pool = [{part: "xy"[number % 2], key: number} for number in range(40)]
    story.create()
    story.commit(40)
    story.commit(40)
    story.core.alter(story.name, story.core.paimon.schema.SchemaChange.setOption("bucket", "5"))
    story.pool = [key_ for key_ in story.pool if key_[part] == "x"]
    story.commit(40, overwrite={part: "x"})
    story.commit(40)


def crossing(story: Story) -> None:
    """Move keys between partitions, as a writer of a cross-partition table does: a delete there, a row here."""
    part, key, text = story.new_column("INT"), story.new_column("INT NOT NULL"), story.new_column("STRING")
    story.parts, story.keys, story.options = [part], [key], {"bucket": "-1"}
    story.create()
    homes: dict[int, int] = {}
    for _ in range(6):
        changes: list[tuple[Any, ...]] = []
        for number in story.dice.sample(range(20), 8):
            home = story.dice.randrange(3)
            if homes.get(number, home) != home:
                changes.append(("-D", (homes[number], number, None), number % 2))
            homes[number] = home
            changes.append(("+I", (home, number, value(story.dice, story.columns[text])), number % 2))
        story.core.change(story.name, changes)
    story.compact(full=True)


def evolving(story: Story) -> None:
    """Write columns of rows in files of their own, in random order, between changes of the schema."""
    story.options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    story.options["file.format"] = story.dice.choice(("parquet", "orc", "avro"))
    for kind in ("INT", "STRING", "BIGINT", *story.dice.sample(story.possible(SIMPLE), 3)):
        story.new_column(kind)
    blob = story.dice.random() < 0.5
    if blob:
        story.fixed.add(story.new_column("BLOB"))
        story.options["blob.target-file-size"] = "400 b"
    story.pool = [{}]
    story.create()
    files: list[tuple[int, int]] = []
    start = 0
    for _ in range(10):
        draw = story.dice.random()
        if draw < 0.4 or not files:
            rows = [story.row({}) for _ in range(story.dice.randrange(1, 12))]
            story.core.change(story.name, [("+I", row) for row in rows])
            files.append((start, len(rows)))
            start += len(rows)
        elif draw < 0.75:
            names = [name for name in story.columns if story.dice.random() < 0.5] or list(story.columns)[:1]
            first, count = story.dice.choice(files)
            rows = [story.core.record(story.name, names, story.row({})) for _ in range(count)]
            step = partial(tables_of_files.columns, story.core, story.name, names, rows, first)
            story.attempt("columns", step)
        else:
            story.alter()


@dataclass(frozen=True)
class Table:
    """A table to write."""

    fill: Callable[[Story], None]
    releases: tuple[str, ...] = ("1.4", "0.9")
    unordered: tuple[str, ...] = ()
    """Columns whose arrays have no order."""
    changes_refused: str | None = None
    """Why incremental rows are not read, as the refusal says it."""


def _arrays(columns: dict[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, kind in columns.items() if isinstance(kind, dict) and kind["type"] == "ARRAY")


_ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")


def outside(story: Story) -> None:
    """Write the data files of a table elsewhere."""
    folder = (story.core.warehouse.parent / "outside" / story.name).as_uri()
    keyed(story, **{"data-file.external-paths": folder, "data-file.external-paths.strategy": "round-robin"})


_ELSEWHERE = {"data-file.path-directory": "data", "index-file-in-data-file-dir": "true"}
TABLES: dict[str, Table] = {
    **{f"keyed_{n}": Table(keyed) for n in range(6)},
    **{
        f"{engine.replace('-', '_')}_{n}": Table(lambda story, engine=engine: keyed(story, engine=engine))
        for engine in _ENGINES[1:]
        for n in range(2)
    },
    **{f"append_{n}": Table(append) for n in range(4)},
    **{
        f"types_{kind}_{'keyed' if key else 'append'}": Table(
            lambda story, kind=kind, key=key: types(story, kind, keyed=key)
        )
        for kind in ("parquet", "orc", "avro")
        for key in (True, False)
    },
    **{
        f"merged_{kind}": Table(lambda story, kind=kind: merged(story, kind), ("1.4",), _arrays(history.columns))
        for kind, history in HISTORIES.items()
        if kind != "aggregates_overflow"  # refused: engines differ in what they show
    },
    **{f"collected_{n}": Table(collected) for n in range(2)},
    "rescaled": Table(rescaled),
    "crossing": Table(crossing),
    **{f"evolving_{n}": Table(evolving, ("1.4",), (), "spread over several files") for n in range(3)},
    "tracked": Table(lambda story: append(story, **{"row-tracking.enabled": "true", "bucket": "-1"}), ("1.4",)),
    **{
        name: Table(
            lambda story, fill=fill: fill(story.core, story.name), ("1.4",), (), "postponed|spread over several files"
        )
        for name, (_, fill) in tables_of_files.TABLES.items()
        if name != "row_tracking"
    },
    "data_elsewhere": Table(lambda story: keyed(story, **_ELSEWHERE), ("1.4",)),
    "outside": Table(outside, ("1.4",)),
    "vectors": Table(lambda story: keyed(story, **{"deletion-vectors.enabled": "true", "changelog-producer": "none"})),
}
