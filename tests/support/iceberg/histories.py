"""Have Apache Iceberg's connector for Spark write tables with random histories, and write down what it reads of them.

Runs in an environment with PySpark and Iceberg's jar; nothing of `snapshot_explorer` takes part. The same seed gives
the same statements; snapshot ids and names of files are random. `write_all` leaves `tables/NAME/` and
`expected/NAME/SNAPSHOT-ID.json`, for each snapshot that the table has at the end:
`{"snapshot_id", "version", "is_main", "columns", "rows", "lineage"}`. The version is the sequence number, null in
format 1; the lineage is the rows again, behind them row id and last update, null before format 3. `branches/NAME.json`
has the columns and rows of each branch, by its name.
"""

from __future__ import annotations

import json
import logging
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.support.canonical import canonical_rows
from tests.support.oracles import sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

log = logging.getLogger(__name__)

KINDS = {
    "counted": (1, "copy-on-write"),
    "rewritten": (2, "copy-on-write"),
    "merged": (2, "merge-on-read"),
    "vectors": (3, "merge-on-read"),
}
"""The random tables: format version, and how rows are deleted."""
_STEPS = 3
"""What is done to each table, after a first append. In all of them everything is done at least once."""
_LINEAGE = ("_row_id", "_last_updated_sequence_number")
_SETTINGS = sessions.INTERPRETED | {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.default.parallelism": "2",
}


def session(jars: Iterable[Path], warehouse: Path, settings: Mapping[str, str]) -> Any:
    """Return a local Spark session with the catalog `lake` over a folder, and with more settings."""
    return sessions.session(jars, {**_SETTINGS, "spark.sql.catalog.lake.warehouse": warehouse.as_uri(), **settings})


@dataclass
class Lake:
    """A table while its history is written."""

    spark: Any
    path: Path
    choose: random.Random
    """What is random in this history."""
    renamed: str = "b"
    """The present name of the column that is renamed."""
    partitions: list[str] = field(default_factory=list)
    """Transforms that the table is partitioned by now."""

    @property
    def name(self) -> str:
        """The table's name in the catalog."""
        return f"tables.{self.path.name}"

    def sql(self, statement: str) -> Any:
        """Run a statement, in which {t} is the table and {b} the column that is renamed."""
        return self.spark.sql(statement.replace("{t}", f"lake.{self.name}").replace("{b}", self.renamed))

    def call(self, procedure: str, arguments: str = "") -> Any:
        """Run one of Iceberg's procedures on the table."""
        return self.sql(f"CALL lake.system.{procedure}(table => '{self.name}'{arguments and ', '}{arguments})")

    def metadata(self) -> dict[str, Any]:
        """Return the newest metadata file."""
        number = (self.path / "metadata" / "version-hint.text").read_text().strip()
        return json.loads((self.path / "metadata" / f"v{number}.metadata.json").read_text())

    def main(self) -> list[int]:
        """Return the snapshots of main, newest first."""
        metadata = self.metadata()
        parents = {one["snapshot-id"]: one.get("parent-snapshot-id") for one in metadata["snapshots"]}
        found, one = [], metadata["refs"]["main"]["snapshot-id"] if metadata.get("refs") else None
        while one in parents:
            found.append(one)
            one = parents[one]
        return found


def _rows(lake: Lake) -> str:
    choose = lake.choose
    rows, files, first = choose.randint(2, 14), choose.randint(1, 2), choose.randint(0, 60) * 10
    return (
        f"SELECT id, CAST(id % {choose.randint(2, 9)} AS INT) AS a, IF(id % 4 = 0, NULL, 'b' || id) AS {{b}}, "
        "array('x', 'y', NULL)[id % 3] AS part, CAST(id AS DECIMAL(9, 2)) / 4 AS price, "
        "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS ts "
        f"FROM range({first}, {first + rows}, 1, {files})"
    )


