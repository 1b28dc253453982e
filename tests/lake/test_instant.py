"""One instant of a lake: its record, queries over it, changes and differences."""

import json
import re
import shutil
from datetime import timedelta

import pytest

from snapshot_explorer import LakeSnapshot, errors, open_lake, open_table, samples
from tests.support import lakes


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    root = tmp_path_factory.mktemp("shop")
    for name in ("orders", "payments", "shipments"):
        shutil.copytree(samples.path(name), root / name)
    return root


NIGHT = "2026-11-08 14:00"


def test_every_table_is_pinned_to_the_version_that_was_current(shop):
    pinned = open_lake(shop).at(NIGHT)

    expected = {name: open_table(shop / name).at(f"@{NIGHT}").version for name in ("orders", "payments", "shipments")}
    assert {table.name: table.version for table in pinned.tables} == expected
    assert pinned["orders"].version == expected["orders"]


def test_a_commit_within_a_minute_and_a_tie_are_stated(tmp_path, shop):
    notes = {table.name: table.note for table in open_lake(shop).at(NIGHT).tables}
    steps = [lakes.Step(2, 0, 10), lakes.Step(1, 10, 10), lakes.Step(1, 20, 10)]
    lakes.write_paimon(tmp_path / "ties", steps)
    (tie,) = open_lake(tmp_path).at(lakes.NOW).tables

    assert "version 15 was committed 0.043 s later" in notes["payments"]
    assert tie.note == "Versions 2 and 3 have the same time; 3 is the later one."


def test_a_table_without_a_version_then_and_a_broken_one_are_in_the_record(tmp_path):
    lakes.write_paimon(tmp_path / "late", [lakes.Step(1, 0, 10)])
    lakes.write_delta(tmp_path / "broken", lakes.HISTORIES["broken"](0))
    lakes.damage(tmp_path / "broken", "delta")

    broken, late = open_lake(tmp_path).at(lakes.NOW - timedelta(hours=5)).tables

    assert (late.version, late.problem) == (None, None)
    assert late.note
    assert broken.problem
    with pytest.raises(errors.SnapshotNotFoundError, match="late has no known version at"):
        open_lake(tmp_path).at(lakes.NOW - timedelta(hours=5)).sql("select * from late")


def test_a_table_is_read_as_it_was_then_also_where_it_was_rolled_back_since(shop, tmp_path):
    pinned = open_lake(shop).at("2026-11-08")
    pinned.to_json(tmp_path / "then.json")
    again = LakeSnapshot.from_json(tmp_path / "then.json")

    then = open_table(f"{shop}/shipments").at("@2026-11-08")
    assert (then.version, then.branch) == (10, "1778543173402883985")
    for lake in (pinned, again):
        assert lake["shipments"].label == then.label
        assert lake.sql("select count(*) as n from shipments")["n"].tolist() == [then.count()]
    rows = {row["name"]: row for row in pinned.versions.to_dict()}
    assert rows["shipments"]["note"] == "Rolled back since; read as branch 1778543173402883985."
    assert rows["shipments"]["note"] in str(pinned.versions)
    overview = {row["name"]: row for row in open_lake(shop, at="2026-11-08").overview().to_dict()}
    assert (overview["shipments"]["problem"], overview["orders"]["problem"]) == (None, None)


def test_a_record_is_saved_and_opened_again_without_secrets(tmp_path, shop):
    pinned = open_lake(shop, storage_options={"auto_mkdir": "s3cr3t"}).at(NIGHT)

    pinned.to_json(tmp_path / "night.json")
    again = LakeSnapshot.from_json(tmp_path / "night.json")

    assert (again.tables, again.time, again.name) == (pinned.tables, pinned.time, pinned.name)
    assert "s3cr3t" not in (tmp_path / "night.json").read_text() + repr(again) + str(again)
    query = "select count(*) as n from orders"
    assert again.sql(query)["n"].tolist() == pinned.sql(query)["n"].tolist() == [pinned["orders"].count()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "another"}, "is not the record of a lake"),
        ({"time": "soon"}, "is not a time with a zone"),
        ({"time": "2026-11-08T14:00:00"}, "is not a time with a zone"),
        ({"tables": [{"name": 3}]}, "name in the record of a lake must be str"),
        ({"tables": [{"name": "a", "version": "3"}]}, "version in the record of a lake must be int"),
        ({"tables": [{"name": "a", "secret": "x"}]}, "unknown member, 'secret'"),
        ({"tables": ["a"]}, "must have an object"),
    ],
)
def test_what_is_not_a_record_is_refused(shop, change, message):
    record = json.loads(open_lake(shop).at(NIGHT).to_json())

    with pytest.raises(errors.InvalidArgumentError, match=message):
        LakeSnapshot.from_json(json.dumps(record | change))


