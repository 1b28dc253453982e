"""Write random DuckLake histories with DuckDB's own extension, and what it reads right after each commit.

    python ducklake_tables.py OUT SEED

OUT gets a folder per catalog of `CATALOGS`, with the catalog, `data/` and `rows.json`: by table and snapshot the names
of the columns and the rows with their row ids, `expired`, the snapshots that expired at the end, and `later`, rows
that the extension reads otherwise then.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from tests.support.ducklake.write_lakes import connect, plain

CATALOGS = {"sqlite": "sqlite:lake.sqlite", "duckdb": "lake.ducklake"}
TABLES = ("one", "two")
STEPS = 40
_MAINTENANCE = (
    "call ducklake_flush_inlined_data('lake')",
    "call ducklake_merge_adjacent_files('lake')",
    "call ducklake_rewrite_data_files('lake', '{table}', delete_threshold => 0.1)",
)


class History:
    """A random history of two tables of a catalog."""

    def __init__(self, catalog: str, seed: int) -> None:
        """Create the catalog and its tables, one of them partitioned."""
        self.chance = random.Random(seed)
        self.catalog = catalog
        self.connection = connect(catalog)
        self.rows: dict[str, dict[int, Any]] = {name: {} for name in TABLES}
        self.added = {name: ["amount"] for name in TABLES}
        self.columns, self.ids = 0, 0
        for name in TABLES:
            self.run(
                f"create table lake.{name} (id integer, part integer, amount decimal(10, 2), name varchar, "
                "tags varchar[], place struct(x double, y varchar))"
            )
        self.run("alter table lake.two set partitioned by (part)")

    def run(self, statement: str) -> None:
        """Run a statement, and record the rows of all tables if it made a snapshot."""
        before = self.newest()
        self.connection.execute(statement)
        number = self.newest()
        for name in TABLES if number > before else ():
            if self.exists(name):
                self.rows[name][number] = self.read(f"lake.{name}")

    def read(self, source: str) -> dict[str, Any]:
        """Return the rows of a table, or of a table at a snapshot."""
        found = self.connection.execute(f"select rowid as _row_id, * from {source}")
        columns = [column[0] for column in found.description]
        rows = sorted(found.fetchall(), key=lambda row: row[0])
        return {"columns": columns, "rows": [[plain(value) for value in row] for row in rows]}

    def newest(self) -> int:
        """Return the newest snapshot."""
        (number,) = self.connection.execute("select max(snapshot_id) from ducklake_snapshots('lake')").fetchone()
        return int(number)

    def exists(self, name: str) -> bool:
        """Return whether a table exists."""
        query = "select count(*) from duckdb_tables() where database_name = 'lake' and table_name = ?"
        (count,) = self.connection.execute(query, [name]).fetchone()
        return bool(count)

    def step(self) -> None:
        """Run one random statement."""
        table = self.chance.choice(TABLES)
        kinds = ("insert", "insert", "insert", "update", "update", "delete", "both", "alter", "maintain")
        kind = self.chance.choice(kinds)
        if kind == "maintain":
            self.run(self.chance.choice(_MAINTENANCE).format(table=table))
        elif kind == "alter":
            self.run(self.alteration(table))
        elif kind == "both":
            self.run(f"begin; {self.change('one')}; {self.change('two')}; commit")
        else:
            self.run(self.change(table, kind))

    def change(self, table: str, kind: str | None = None) -> str:
        """Return a statement that changes rows."""
        kind = kind or self.chance.choice(("insert", "update", "delete"))
        divisor = self.chance.randint(2, 9)
        condition = f"id % {divisor} = {self.chance.randrange(divisor)}"
        if kind == "update":
            return (
                f"update lake.{table} set name = coalesce(name, '') || '{self.chance.randint(0, 9)}' where {condition}"
            )
        if kind == "delete":
            return f"delete from lake.{table} where {condition}"
        first, count = self.ids, self.chance.choice((1, 3, 8, 25, 60))
        self.ids += count
        return f"""insert into lake.{table} (id, part, name, tags, place)
            select i, i % 3, case when i % 7 > 0 then 'it''s ' || i end, ['t' || i, null],
                case when i % 5 > 0 then {{'x': i / 4, 'y': 'y' || i}} end
            from range({first}, {first + count}) t(i)"""

    def alteration(self, table: str) -> str:
        """Return a statement that changes columns: at most four more, renamed or dropped later."""
        self.columns += 1
        added, name = self.added[table], f"c{self.columns}"
        if len(added) < 4 and self.chance.random() < 0.5:
            added.append(name)
            return f"alter table lake.{table} add column {name} varchar default 'from {name}'"
        if added and self.chance.random() < 0.6:
            index = self.chance.randrange(len(added))
            old, added[index] = added[index], name
            return f"alter table lake.{table} rename column {old} to {name}"
        if added:
            return f"alter table lake.{table} drop column {added.pop()}"
        return f"comment on table lake.{table} is '{name}'"

    def expire(self) -> list[int]:
        """Expire some snapshots, delete their files, and return them."""
        known = range(1, self.newest())
        chosen = sorted(self.chance.sample(known, len(known) // 3))
        self.connection.execute(f"call ducklake_expire_snapshots('lake', versions => {chosen})")
        self.connection.execute("call ducklake_cleanup_old_files('lake', cleanup_all => true)")
        return chosen

    def later(self, expired: list[int]) -> dict[str, dict[int, Any]]:
        """Return what the extension reads now at each snapshot, where it differs from what it read after the commit.

        Merges lose the row ids of rows that were updated.
        """
        self.connection.close()
        self.connection = connect(self.catalog)
        result: dict[str, dict[int, Any]] = {name: {} for name in TABLES}
        for name, snapshots in self.rows.items():
            for number, rows in snapshots.items():
                now = rows if number in expired else self.read(f"lake.{name} at (version => {number})")
                if now != rows:
                    result[name][number] = now
        return result


def main() -> None:
    """Write all histories."""
    out, seed = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    for name, catalog in CATALOGS.items():
        folder = out / name
        folder.mkdir(parents=True)
        os.chdir(folder)
        history = History(catalog, seed)
        for _ in range(STEPS):
            history.step()
        expired = history.expire()
        content = json.dumps({"rows": history.rows, "expired": expired, "later": history.later(expired)})
        history.connection.close()
        Path("rows.json").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