def _condition(lake: Lake) -> str:
    choose = lake.choose
    parts = (
        f"id % {choose.randint(2, 7)} = {choose.randint(0, 2)}",
        f"a = {choose.randint(0, 5)}",
        "{b} IS NULL",
        f"part = '{choose.choice('xy')}'",
        f"id > {choose.randint(0, 500)}",
    )
    return choose.choice((" AND ", " OR ")).join(choose.sample(parts, choose.randint(1, 2)))


def _append(lake: Lake) -> None:
    lake.sql(f"INSERT INTO {{t}} (id, a, {{b}}, part, price, ts) {_rows(lake)}")


def _delete(lake: Lake) -> None:
    lake.sql(f"DELETE FROM {{t}} WHERE {_condition(lake)}")


def _update(lake: Lake) -> None:
    lake.sql(f"UPDATE {{t}} SET {{b}} = 'u', a = a + 1 WHERE {_condition(lake)}")


def _merge(lake: Lake) -> None:
    lake.sql(
        f"MERGE INTO {{t}} t USING (SELECT DISTINCT id, part FROM ({_rows(lake)})) s ON t.id = s.id "
        f"WHEN MATCHED AND t.a = {lake.choose.randint(0, 4)} THEN DELETE WHEN MATCHED THEN UPDATE SET {{b}} = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, a, {b}, part, price, ts) VALUES (s.id, 7, 'new', 'z', NULL, NULL)"
    )


def _overwrite(lake: Lake) -> None:
    lake.sql(f"INSERT OVERWRITE {{t}} (id, a, {{b}}, part, price, ts) {_rows(lake)}")


def _evolve(lake: Lake) -> None:
    number = lake.choose.randint(10, 99)
    match lake.choose.choice(("add", "rename", "widen", "drop", "decimal")):
        case "add":
            lake.sql(f"ALTER TABLE {{t}} ADD COLUMN extra_{number} STRING FIRST")
        case "rename":
            lake.sql(f"ALTER TABLE {{t}} RENAME COLUMN {{b}} TO b_{number}")
            lake.renamed = f"b_{number}"
        case "widen":
            lake.sql("ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT")
        case "decimal":
            lake.sql("ALTER TABLE {t} ALTER COLUMN price TYPE DECIMAL(14, 2)")
        case "drop":
            lake.sql(f"ALTER TABLE {{t}} ADD COLUMN gone_{number} INT")
            lake.sql(f"INSERT INTO {{t}} (id, a, gone_{number}) VALUES ({number}, {number}, {number})")
            lake.sql(f"ALTER TABLE {{t}} DROP COLUMN gone_{number}")
    _append(lake)


def _partition(lake: Lake) -> None:
    transforms = ("part", "bucket(3, id)", "truncate(20, id)", "days(ts)", "months(ts)")
    if lake.partitions and lake.choose.random() < 0.5:
        lake.sql(f"ALTER TABLE {{t}} DROP PARTITION FIELD {lake.partitions.pop()}")
    else:
        transform = lake.choose.choice([one for one in transforms if one not in lake.partitions])
        lake.sql(f"ALTER TABLE {{t}} ADD PARTITION FIELD {transform}")
        lake.partitions.append(transform)
    _append(lake)


def _branch(lake: Lake) -> None:
    name = f"dev_{lake.choose.randint(100, 999)}"
    lake.sql(f"ALTER TABLE {{t}} CREATE BRANCH {name}")
    lake.sql(f"DELETE FROM {{t}}.branch_{name} WHERE {_condition(lake)}")
    lake.sql(f"INSERT INTO {{t}}.branch_{name} (id, a) VALUES (1, 1), (2, NULL)")
    if lake.choose.random() < 0.3:
        lake.call("fast_forward", f"branch => 'main', to => '{name}'")
    lake.sql(f"ALTER TABLE {{t}} CREATE TAG `v {lake.choose.randint(100, 999)}`")


def _rollback(lake: Lake) -> None:
    snapshots = lake.main()
    if len(snapshots) > 1:
        lake.call(
            "rollback_to_snapshot", f"snapshot_id => {snapshots[min(len(snapshots) - 1, lake.choose.randint(1, 2))]}"
        )
    _append(lake)


