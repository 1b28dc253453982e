"""Have the connectors of all formats run the statements of repairs, over tables with random histories.

A part of `connector_tables.py`. A process of the Python that PLANNER names, which has the project installed, plans.
Writes `OUT/outcomes.json`: for each repair the plan, the rows of the table afterwards, and those to expect, which are
computed here from the rows of both versions.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.delta import deltalake_rows
from tests.support.oracles import lakes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAMES = (
    "a",
    "O'Hara",
    'say "hi"',
    "back\\slash",
    "new\nline",
    "`tick`",
    "${user.name}",
    "日本 \u202e",
    ";-- drop",
    "",
    "\\'",
)
NAME = "na`me'"
COLUMNS = ("id", "part", NAME, "amount", "day", "code")
CODES = ("a", "bc", "d e", "full")
"""Values of a column of the type CHAR(4), in the formats that have it."""
ROUNDS = int(os.environ.get("SNAPSHOT_EXPLORER_REPAIR_ROUNDS", "2"))
"""How often each table is repaired, or has a commit undone: what other tables have too, once less often.

The long form: SNAPSHOT_EXPLORER_REPAIR_ROUNDS=4 pytest -m '' tests/oracles/test_repairs.py
"""
SIZES = (100, 150, 1_800)
"""The rows of the tables at first. Of the last one, so many keys change that a statement does not list them."""
MANY = "id >= 0 AND part IN (0, 1)"


ALL, INSERT, UPDATE, FEW = range(7), (0,), (1,), (0, 1, 2, 5)
"""Kinds of commits: all, and those that change at most every seventh row."""


@dataclass(frozen=True)
class Case:
    """What is put back."""

    where: str | None
    matches: Callable[[Any], bool]
    key: list[str] | None


def cases(dice: random.Random, *, keyed: bool) -> list[Case]:
    """Return repairs: conditions in SQL, and as functions of a row.

    Those of a table with a key all have one: a row that matched then, and does not match now, would be there twice.
    """
    name, part, least = dice.choice(NAMES), dice.randrange(3), dice.randrange(-20, 20)
    day = date(2026, 1, 1) + timedelta(days=dice.randrange(9))
    quoted = '"' + NAME + '"'
    text = "'" + name.replace("'", "''") + "'"
    first = [
        Case(None, lambda _: True, None),
        Case("amount < 0", lambda row: row["amount"] is not None and row["amount"] < 0, ["id"]),
        Case(f"part = {part}", lambda row: row["part"] == part, []),
        Case(f"{quoted} = {text}", lambda row: row[NAME] == name, ["id"]),
        Case(f"{quoted} = {text}", lambda row: row[NAME] == name, [NAME, "id"]),
        Case(f"{quoted} = {text}", lambda row: row[NAME] == name, []),
        Case(
            f"part <> {part} AND amount >= {least}.5",
            lambda row: row["part"] != part and row["amount"] is not None and row["amount"] >= Decimal(f"{least}.5"),
            [],
        ),
        Case(f"day >= '{day}' OR amount IS NULL", lambda row: row["day"] >= day or row["amount"] is None, []),
        Case(f"id % 3 = {part}", lambda row: row["id"] % 3 == part, ["id"]),
        Case(MANY, lambda row: row["part"] in (0, 1), ["id"]),
    ]
    chosen = [case for case in first if case.key is None or bool(case.key) == keyed]
    return dice.sample(chosen, len(chosen))


class Lake:
    """A table while its history is written."""

    def __init__(self, spark: Any, kind: str, name: str, path: Path, code: str) -> None:
        self.spark, self.kind, self.name, self.path, self.code = spark, kind, name, path, code

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in the order of the rows that are written."""
        return tuple("name" if name == NAME and self.kind == "hudi" else name for name in COLUMNS)

    def sql(self, statement: str) -> Any:
        """Run a statement."""
        return self.spark.sql(statement)

    def rows(self, version: int | str | None = None) -> list[dict[str, Any]]:
        """Return the rows, of the newest version or of one.

        Those of Delta are read by deltalake: Spark takes a second for each version of a table of Delta.
        """
        if self.kind == "delta":
            rows = deltalake_rows.rows_at(self.path, version).to_pylist()
            # Spark pads what it reads of a column of type CHAR.
            return [row | {"code": row["code"].ljust(4)} for row in rows] if self.code == "CHAR(4)" else rows
        at = "" if version is None else f" VERSION AS OF {version}"
        rows = [row.asDict() for row in self.sql(f"SELECT * FROM {self.name}{at}").collect()]
        return [row | {NAME: row[self.columns[2]]} for row in rows]

    def write(self, dice: random.Random, rows: int, begin: int, *, keyed: bool = True) -> None:
        """Append rows with new ids, as one commit."""
        columns = [f"`{name.replace('`', '``')}`" for name in self.columns]
        types = ("BIGINT", "INT", "STRING", "DECIMAL(10, 2)", "DATE", "STRING")
        schema = ", ".join(f"{name} {dtype}" for name, dtype in zip(columns, types, strict=True))
        values = [
            (
                begin + at,
                dice.randrange(3),
                dice.choice(NAMES if keyed else [*NAMES, None]),
                None if dice.random() < 0.1 else dice.randrange(-2_000, 2_000) / 100,
                date(2026, 1, 1) + timedelta(days=dice.randrange(9)),
                dice.choice(CODES),
            )
            for at in range(rows)
        ]
        values = [(i, p, n, None if a is None else Decimal(str(a)), *more) for i, p, n, a, *more in values]
        self.spark.createDataFrame(values, schema).coalesce(1).createOrReplaceTempView("new_rows")
        # Hudi has the column of partitions last.
        order = [name for name in self.spark.table(self.name).columns if not name.startswith("_hoodie_")]
        names = ", ".join(f"`{name.replace('`', '``')}`" for name in order)
        self.sql(f"INSERT INTO {self.name} SELECT {names} FROM new_rows")

    def change(self, dice: random.Random, begin: int, kinds: Sequence[int] = ALL) -> None:
        """Make a random commit of some kinds."""
        if self.kind == "paimon":  # changes no table with a column of type CHAR where Spark pads it
            self.sql("SET spark.sql.readSideCharPadding = false")
        part, number = dice.randrange(3), dice.randrange(7)
        match dice.choice(kinds):
            case 0:
                self.write(dice, 6, begin)
            case 6:
                self.sql(f"UPDATE {self.name} SET amount = amount + 1")
            case 3 if self.kind != "hudi":  # Hudi refuses updates of partition columns
                self.sql(f"UPDATE {self.name} SET part = {part} WHERE id % 7 = {number}")
            case 1 | 3:
                self.sql(f"UPDATE {self.name} SET amount = -amount - 1 WHERE id % 7 = {number}")
            case 2:
                self.sql(f"DELETE FROM {self.name} WHERE id % 7 = {number}")
            case 4:
                self.sql(f"DELETE FROM {self.name} WHERE part = {part}")
            case 5:
                text = dice.choice(NAMES).encode().hex()
                column = self.columns[2].replace("`", "``")
                self.sql(f"UPDATE {self.name} SET `{column}` = CAST(X'{text}' AS STRING) WHERE id % 7 = {number}")
        self.sql("RESET spark.sql.readSideCharPadding")

    def compact(self, dice: random.Random) -> None:
        """Move rows to other files now and then, without a change."""
        if dice.random() < 0.5:
            return
        catalog, _, table = self.name.partition(".")
        match self.kind:
            case "delta":
                self.sql(f"OPTIMIZE {self.name}")
            case "iceberg":
                every = "options => map('rewrite-all', 'true')"
                self.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{table}', {every})")
            case "paimon":
                self.sql(f"CALL {catalog}.sys.compact(table => '{table}')")


