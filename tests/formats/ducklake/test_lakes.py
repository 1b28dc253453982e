"""Lakes that DuckDB's own extension wrote, with the rows that it reads at each snapshot (tests/data/ducklake)."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from snapshot_explorer import find_tables, open_lake, open_table, samples
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from snapshot_explorer.table import parts_of
from tests.inner.ducklake import databases
from tests.support import logical_counts
from tests.support.ducklake.catalog_builder import Catalog

LAKES = Path(__file__).parents[2] / "data" / "ducklake"
SHOP, PARTS = LAKES / "shop" / "shop.ducklake", LAKES / "parts" / "parts.sqlite"
FESTIVAL = Path(samples.__file__).parent / "festival" / "festival.ducklake"
CASES = [
    (SHOP, "orders"),
    (SHOP, "audit"),
    (PARTS, "events"),
    *((FESTIVAL, n) for n in ("tickets", "refunds", "daily")),
]


def expected(catalog, table):
    return json.loads((LAKES / catalog.parent.name / "rows.json").read_text(encoding="utf-8"))[table]


def plain(value):
    return value if value is None or isinstance(value, (bool, int, str, list)) else str(value)


@pytest.mark.parametrize(("catalog", "name"), CASES, ids=[name for _, name in CASES])
def test_each_snapshot_has_the_rows_that_duckdb_reads(catalog, name):
    table = open_table(catalog, table=name)

    for snapshot, rows in expected(catalog, name).items():
        read = table.at(int(snapshot)).to_arrow(columns=rows["columns"]).sort_by("_row_id")
        assert [[plain(value) for value in row.values()] for row in read.to_pylist()] == rows["rows"], snapshot


@pytest.mark.parametrize(("catalog", "name"), CASES, ids=[name for _, name in CASES])
def test_row_changes_lead_from_each_version_to_the_next(catalog, name):
    table = open_table(catalog, table=name)
    columns = {version: table.at(version).arrow_schema.names for version in table.versions()}
    states = {
        version: {row["_row_id"]: row for row in table.at(version).to_arrow(columns=["_row_id", *names]).to_pylist()}
        for version, names in columns.items()
    }

    for before, after in pairwise(columns):
        changed = table.row_changes(before, after, columns=[*columns[after], "_row_id"]).to_pylist()
        gone = {row["_row_id"] for row in changed if row["rowkind"] in ("-D", "-U")}
        new = {row["_row_id"] for row in changed if row["rowkind"] in ("+I", "+U")}
        assert gone <= states[before].keys()
        assert (states[before].keys() - gone) | new == states[after].keys()


@pytest.mark.parametrize(("catalog", "name"), CASES, ids=[name for _, name in CASES])
def test_the_rows_of_commits_are_those_that_differ(catalog, name):
    counted = logical_counts.check(open_table(catalog, table=name))

    assert counted > 0 or name == "refunds"  # whose rows a flush moved into one file


def test_the_history_of_rows_is_the_states_of_all_versions():
    table = open_table(SHOP, table="orders")
    history = table.row_history().to_arrow().to_pylist()

    for version in table.versions():
        live = sorted(
            row["id"]
            for row in history
            if row["_from_version"] <= version and (row["_to_version"] is None or version < row["_to_version"])
        )
        assert live == sorted(table.at(version).to_arrow()["id"].to_pylist()), version


def test_a_blame_of_rows_that_never_were_has_no_line():
    table = open_table(SHOP, table="orders")

    assert len(table.blame("id < 0")) == 0
    assert len(table.history(user="nobody")) == 0


def test_commits_have_their_words_and_the_names_of_their_authors():
    commits = {row["version"]: row for row in open_table(SHOP, table="orders").history().to_dict()}

    load = next(row for row in commits.values() if row["user"] == "ada")
    assert load["kind"] == "append"
    assert "a load of two tables" in load["details"]
    kinds = [row["kind"] for row in sorted(commits.values(), key=lambda row: row["version"])]
    assert {"append", "update", "delete", "schema", "maintenance", "compact"} >= set(kinds)


def test_a_snapshot_that_did_not_touch_the_table_is_the_version_before_it():
    table = open_table(SHOP, table="main.audit")
    untouched = next(number for number in map(int, expected(SHOP, "audit")) if number not in table.versions())

    assert table.at(untouched).version == max(number for number in table.versions() if number < untouched)


def test_only_columns_are_not_null(memory_root):
    catalog = Catalog(*memory_root)
    catalog.commit_rows([(1, "a")])
    for number, name, dtype, parent in ((3, "place", "struct", None), (4, "zip", "varchar", 3)):
        catalog.insert("column", number, 2, None, 1, number, name, dtype, None, None, 0, parent, None, None)
    catalog.commit("altered_table:1")
    table = open_table(f"memory://{catalog.root}/{catalog.name}")

    place = table.at(2).arrow_schema.field("place")

    assert not place.nullable
    assert place.type.field("zip").nullable
    assert table.row_changes(1, 2).schema.field("place").nullable


def test_a_version_that_is_not_there_is_explained():
    orders, audit = open_table(SHOP, table="orders"), open_table(f"{SHOP}::main.audit")
    end = max(map(int, expected(SHOP, "audit"))) + 1

    with pytest.raises(SnapshotNotFoundError, match=r"is before main\.orders, which was created at 1"):
        orders.at(0)
    with pytest.raises(SnapshotNotFoundError, match=rf"is after main\.audit, which was dropped at {end}"):
        audit.at(end)


def test_a_table_is_named_beside_its_catalog_or_behind_it():
    assert open_table(f"{SHOP}::orders").path == f"{SHOP}::main.orders"
    assert open_table(f"ducklake:{SHOP}", table="MAIN.Orders").path == f"{SHOP}::main.orders"
    assert open_table(PARTS).path == f"{PARTS}::main.events"
    with pytest.raises(TableNotFoundError, match=r"has no table main\.order\. Tables: main\.orders\."):
        open_table(SHOP, table="main.order")
    with pytest.raises(InvalidArgumentError, match="is not a name of a table"):
        open_table(SHOP, table="main.orders; drop")
    with pytest.raises(InvalidArgumentError, match="names a table in a catalog that is one file"):
        open_table(SHOP.parent, table="main.orders")


def test_conditions_skip_files_by_partitions_and_statistics():
    table = open_table(PARTS)

    plan = table.at(3).plan(where="day = date '2026-11-02'").to_dict()
    assert {row["skipped"] for row in plan if row["skipped"]} == {"partition"}
    assert table.at(3).count(where="day = date '2026-11-02'") == 10
    assert table.at("latest").count(where="id > 3000000000") == 1
    assert any(
        (row["skipped"] or "").startswith("statistics of id")
        for row in table.at("latest").plan(where="id > 3000000000").to_dict()
    )


def test_statistics_of_another_catalog_at_the_path_skip_no_file(tmp_path):
    lake = shutil.copytree(PARTS.parent, tmp_path / "lake")
    snapshot = open_table(lake / PARTS.name).current
    rows = snapshot.to_arrow(where="id = 27")
    with closing(sqlite3.connect(lake / PARTS.name)) as catalog:
        catalog.execute("UPDATE ducklake_file_column_stats SET min_value = '-2', max_value = '-1' WHERE column_id = 1")
        catalog.commit()
        assert snapshot.to_arrow(where="id = 27").num_rows == 0  # the catalog is believed
        catalog.execute("UPDATE ducklake_snapshot SET snapshot_time = '2030-01-01 00:00:00+00'")
        catalog.commit()

    assert snapshot.to_arrow(where="id = 27").equals(rows)
    assert rows.num_rows == 1


def test_the_tables_of_a_catalog_are_found_and_read_at_one_instant():
    found = find_tables(SHOP).to_dict()
    lake = open_lake(SHOP)

    assert [(row["name"], row["format"]) for row in found] == [("main.orders", "ducklake")]
    assert found[0]["path"] == f"{SHOP}::main.orders"
    assert [table.name for table in lake.tables] == ["main.orders"]


def test_a_folder_has_the_tables_of_the_catalogs_below_it(tmp_path):
    shutil.copytree(FESTIVAL.parent, tmp_path / "lake" / "festival")
    shutil.copytree(samples.path("invoices"), tmp_path / "lake" / "invoices")
    (tmp_path / "lake" / "notes.ducklake").write_text("no database")
    names = [f"festival/festival.ducklake::main.{name}" for name in ("daily", "refunds", "tickets")]

    found = {row["name"]: row for row in find_tables(tmp_path / "lake").to_dict()}
    lake = open_lake(tmp_path / "lake")
    overview = {row["name"]: row for row in lake.overview(since="2000-01-01").to_dict()}

    assert (
        list(found) == sorted(overview) == [*names, "invoices", "notes.ducklake"] == [one.name for one in lake.tables]
    )
    assert found[names[0]]["path"] == f"{tmp_path}/lake/festival/festival.ducklake::main.daily"
    assert open_table(found[names[2]]["path"]).current.version == found[names[2]]["version"]
    assert overview[names[2]]["commits"] == len(open_table(FESTIVAL, table="tickets").versions())
    assert "is named like a catalog, but it is not a database file." in found["notes.ducklake"]["problem"]
    assert found["notes.ducklake"]["problem"] == overview["notes.ducklake"]["problem"]
    with pytest.raises(
        TableNotFoundError, match=r", but the catalog festival.ducklake. find_tables\(.*tables of catalogs"
    ):
        open_table(tmp_path / "lake" / "festival")


def test_a_lake_opens_its_catalog_once_for_all_tables(tmp_path, monkeypatch):
    path = shutil.copy(FESTIVAL, tmp_path / "festival.ducklake")
    opened, lake = [], open_lake(path)
    alone = {name: open_table(path, table=name).history().to_arrow() for name in ("tickets", "refunds", "daily")}
    original = databases.CatalogFile.opened
    monkeypatch.setattr(databases.CatalogFile, "opened", lambda file: opened.append(1) or original(file))

    overview, versions = lake.overview(since="10000d"), lake.at()
    changes = lake.changes(since="2000-01-01").to_arrow()
    assert len(opened) == 3  # one for each question

    assert {row["name"]: row["commits"] for row in overview.to_dict()} == {
        f"main.{name}": commits.num_rows for name, commits in alone.items()
    }
    assert changes.num_rows == sum(commits.num_rows for commits in alone.values())
    assert {table.name: table.version for table in versions.tables} == {
        f"main.{name}": max(commits["version"].to_pylist()) for name, commits in alone.items()
    }
    Path(path).unlink()
    assert all("does not exist" in row["problem"] for row in lake.overview().to_dict())


def test_no_progress_bar_of_duckdb_is_drawn():
    """DuckDB draws one for long queries where the main module has no file, as in a notebook."""
    asked = "SELECT current_setting('enable_progress_bar')"
    call = f"""