def deep(levels):
    return "[" * levels + "1" + "]" * levels


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *((name, f'"{time}"') for name in ("time", "committed_at") for time in (
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
            "99999-01-01T00:00:00Z",
            "2026-11-20T00:00:00+99:99",
        )),
        *(("version", number) for number in ("9223372036854775808", "18446744073709551615", "-1", "1e400", "9" * 500)),
        *((name, deep(levels)) for name in ("version", "name", "kind", "tables", "time") for levels in (900, 3000)),
        ("tables", deep(1)),
        ("path", '"\ud800"'),
        ("more", deep(900)),
    ],
)  # fmt: skip
def test_extreme_times_numbers_and_levels_in_a_record_are_refused(tmp_path, member, value):
    table = {"name": "t", "path": "t", "format": "delta", "version": 1, "committed_at": None}
    record = {"kind": "snapshot_explorer lake snapshot 1", "name": "x", "time": "2026-11-20T00:00:00Z"}
    (table if member in ("version", "committed_at", "path", "more") else record)[member] = "HERE"
    text = json.dumps({"tables": [table], **record}).replace('"HERE"', value)
    (tmp_path / "lake.json").write_bytes(text.encode("utf-8", "surrogatepass"))

    for source in (text, tmp_path / "lake.json"):
        with pytest.raises((errors.InvalidArgumentError, errors.LimitError)) as caught:
            LakeSnapshot.from_json(source)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("source", [5, None, b"{}", "a\0b", ["{}"]])
def test_what_is_neither_a_path_nor_text_is_refused(source):
    with pytest.raises(errors.InvalidArgumentError):
        LakeSnapshot.from_json(source)


def test_a_version_that_another_commit_replaced_is_refused(tmp_path):
    lakes.write_delta(tmp_path / "t", [lakes.Step(2, 0, 10)])
    record = open_lake(tmp_path).at(lakes.NOW).to_json()
    shutil.rmtree(tmp_path / "t")
    lakes.write_delta(tmp_path / "t", [lakes.Step(1, 0, 10)])

    with pytest.raises(errors.SnapshotNotFoundError, match="Version 0 of t is not the recorded one"):
        LakeSnapshot.from_json(record).sql("select * from t")


def test_a_query_reads_all_tables_at_the_instant_and_cites_their_versions(shop):
    pinned = open_lake(shop).at(NIGHT)
    query = (
        "select (select count(*) from orders) a, (select count(*) from payments) b, (select count(*) from orders@3) c"
    )

    result = pinned.sql(query)

    counts = [pinned["orders"].count(), pinned["payments"].count(), open_table(shop / "orders").at(3).count()]
    assert result.iloc[0].tolist() == counts
    assert result.attrs["versions"] == ["orders@12", "payments@14", "orders@3"]
    assert pinned.sources(query)["version"].to_pylist() == [12, 14, 3]


def test_tables_of_one_name_are_quoted_in_full(tmp_path):
    for folder in ("a", "b"):
        lakes.write_delta(tmp_path / folder / "orders", [lakes.Step(2, 0, 10 if folder == "a" else 20)])

    pinned = open_lake(tmp_path).at(lakes.NOW)

    assert pinned.sql('select count(*) n from "b/orders"')["n"].tolist() == [20]
    with pytest.raises(errors.InvalidArgumentError, match="Unknown table orders"):
        pinned.sql("select count(*) from orders")