def write_all(spark: Any, kind: str, folder: Path, seed: int) -> None:
    """Write the tables, and repair them."""
    planner = subprocess.Popen(
        [os.environ["PLANNER"], "-m", "tests.oracles.repair_planner"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )

    def ask(**asked: Any) -> Any:
        planner.stdin.write(json.dumps(asked) + "\n")
        planner.stdin.flush()
        return json.loads(planner.stdout.readline())

    found = []
    sizes = SIZES[:2] if kind == "hudi" else SIZES
    for number, rows in enumerate(sizes):
        dice = random.Random(f"{seed} {kind} {number}")
        lake = created(spark, kind, folder, number)
        found += (savepoint_history if kind == "hudi" else history)(lake, dice, rows, ask)
        if kind != "hudi":
            # Another table: in the first one a repair by another key may have made ids ambiguous.
            found += undo_history(created(spark, kind, folder, number, "u"), dice, rows, ask)
    if kind != "hudi":
        found += merged_history(created(spark, kind, folder, len(SIZES) - 1, "m"), random.Random(f"{seed} merge"), ask)
    planner.stdin.close()
    planner.wait()
    (folder / "outcomes.json").write_text(json.dumps(found, indent=1, default=str))


def created(spark: Any, kind: str, out: Path, number: int, prefix: str = "t") -> Lake:
    """Create a partitioned table; the last one of Paimon has a primary key."""
    name, path = lakes.location(kind, out, f"{prefix}ab`le {number}" if kind == "delta" else f"{prefix}{number}")
    modes = ("copy-on-write", "merge-on-read")
    properties = {
        "delta": [],
        "iceberg": [
            "'format-version' = '2'",
            *(f"'write.{word}.mode' = '{modes[number % 2]}'" for word in ("delete", "update", "merge")),
        ],
        "paimon": ["'primary-key' = 'id'", "'bucket' = '1'"] if number == len(SIZES) - 1 else ["'bucket' = '-1'"],
        "hudi": [f"type = '{('cow', 'mor')[number % 2]}'", "primaryKey = 'id'"],
    }[kind]
    # Hudi's names of columns are those of Avro. A primary key of Paimon has the columns of partitions.
    column = "name" if kind == "hudi" else "`" + NAME.replace("`", "``") + "`"
    partitions = "" if kind == "paimon" and number == len(SIZES) - 1 else "PARTITIONED BY (part)"
    listed = ", ".join(properties)
    location = f"LOCATION '{path.as_uri()}'" if kind == "hudi" else ""
    # Paimon merges into no table with a column of type CHAR: only that without keys has one.
    code = "CHAR(4)" if number < {"delta": len(SIZES) - 1, "paimon": 1}.get(kind, 0) else "STRING"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, part INT, {column} STRING, amount DECIMAL(10, 2), day DATE, code {code}) "
        f"USING {kind} {partitions} {location} {listed and f'TBLPROPERTIES ({listed})'}"
    )
    return Lake(spark, kind, name, path, code)


