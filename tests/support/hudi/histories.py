"""Have Apache Hudi's connector for Spark write tables with random histories, and write down what it reads of them.

Runs in an environment with PySpark 3.5 and one of Hudi's bundles; nothing of `snapshot_explorer` takes part. The same
seed gives the same statements; instants and ids of files differ. `write_all` leaves `tables/NAME/` and
`expected/NAME/VERSION.json`: `{"version", "outcome", "columns", "rows"}`, the rows that Hudi read when the version was
the newest. A version that a rollback or restore removed, and one that was never the newest, has none. `cleaned/NAME/`
has `before/`, the table at its end, `deleted.json`: by policy and number the files that Hudi's cleaner deletes, and
`archived.json`: by the numbers of an archival the versions that it moves.
"""

from __future__ import annotations

import json
import logging
import random
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.support.canonical import canonical_rows
from tests.support.oracles import sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

log = logging.getLogger(__name__)

KINDS = {
    "cow_6": ("hudi-0.15", 6),
    "mor_6": ("hudi-0.15", 6),
    "cow_8": ("hudi-1.2", 8),
    "mor_8": ("hudi-1.2", 8),
    "cow_9": ("hudi-1.2", 9),
    "mor_9": ("hudi-1.2", 9),
}
"""The random tables: the folder of the writer's jar, and the table version."""
_LOGGED = {"cow_8": "op_key_only", "mor_9": "data_before_after"}
"""The tables whose commits record the rows that they change, with the mode of logging.

None of Hudi 0.15: where it records changes after a column was added, it writes decimals of unchanged rows a hundred
times too large, and does not record that.
"""
_STEPS = 3
"""What is done to each table, after a first insert. In all of them everything is done at least once."""
_CLEANS = (
    ("KEEP_LATEST_COMMITS", "retain_commits", 1),
    ("KEEP_LATEST_COMMITS", "retain_commits", 3),
    ("KEEP_LATEST_FILE_VERSIONS", "file_versions_retained", 1),
    ("KEEP_LATEST_FILE_VERSIONS", "file_versions_retained", 2),
)
"""The cleans of which one is tried on each table at its end."""
_ARCHIVALS = ((2, 3, 1), (2, 4, 2), (3, 4, 2))
"""The least and the most commits of the archivals of which one is tried, and the commits that the cleaner retains."""
_WRITE = re.compile(r"(\d+)(?:_\d+)?\.(?:commit|deltacommit|replacecommit)")
_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
OPTIONS = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.metadata.enable": "false",
    # Hudi refuses to roll back what came before a compaction of its metadata table.
    "hoodie.metadata.compact.max.delta.commits": "100",
    "hoodie.index.bloom.num_entries": "60",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
}


def session(jars: Iterable[Path], warehouse: Path) -> Any:
    """Return a local Spark session with a warehouse in a folder."""
    return sessions.session(jars, {**_SETTINGS, "spark.sql.warehouse.dir": warehouse.as_uri()})


@dataclass
class Lake:
    """A table while its history is written."""

    spark: Any
    path: Path
    choose: random.Random
    """What is random in this history."""
    clock: int = 0
    """The ordering value of the last rows: those of later statements are larger, unless they are meant to be late."""

    @property
    def is_merged(self) -> bool:
        """Whether the table has log files."""
        return self.path.name.startswith("mor")

    @property
    def is_old(self) -> bool:
        """Whether the writer is Hudi 0.15."""
        return KINDS[self.path.name][0] == "hudi-0.15"

    def sql(self, statement: str) -> list[Any]:
        """Run a statement, in which {t} is the table."""
        return self.spark.sql(statement.replace("{t}", self.path.name)).collect()

    def call(self, procedure: str, arguments: str = "") -> list[Any]:
        """Run one of Hudi's procedures on the table."""
        return self.sql(f"CALL {procedure}(table => '{self.path.name}'{arguments and ', '}{arguments})")

    def tick(self) -> int:
        """Return the next ordering value."""
        self.clock += 10
        return self.clock

    def columns(self) -> list[str]:
        """Return the columns of the table, in its order."""
        return [name for name in self.spark.table(self.path.name).columns if not name.startswith("_hoodie_")]

    def versions(self) -> list[int]:
        """Return the completed writes of the active timeline, ascending."""
        folder = self.path / ".hoodie" / "timeline" if not self.is_old else self.path / ".hoodie"
        return sorted(int(found[1]) for path in folder.iterdir() if (found := _WRITE.fullmatch(path.name)))


_COLUMNS = ("id", "a", "b", "price", "ts", "ordering", "part")


