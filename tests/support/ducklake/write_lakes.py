"""Writes the lakes of tests/data/ducklake with DuckDB's own extension, and what the extension reads at each snapshot.

Run it in an environment of its own, from the root of the repository:

    pip install duckdb==1.5.5 duckdb-extension-ducklake==1.5.5 duckdb-extension-sqlite-scanner==1.5.5
    python tests/support/ducklake/write_lakes.py

Each lake is a folder with the catalog, `data/` and `rows.json`: by table and snapshot the rows with their row ids.
"""

import json
import os
import shutil
from pathlib import Path

import duckdb

ROOT = Path("tests/data/ducklake")
SHOP = (
    "create table lake.orders (id bigint, amount decimal(10,2), region varchar)",
    "insert into lake.orders values (1, 10.50, 'north'), (2, 20.00, 'south'), (3, 5.25, null)",
    "call lake.set_option('data_inlining_row_limit', 0)",
    "insert into lake.orders select i, i, 'bulk' from range(10, 30) t(i)",
    "update lake.orders set amount = amount + 1 where id in (2, 12)",
    "delete from lake.orders where id between 20 and 22",
    "create table lake.audit (id bigint, note varchar)",
    "alter table lake.orders add column channel varchar default 'web'",
    "insert into lake.orders values (100, 1, 'east', 'shop'), (101, 2, 'east', null)",
    "alter table lake.orders rename column region to area",
    """begin; insert into lake.orders values (102, 3, 'west', 'web'); insert into lake.audit values (1, 'one');
    call lake.set_commit_message('ada', 'a load of two tables', extra_info => '{"job": 7}'); commit""",
    "delete from lake.orders where id = 1",
    "call ducklake_flush_inlined_data('lake')",
    "call ducklake_merge_adjacent_files('lake')",
    "insert into lake.orders values (103, 4, 'west', 'web')",
    "drop table lake.audit",
)
PARTS = (
    "create table lake.events (id integer, day date, tags varchar[], place struct(x double, y double))",
    "alter table lake.events set partitioned by (day)",
    """insert into lake.events
    select i, date '2026-11-01' + (i % 3)::int, ['t' || i], {'x': i, 'y': null} from range(30) t(i)""",
    "delete from lake.events where id = 3",
    "alter table lake.events alter id type bigint",
    "insert into lake.events values (4000000000, null, [], null)",
    "update lake.events set tags = ['late', null] where day = date '2026-11-02'",
    "comment on table lake.events is 'what happened'",
    "call ducklake_rewrite_data_files('lake', 'events', delete_threshold => 0.1)",
)
LAKES = {"shop/shop.ducklake": ("", SHOP, ("orders", "audit")), "parts/parts.sqlite": ("sqlite:", PARTS, ("events",))}


def main():
    for path, (prefix, statements, tables) in LAKES.items():
        folder = ROOT / path.partition("/")[0]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(folder, f"{prefix}{path.rpartition('/')[2]}", statements, tables)


def write(folder, catalog, statements, tables):
    before = Path.cwd()
    os.chdir(folder)
    try:
        connection = connect(catalog)
        for statement in statements:
            connection.execute(statement)
        newest = connection.execute("select max(snapshot_id) from ducklake_snapshots('lake')").fetchone()[0]
        connection.close()
        connection = connect(catalog)
        rows = {}
        for table in tables:
            for snapshot in range(newest + 1):
                # Without ORDER BY: with it, DuckDB 1.5.5 returns other values where its statistics are outdated.
                query = f"select rowid as _row_id, * from lake.{table} at (version => {snapshot})"
                try:
                    found = connection.execute(query)
                except duckdb.Error:
                    continue
                names = [column[0] for column in found.description]
                ordered = sorted(found.fetchall(), key=lambda row: row[0])
                texts = [[plain(value) for value in row] for row in ordered]
                rows.setdefault(table, {})[snapshot] = {"columns": names, "rows": texts}
        connection.close()
        if not catalog.startswith("sqlite:"):
            shrink(catalog)
        Path("rows.json").write_text(json.dumps(rows, indent=None) + "\n", encoding="utf-8")
    finally:
        os.chdir(before)


def shrink(catalog):
    """Copy the tables of a DuckDB file into a smaller one, without the blocks of earlier transactions."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{catalog}' as old (read_only); attach 'small' as new (block_size 16384)")
        connection.execute("copy from database old to new")
    Path("small").replace(catalog)


def connect(catalog):
    import duckdb_extension_ducklake  # only where lakes are written
    import duckdb_extension_sqlite_scanner

    connection = duckdb.connect()
    for package in (duckdb_extension_ducklake, duckdb_extension_sqlite_scanner):
        (file,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
        connection.execute(f"load '{file}'")
    connection.execute(f"attach 'ducklake:{catalog}' as lake (data_path 'data/')")
    return connection


def plain(value):
    """Return a value as JSON has it."""
    return value if value is None or isinstance(value, (bool, int, str, list)) else str(value)


if __name__ == "__main__":
    main()