def test_changes_are_one_log_in_the_order_of_time(shop):
    changes = open_lake(shop).changes("2026-11-07", "2026-11-09 23:00")

    expected = [
        (row["committed_at"], name, row["version"])
        for name in ("orders", "payments", "shipments")
        for row in open_table(shop / name).history(since="2026-11-07", until="2026-11-09 23:00").to_dict()
    ]
    rows = changes.to_dict()
    assert sorted((row["committed_at"], row["table"], row["version"]) for row in rows) == sorted(expected)
    assert [row["committed_at"] for row in rows] == sorted((row["committed_at"] for row in rows), reverse=True)


def test_changes_are_summed_up_by_table_user_and_hour(shop):
    changes = open_lake(shop).changes("2026-11-07", "2026-11-09 23:00")

    for grouping in ("table", "user", "hour"):
        assert sum(changes.by(grouping)["commits"].to_pylist()) == len(changes)
    by_table = {row["table"]: row for row in changes.by("table").to_dict()}
    added = [row["added_rows"] for row in changes.to_dict() if row["table"] == "payments"]
    assert by_table["payments"]["added_rows"] == sum(added)
    assert by_table["shipments"]["removed_rows"] is None  # a commit does not record them
    with pytest.raises(errors.InvalidArgumentError, match="by must be one of table, user, hour"):
        changes.by("day")


def test_the_figure_has_a_lane_per_table(shop):
    figure = open_lake(shop).changes("2026-11-07", "2026-11-09 23:00").picture()

    assert re.findall(">(orders|payments|shipments)</text>", figure.svg) == ["orders", "payments", "shipments"]
    assert figure.svg.count("<title>") == len(open_lake(shop).changes("2026-11-07", "2026-11-09 23:00"))


def test_a_table_that_cannot_be_read_is_named_in_the_notes(tmp_path):
    lakes.write_delta(tmp_path / "broken", lakes.HISTORIES["broken"](0))
    lakes.damage(tmp_path / "broken", "delta")

    assert open_lake(tmp_path, at=lakes.NOW).changes("1d").notes[0].startswith("broken could not be read: ")


def test_a_lake_is_compared_with_its_past(shop):
    lake = open_lake(shop)

    rows = {row["name"]: row for row in lake.diff("2026-11-13", rows="orders").to_dict()}

    counts = open_table(shop / "orders").diff_rows("@2026-11-13", "latest").counts
    assert {name: rows["orders"][name] for name in counts} == counts
    assert rows["payments"]["change"] == "same"
    assert rows["payments"]["inserted"] is None
    assert rows["payments"]["shared_files"] == rows["payments"]["files_a"] == rows["payments"]["files_b"]


def test_two_lakes_are_compared_by_name(tmp_path, shop):
    shutil.copytree(shop, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy/shipments")
    lakes.write_paimon(tmp_path / "copy/extra", [lakes.Step(1, 0, 10)])

    diff = open_lake(shop).diff(open_lake(tmp_path / "copy"), rows=["orders"])

    changes = {row["name"]: row["change"] for row in diff.to_dict()}
    assert changes == {
        "extra": "only in B",
        "orders": "same",
        "payments": "counts equal",  # no row was compared
        "shipments": "only in A",
    }
    with pytest.raises(errors.TableNotFoundError, match="Did you mean orders?"):
        open_lake(shop).diff("2026-11-13", rows=["order"])


def test_a_query_over_an_instant_may_name_a_tag_a_branch_or_a_number_in_quotes(tmp_path):
    shutil.copytree(samples.path("orders"), tmp_path / "orders")
    orders, pinned = open_table(tmp_path / "orders"), open_lake(tmp_path).at("2026-11-10")

    for ref, at in (("v1", "tag:v1"), ("7", 7), ("dev", "branch:dev")):
        found = pinned.sql(f"select count(*) as n from orders version as of '{ref}'")["n"].tolist()
        assert found == [orders.at(at).count()]