def _rows(lake: Lake, ordering: str, *, b: str = "IF(id % 4 = 0, NULL, 'b' || id)", without: str = "") -> str:
    """Return a query of new rows: the table's columns in their order, null where they were added later."""
    choose = lake.choose
    rows, first = choose.randint(2, 14), choose.randint(0, 40)
    columns = [name if name in _COLUMNS else f"'e' AS {name}" for name in lake.columns() if name != without]
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT id, CAST(id % {choose.randint(2, 9)} AS INT) AS a, {b} AS b, "
        "CAST(id AS DECIMAL(9, 2)) / 4 AS price, "
        "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS ts, "
        f"CAST({ordering} AS BIGINT) AS ordering, array('x', 'y', 'z')[id % 3] AS part "
        f"FROM range({first}, {first + rows}))"
    )


def _condition(lake: Lake) -> str:
    choose = lake.choose
    parts = (
        f"id % {choose.randint(2, 7)} = {choose.randint(0, 2)}",
        f"a = {choose.randint(0, 5)}",
        "b IS NULL",
        f"part = '{choose.choice('xy')}'",
        f"id > {choose.randint(0, 40)}",
    )
    return choose.choice((" AND ", " OR ")).join(choose.sample(parts, choose.randint(1, 2)))


def _upsert(lake: Lake) -> None:
    _insert(lake, str(lake.tick()))


def _late(lake: Lake) -> None:
    """Upsert rows of which some are older than what the table has; Hudi 0.15 reads such log files in another way."""
    if lake.is_old:
        _upsert(lake)
    else:
        _insert(lake, f"{lake.tick()} - id % {lake.choose.randint(2, 4)} * 15")


def _insert(lake: Lake, ordering: str, operation: str = "upsert") -> None:
    lake.spark.sql(f"SET hoodie.spark.sql.insert.into.operation={operation}")
    block = lake.choose.choice(("avro", "parquet")) if lake.is_merged else "avro"
    lake.spark.sql(f"SET hoodie.logfile.data.block.format={block}")
    lake.sql(f"INSERT INTO {{t}} {_rows(lake, ordering)}")


def _bulk(lake: Lake) -> None:
    _insert(lake, str(lake.tick()), "bulk_insert")


def _delete(lake: Lake) -> None:
    lake.sql(f"DELETE FROM {{t}} WHERE {_condition(lake)}")


def _update(lake: Lake) -> None:
    lake.sql(f"UPDATE {{t}} SET b = 'u', a = a + 1, ordering = {lake.tick()} WHERE {_condition(lake)}")