def _expire(lake: Lake) -> None:
    lake.call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 3")


def _maintain(lake: Lake) -> None:
    procedure = lake.choose.choice(("rewrite_data_files", "rewrite_manifests", "rewrite_position_delete_files"))
    all_files = {"rewrite_data_files": "options => map('rewrite-all', 'true')"}
    lake.call(procedure, all_files.get(procedure, ""))


_KINDS: tuple[tuple[int, Callable[[Lake], None]], ...] = (
    (4, _append),
    (4, _delete),
    (4, _update),
    (5, _merge),
    (1, _overwrite),
    (4, _evolve),
    (3, _partition),
    (2, _branch),
    (2, _rollback),
    (1, _expire),
    (3, _maintain),
)


def _decks(seed: int) -> dict[str, list[Callable[[Lake], None]]]:
    """Return what is done to each table: in all of them together everything at least once."""
    choose = random.Random(seed)
    every = [step for _, step in _KINDS]
    more = choose.choices(every, [weight for weight, _ in _KINDS], k=_STEPS * len(KINDS) - len(every))
    deck = choose.sample([*every, *more], _STEPS * len(KINDS))
    return {name: deck[place :: len(KINDS)] for place, name in enumerate(KINDS)}


def _play(spark: Any, path: Path, out: Path, seed: int) -> None:
    version, mode = KINDS[path.name]
    lake = Lake(spark=spark, path=path, choose=random.Random(f"{seed} {path.name}"))
    modes = ", ".join(f"'write.{word}.mode' = '{mode}'" for word in ("delete", "update", "merge"))
    lake.sql(
        "CREATE TABLE {t} (id BIGINT, a INT, b STRING, part STRING, price DECIMAL(9, 2), ts TIMESTAMP) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}', {modes}, 'write.distribution-mode' = 'none', "
        f"'commit.manifest.min-count-to-merge' = '{lake.choose.choice((3, 100))}')"
    )
    _append(lake)
    for step in _decks(seed)[path.name]:
        step(lake)
    for snapshot in lake.metadata()["snapshots"]:
        _write(out / "expected" / path.name / f"{snapshot['snapshot-id']}.json", _read(lake, snapshot))
    _write(out / "branches" / f"{path.name}.json", _branches(lake))


def _read(lake: Lake, snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return what Iceberg reads at a snapshot."""
    has_lineage = snapshot.get("first-row-id") is not None
    columns = ", ".join(("*", *(_LINEAGE if has_lineage else ())))
    whole = _table(lake.sql(f"SELECT {columns} FROM {{t}} VERSION AS OF {snapshot['snapshot-id']}"))
    rows = whole.select([name for name in whole.column_names if name not in _LINEAGE])
    return {
        "snapshot_id": snapshot["snapshot-id"],
        "version": snapshot.get("sequence-number"),
        "is_main": snapshot["snapshot-id"] in lake.main(),
        "columns": rows.column_names,
        "rows": canonical_rows(rows),
        "lineage": canonical_rows(whole) if has_lineage else None,
    }


def _branches(lake: Lake) -> dict[str, Any]:
    """Return what Iceberg reads of each branch by its name: in the current schema, unlike of its snapshot."""
    found = {}
    for branch in [name for name, ref in lake.metadata()["refs"].items() if ref["type"] == "branch"]:
        rows = _table(lake.sql(f"SELECT * FROM {{t}} VERSION AS OF '{branch}'"))
        found[branch] = {"columns": rows.column_names, "rows": canonical_rows(rows)}
    return found


def _table(frame: Any) -> pa.Table:
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else pa.table({name: pa.nulls(0) for name in frame.columns})


def write_all(spark: Any, out: Path, seed: int) -> None:
    """Write the random tables, two at a time, and what Iceberg reads of each."""

    def one(name: str) -> None:
        start = time.monotonic()
        _play(spark.newSession(), out / "tables" / name, out, seed)
        log.info("%s %.1f s", name, time.monotonic() - start)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, KINDS))


def _write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, ensure_ascii=False) + "\n")