from snapshot_explorer import open_table
from tests.inner.ducklake import databases
def asked(reader, *others): print(reader._connection.execute({asked!r}).fetchall())
databases.CatalogReader.read = asked
open_table({str(SHOP)!r}, table="orders")
"""
    done = subprocess.run([sys.executable, "-c", call], check=False, capture_output=True, text=True, timeout=100)

    assert done.stdout.splitlines()[0] == "[(False,)]"


def test_metadata_tables_have_the_rows_of_the_catalog():
    table = open_table(SHOP, table="orders")

    assert "ada" in table.inspect("snapshots")["author"].to_pylist()
    assert table.inspect("inlined", "latest").to_dict()
    assert "encryption_key" not in table.inspect("data_files", "latest").to_arrow().column_names


def test_retention_frees_the_files_that_only_expired_snapshots_see():
    table = open_table(PARTS)
    report = table.retention(keep="1s")

    kept = [row["version"] for row in report.versions.to_dict() if row["outcome"] == "kept"]
    assert kept == [table.current.version]
    live = set(table.current.files()["path"].to_pylist())
    assert live.isdisjoint(report.freed["path"].to_pylist())
    assert set(report.freed["path"].to_pylist()) >= set(table.at(4).files()["path"].to_pylist()) - live
    assert table.retention().freed.num_rows == 0
    with pytest.raises(InvalidArgumentError, match="by their age, not by their number"):
        table.retention(keep_last=2)


def test_no_file_of_a_lake_is_an_orphan():
    for catalog, name in CASES[1:]:
        assert not [row for row in open_table(catalog, table=name).orphans().files.to_dict() if row["is_orphan"]]


def test_health_counts_inlined_rows():
    findings = open_table(SHOP, table="orders").health(metadata_only=True).findings.to_dict()

    assert "inlined rows" in {row["finding"] for row in findings}


@pytest.mark.parametrize(("catalog", "name"), CASES, ids=[name for _, name in CASES])
def test_a_comparison_says_no_more_than_files_prove(catalog, name):
    table = open_table(catalog, table=name)
    versions = table.versions()

    for before, after in pairwise(versions):
        rows = [sorted(map(str, table.at(one).to_arrow().to_pylist())) for one in (before, after)]
        proof = table.compare(before, after).proof
        assert rows[0] == rows[1] or "the rows are the same" not in proof, (before, after)
        assert rows[0] == rows[1] or re.search("Files alone do not determine|rows? changed", proof)


def test_a_lake_whose_data_were_moved_is_told_where_they_are(tmp_path):
    catalog = samples.path("festival")
    data = shutil.copytree(Path(catalog).with_name("data"), tmp_path / "moved")
    with closing(sqlite3.connect(catalog)) as connection, connection:
        connection.execute("update ducklake_metadata set value = '/recorded/' where key = 'data_path'")

    with pytest.raises(CorruptTableError, match="the data path /recorded is missing or empty. If the data were moved"):
        open_table(catalog, table="main.tickets").current.to_arrow()
    assert open_lake(catalog, relocate={"/recorded/": str(data)})["main.tickets"].current.count() == 131
    with pytest.raises(InvalidArgumentError, match="relocate is for the data of a catalog that is one file"):
        open_lake(tmp_path, relocate={"/recorded/": str(data)})


@pytest.mark.parametrize(
    ("schema", "table", "arguments"),
    [("main", "rows", "'lake', 'rows'"), ("o'x", "a.b", "'lake', 'a.b', schema => 'o''x'")],
)
def test_the_advice_to_compact_names_schema_and_table(memory_root, schema, table, arguments):
    catalog = Catalog(*memory_root)
    catalog.commit_rows([(1, "a")])
    catalog.execute("UPDATE ducklake_schema SET schema_name = ?", schema)
    catalog.execute("UPDATE ducklake_table SET table_name = ?", table)

    version = parts_of(open_table(f"memory://{catalog.root}/{catalog.name}").current).loaded.version

    assert version.health_facts().settings.compact == f"CALL ducklake_merge_adjacent_files({arguments})"