def _merge(lake: Lake) -> None:
    rows = _rows(lake, str(lake.tick()), b="'m'")
    lake.sql(
        f"MERGE INTO {{t}} t USING ({rows}) s ON t.id = s.id WHEN MATCHED AND s.a = {lake.choose.randint(0, 4)} "
        "THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _overwrite(lake: Lake) -> None:
    if lake.choose.random() < 0.5:
        lake.spark.sql("SET hoodie.datasource.overwrite.mode=static")
        lake.sql(f"INSERT OVERWRITE {{t}} {_rows(lake, str(lake.tick()))}")
    else:
        lake.sql(f"INSERT OVERWRITE {{t}} PARTITION (part = 'y') {_rows(lake, str(lake.tick()), without='part')}")


def _drop_partition(lake: Lake) -> None:
    lake.sql("ALTER TABLE {t} DROP IF EXISTS PARTITION (part = 'z')")


def _compact(lake: Lake) -> None:
    """Schedule a compaction, write beside it, and run it unless it is left pending."""
    if not lake.is_merged:
        _upsert(lake)
        return
    lake.call("run_compaction", "op => 'schedule'")
    if lake.choose.random() < 0.5:
        _upsert(lake)
    if lake.choose.random() < 0.8:
        lake.call("run_compaction", "op => 'run'")


def _cluster(lake: Lake) -> None:
    lake.call("run_clustering", f"order => '{lake.choose.choice(('id', 'a'))}'")


def _clean(lake: Lake) -> None:
    lake.call("run_clean", f"clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => {lake.choose.randint(1, 3)}")


def _archive(lake: Lake) -> None:
    lake.call("run_clean", "clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1")
    lake.call("archive_commits", "min_commits => 2, max_commits => 3, retain_commits => 1")


def _roll_back(lake: Lake) -> None:
    """Undo the newest write, unless there is no other; or restore a savepoint, with what was written after it."""
    if len(lake.versions()) > 1 and lake.choose.random() < 0.5:
        lake.call("rollback_to_instant", f"instant_time => '{lake.versions()[-1]}'")
        return
    savepoint = lake.versions()[-1]
    lake.call("create_savepoint", f"commit_time => '{savepoint}', user => 'lake'")
    _upsert(lake)
    _update(lake)
    lake.call("rollback_to_savepoint", f"instant_time => '{savepoint}'")


def _evolve(lake: Lake) -> None:
    lake.sql(f"ALTER TABLE {{t}} ADD COLUMNS (extra_{lake.choose.randint(10, 99)} STRING)")
    _update(lake)


_KINDS: tuple[tuple[int, Callable[[Lake], None]], ...] = (
    (4, _upsert),
    (3, _late),
    (1, _bulk),
    (4, _delete),
    (4, _update),
    (4, _merge),
    (2, _overwrite),
    (1, _drop_partition),
    (4, _compact),
    (2, _cluster),
    (1, _clean),
    (1, _archive),
    (3, _roll_back),
    (2, _evolve),
)


def _deck(name: str, seed: int) -> list[Callable[[Lake], None]]:
    """Return what is done to a table: in all of them together everything at least once."""
    choose = random.Random(seed)
    every = [step for _, step in _KINDS]
    more = choose.choices(every, [weight for weight, _ in _KINDS], k=_STEPS * len(KINDS) - len(every))
    deck = choose.sample([*every, *more], _STEPS * len(KINDS))
    return deck[list(KINDS).index(name) :: len(KINDS)]


def _play(spark: Any, path: Path, out: Path, seed: int) -> None:
    lake = Lake(spark=spark, path=path, choose=random.Random(f"{seed} {path.name}"))
    for key, value in OPTIONS.items():
        spark.sql(f"SET {key}={value}")
    spark.sql(f"SET hoodie.metadata.enable={str(lake.choose.random() < 0.5).lower()}")
    version = "" if lake.is_old else f", 'hoodie.write.table.version' = '{KINDS[path.name][1]}'"
    if version:
        spark.sql(f"SET hoodie.write.table.version={KINDS[path.name][1]}")
        spark.sql("SET hoodie.write.auto.upgrade=false")
    mode = _LOGGED.get(path.name)
    logged = f", 'hoodie.table.cdc.enabled' = 'true', 'hoodie.table.cdc.supplemental.logging.mode' = '{mode}'"
    lake.sql(
        "CREATE TABLE {t} (id BIGINT, a INT, b STRING, price DECIMAL(9, 2), ts TIMESTAMP, ordering BIGINT, "
        f"part STRING) USING hudi PARTITIONED BY (part) LOCATION '{path.as_uri()}' TBLPROPERTIES (type = "
        f"'{'mor' if lake.is_merged else 'cow'}', primaryKey = 'id', preCombineField = 'ordering', "
        f"'hoodie.table.timeline.timezone' = 'UTC'{version}{logged if mode else ''})"
    )
    expected: dict[int, dict[str, Any]] = {}
    cleaned = out.parent / "cleaned" / path.name
    for step in (_upsert, *_deck(path.name, seed)):
        before = set(lake.versions())
        log.info("%s: %s", path.name, step.__name__)
        step(lake)
        after = lake.versions()
        if step is _roll_back:
            expected = {number: one for number, one in expected.items() if number in after or number not in before}
        if after and after[-1] not in before:
            expected[after[-1]] = _read(lake, after[-1])
    for number, one in expected.items():
        _write(out / path.name / f"{number}.json", one)
    _try_cleaning(lake, cleaned)


def _try_cleaning(lake: Lake, folder: Path) -> None:
    """Clean the table, or archive its commits, and put it back: leaves it as it was, and what each of them removed."""
    before = folder / "before"
    shutil.copytree(lake.path, before)
    files, versions = _data_files(before), set(lake.versions())

    def put_back() -> None:
        shutil.rmtree(lake.path)
        shutil.copytree(before, lake.path)
        lake.spark.sql(f"REFRESH TABLE {lake.path.name}")

    policy, argument, number = lake.choose.choice(_CLEANS)
    lake.call("run_clean", f"clean_policy => '{policy}', {argument} => {number}")
    _write(folder / "deleted.json", {f"{policy} {number}": sorted(files - _data_files(lake.path))})
    put_back()
    least, most, retained = lake.choose.choice(_ARCHIVALS)
    lake.call("archive_commits", f"min_commits => {least}, max_commits => {most}, retain_commits => {retained}")
    _write(folder / "archived.json", {f"{least} {most} {retained}": sorted(versions - set(lake.versions()))})
    put_back()


def _data_files(path: Path) -> set[str]:
    names = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    return {name for name in names if not name.startswith(".hoodie") and not name.endswith((".crc", "_metadata"))}


def _read(lake: Lake, version: int) -> dict[str, Any]:
    """Return what Hudi reads of the newest version."""
    frame = lake.spark.read.format("hudi").load(lake.path.as_uri())
    frame = frame.select(*[name for name in frame.columns if not name.startswith("_hoodie_")])
    batches = frame._collect_as_arrow()
    rows = pa.Table.from_batches(batches) if batches else pa.table({name: pa.nulls(0) for name in frame.columns})
    return {"version": version, "outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows)}


def write_all(spark: Any, out: Path, jar: str, seed: int) -> None:
    """Write the random tables of a writer, two at a time, and what Hudi reads of each version."""

    def one(name: str) -> None:
        start = time.monotonic()
        _play(spark.newSession(), out / "tables" / name, out / "expected", seed)
        log.info("%s %.1f s", name, time.monotonic() - start)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, [name for name, (writer, _) in KINDS.items() if writer == jar]))


def _write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, ensure_ascii=False) + "\n")