def savepoint_history(lake: Lake, dice: random.Random, rows: int, ask: Callable[..., Any]) -> list[dict[str, Any]]:
    """Write a table that can only be restored to a savepoint; return what became of each repair."""
    lake.write(dice, min(rows, 200), 0)
    lake.sql(f"CALL create_savepoint(table => '{lake.name}', commit_time => '{newest_instant(lake)}')")
    then = lake.rows()
    for at in range(2):
        lake.change(dice, 10_000 + 100 * at)
    now, outcomes = lake.rows(), []
    asked = {"path": str(lake.path), "name": lake.name, "key": None}
    outcomes.append({"where": "id = 1"} | ask(**asked, to="latest~2", where="id = 1"))
    outcomes.append({"where": None} | ask(**asked, to="latest~1", where=None))
    plan = ask(**asked, to="latest~2", where=None)
    for statement in plan["statements"]:
        lake.sql(statement)
    before, after = counted(now), counted(then)
    changes = [sum((Counter(one) - Counter(other)).values()) for one, other in ((after, before), (before, after))]
    outcomes.append(
        plan | {"expected": after, "rows": counted(lake.rows()), "changes": changes, "is_checked": True, "where": None}
    )
    return outcomes


def newest_instant(lake: Lake) -> str:
    """Return the newest completed write of a Hudi table."""
    return max(row[0] for row in lake.sql(f"SELECT DISTINCT _hoodie_commit_time FROM {lake.name}").collect())


def history(lake: Lake, dice: random.Random, rows: int, ask: Callable[..., Any]) -> list[dict[str, Any]]:
    """Write a random history, with a repair now and then; return what became of each."""
    lake.write(dice, rows, 0, keyed=rows != SIZES[0])
    outcomes = []
    order = cases(dice, keyed=rows != SIZES[0])
    if rows == SIZES[-1]:
        order.sort(key=lambda case: case.where == MANY)
    # The large table is repaired by the condition on many keys alone: those with few are of the others.
    for number in range(1, ROUNDS + (rows != SIZES[-1])):
        for at in range(1 if number == 1 else 3):
            lake.change(dice, 10_000 * number + 100 * at)
        if rows == SIZES[-1]:
            lake.sql(f"UPDATE {lake.name} SET amount = amount + 1")
        case = order.pop()
        asked = {"where": case.where, "key": case.key}
        plan = ask(
            path=str(lake.path), to=f"latest~{1 if number == 1 else dice.randrange(1, 5)}", name=named(lake), **asked
        )
        outcome = {"table": lake.name, "where": case.where, "key": case.key, **plan}
        if "statements" in plan:
            outcome |= repaired(lake, case, plan)
        if "rows" in outcome:
            outcome["is_checked"] = (
                ask(path=str(lake.path), check=[plan["to"], "latest"], **asked) if restorable(lake, case) else True
            )
        outcomes.append(outcome)
    return outcomes


def named(lake: Lake) -> str | None:
    """Return the name for the plan: a table of Delta is named by its path."""
    return None if lake.kind == "delta" else lake.name


def restorable(lake: Lake, case: Case) -> bool:
    """Return whether the version is still in the history: a rollback of Iceberg leaves it."""
    return case.key is not None or lake.kind != "iceberg"


def repaired(lake: Lake, case: Case, plan: dict[str, Any]) -> dict[str, Any]:
    """Run the statements of a plan; return the rows afterwards, and those to expect, as texts with their number."""
    now, then = lake.rows(), lake.rows(earlier(lake, plan["to"]))
    if plan["undone"] is not None:
        after = lake.rows(earlier(lake, plan["undone"]))
        expected = undone(case, then, after, now)
        return ran(lake, plan) | compared(lake, now, expected)
    if failed := ran(lake, plan):
        return failed
    if case.key:
        keys = {tuple(row[name] for name in case.key) for row in (*now, *then) if case.matches(row)}

        def chosen(row: dict[str, Any]) -> bool:
            return tuple(row[name] for name in case.key or ()) in keys
    else:
        chosen = case.matches
    return compared(lake, now, [row for row in now if not chosen(row)] + [row for row in then if chosen(row)])


def ran(lake: Lake, plan: dict[str, Any]) -> dict[str, Any]:
    """Run the statements of a plan; return what failed."""
    try:
        for statement in plan["statements"]:
            lake.sql(statement)
    except Exception as error:  # noqa: BLE001 - the test shows it, with what became of the other repairs
        return {"failed": str(error)[:2_000]}
    finally:
        lake.sql("RESET")  # what statements set
    return {}


def compared(lake: Lake, now: list[dict[str, Any]], expected: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows of a table and those to expect, and how many of those before are neither."""
    before, after = counted(now), counted(expected)
    return {
        "expected": after,
        "rows": counted(lake.rows()),
        "changes": [sum((Counter(after) - Counter(before)).values()), sum((Counter(before) - Counter(after)).values())],
    }


def earlier(lake: Lake, version: int) -> int | str:
    """Return what VERSION AS OF accepts: for Iceberg the snapshot's id."""
    if lake.kind != "iceberg":
        return version
    rows = lake.sql(f"SELECT snapshot_id FROM {lake.name}.history WHERE is_current_ancestor").collect()
    files = lake.path / "metadata"
    newest = max(files.glob("v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))
    snapshots = {row["sequence-number"]: row["snapshot-id"] for row in json.loads(newest.read_text())["snapshots"]}
    assert snapshots[version] in {row[0] for row in rows}
    return snapshots[version]


def merged_history(lake: Lake, dice: random.Random, ask: Callable[..., Any]) -> list[dict[str, Any]]:
    """Bring what an earlier version changed since a base to the newest one; return what became of it."""
    lake.write(dice, 80, 0)
    for at, kinds in enumerate([INSERT, UPDATE, (2,), (5,), UPDATE, INSERT]):
        lake.change(dice, 10_000 + 100 * at, kinds)
    merge = ["latest~2", "latest~4"]
    plan = ask(path=str(lake.path), merge=merge, name=named(lake))
    outcome = {"table": lake.name, "where": None, "key": ["id"], "is_checked": True, **plan}
    if not plan.get("statements"):
        return [outcome]
    base, theirs = (by_id(lake.rows(earlier(lake, version))) for version in plan["versions"])
    ours = lake.rows()
    return [outcome | (ran(lake, plan) or compared(lake, ours, merged(base, by_id(ours), theirs)))]


def by_id(rows: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    """Return rows by their id."""
    return {row["id"]: row for row in rows}


def merged(base: dict[Any, Any], ours: dict[Any, Any], theirs: dict[Any, Any]) -> list[dict[str, Any]]:
    """Return ours with the changes of theirs, without those in conflict."""
    result = dict(ours)
    for key in base.keys() | theirs.keys():
        was, mine, other = (side.get(key) for side in (base, ours, theirs))
        if other == was:
            continue
        if mine == was:
            result[key] = other
        elif was and mine and other:
            cells = {name: (was[name], mine[name], other[name]) for name in mine}
            if all(b == a or c in (a, b) for a, b, c in cells.values()):
                result[key] = {name: c if c != a else b for name, (a, b, c) in cells.items()}
    return [row for row in result.values() if row is not None]


def counted(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Return the number of each row."""
    return dict(sorted(Counter(repr(tuple(row[name] for name in COLUMNS)) for row in rows).items()))


def undo_history(lake: Lake, dice: random.Random, rows: int, ask: Callable[..., Any]) -> list[dict[str, Any]]:
    """Undo a commit now and then that is not the newest one; return what became of each."""
    key, is_large, outcomes = [] if rows == SIZES[0] else ["id"], rows == SIZES[-1], []
    lake.write(dice, rows, 0, keyed=rows != SIZES[0])
    # Commits of tables with a key are undone in the large one too.
    for number in range(ROUNDS - (rows == SIZES[1])):
        begin = 100_000 + 10_000 * number
        # Without a key an update is undone only if nobody changed its rows since.
        is_update = not key and not number
        if is_large:
            change_many(lake, dice, number)
        else:
            lake.change(dice, begin, UPDATE if is_update else ALL)
        target = ask(path=str(lake.path), versions=True)["newest"]
        for at in range(dice.randrange(1, 4)):
            # More keys than a statement lists are left to be undone.
            lake.change(dice, begin + 1_000 + 100 * at, FEW if is_large else INSERT if is_update else ALL)
        if dice.random() < 0.5:
            put_back_by_hand(lake, ask(path=str(lake.path), versions=True, before=target)["before"])
        lake.compact(dice)
        case = Case(MANY, lambda row: row["part"] in (0, 1), key)
        if dice.random() < 0.6 or is_update:
            case = Case(None, lambda _: True, key)
        elif not is_large:
            case = Case("part = 1", lambda row: row["part"] == 1, key)
        asked = {"path": str(lake.path), "undo": target, "name": named(lake), "where": case.where, "key": case.key}
        plan = ask(**asked)
        outcome = {"table": lake.name, "where": case.where, "key": case.key, **plan}
        if "statements" in plan:
            outcome |= repaired(lake, case, plan)
        if "rows" in outcome:
            outcome["is_checked"] = not ask(**asked).get("statements", ["refused"])
        outcomes.append(outcome)
    return outcomes


def change_many(lake: Lake, dice: random.Random, number: int) -> None:
    """Change more rows than a statement lists: update, delete or insert them. Two rounds of all formats have each."""
    order = ("update", "insert", "delete") if lake.kind == "iceberg" else ("update", "delete", "insert")
    match order[number % 3]:
        case "update":
            lake.sql(f"UPDATE {lake.name} SET amount = amount + 1")
        case "delete":
            lake.sql(f"DELETE FROM {lake.name} WHERE part = 1")
        case _:
            lake.write(dice, 900, 100_000 + 10_000 * number)


def put_back_by_hand(lake: Lake, version: int) -> None:
    """Insert a few rows of a version that the table no longer has."""
    at = earlier(lake, version)
    live = {row["id"] for row in lake.rows()}
    gone = sorted(row["id"] for row in lake.rows(at) if row["id"] not in live)[:3]
    if gone:
        listed = ", ".join(map(str, gone))
        lake.sql(f"INSERT INTO {lake.name} SELECT * FROM {lake.name} VERSION AS OF {at} WHERE id IN ({listed})")


def undone(case: Case, before: list[Any], after: list[Any], now: list[Any]) -> list[Any]:
    """Return the rows to expect where a commit is undone that led from some rows to others."""
    if case.key:
        sides = [{tuple(row[name] for name in case.key): row for row in rows} for rows in (before, after, now)]
        result = dict(sides[2])
        for key in sides[0].keys() | sides[1].keys():
            old, new = sides[0].get(key), sides[1].get(key)
            if old == new or not any(row is not None and case.matches(row) for row in (old, new)):
                continue
            if sides[2].get(key) != new:
                continue  # changed since
            result.pop(key, None)
            if old is not None:
                result[key] = old
        return list(result.values())
    texts = {repr(tuple(row[name] for name in COLUMNS)): row for rows in (before, after, now) for row in rows}
    counts = [Counter(repr(tuple(row[name] for name in COLUMNS)) for row in rows) for rows in (before, after, now)]
    result = []
    for text, row in texts.items():
        old, new, current = (count[text] for count in counts)
        is_undone = case.matches(row) and old != new == current and not (new > old > 0)
        result += [row] * (old if is_undone else current)
    return result
