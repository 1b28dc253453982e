"""Follow a lake: new commits are found within a number of requests, and the widget shows them."""

import threading
import time
from datetime import UTC, datetime, timedelta

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from snapshot_explorer import errors, explore, open_lake
from tests.support import filesystems
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def tables(tmp_path):
    begin = datetime.now(UTC) - timedelta(hours=8)
    tables = {}
    for name in ("orders", "events"):
        table = tables[name] = PaimonTable(LocalFileSystem(auto_mkdir=True), str(tmp_path / name))
        for hour in range(7):
            table.commit([(hour, "a")], millis=round((begin + timedelta(hours=hour)).timestamp() * 1000))
    return tmp_path, tables


def now():
    return round(datetime.now(UTC).timestamp() * 1000)


def test_a_new_commit_renews_the_row_of_its_table(tables):
    root, by_name = tables
    follower = open_lake(root).follow()
    by_name["orders"].commit([(8, "b"), (9, "b")], millis=now())

    steps = [follower.step() for _ in range(2)]

    assert sorted((name, changed) for name, changed, _ in steps) == [("events", False), ("orders", True)]
    rows = {row["name"]: row for row in follower.overview.to_dict()}
    assert (rows["orders"]["version"], rows["events"]["version"]) == (8, 7)
    assert rows["orders"]["recent_rows"][-1] == 2


def test_a_table_that_was_created_again_with_as_many_versions_renews_its_row(tables):
    root, by_name = tables
    follower = open_lake(root, pattern="orders").follow()
    follower.step()

    by_name["orders"].rollback(6)
    by_name["orders"].commit([(8, "b"), (9, "b"), (10, "b")], millis=now())

    assert follower.step()[:2] == ("orders", True)
    (row,) = follower.overview.to_dict()
    assert (row["version"], row["recent_rows"][-1]) == (7, 3)


def test_the_pace_keeps_the_number_of_requests(tables):
    root, _ = tables
    follower = open_lake(root).follow(requests_per_minute=120)  # two looks a second: each counts as one
    looks, looked_often = [], threading.Event()
    step = follower.step

    def look():
        looks.append(time.monotonic())
        if len(looks) == 4:
            looked_often.set()
        return step()

    follower.step = look

    begun = time.monotonic()
    follower.start()
    assert looked_often.wait(60)
    follower.stop()

    assert looks[3] - begun > 1.4  # three pauses of half a second, and what a busy machine adds
    assert not follower.is_running


def test_the_requests_to_a_store_are_counted():
    counting = filesystems.counting("counted")
    fsspec.register_implementation("counted", counting, clobber=True)
    table = PaimonTable(fsspec.filesystem("memory"), "/followed/orders")
    table.commit([(1, "a")], millis=now())
    lake = open_lake("counted://followed")
    follower = lake.follow()

    unchanged = follower.step()
    table.commit([(2, "b")], millis=now())
    changed = follower.step()

    assert (unchanged[1], changed[1]) == (False, True)
    assert unchanged[2] < changed[2] < lake.tables[0].requests <= len(counting.requests)


def test_an_error_is_a_row_until_the_table_is_readable_again(tables):
    root, _ = tables
    lake = open_lake(root, pattern="orders")
    follower = lake.follow()
    (root / "orders/snapshot/snapshot-7").rename(root / "kept")
    (root / "orders/snapshot/snapshot-7").write_text("{")
    (root / "orders/snapshot/snapshot-8").write_text("{")

    follower.step()
    broken = follower.overview.to_dict()[0]
    (root / "orders/snapshot/snapshot-8").unlink()
    (root / "kept").rename(root / "orders/snapshot/snapshot-7")
    follower.step()

    assert broken["problem"]
    assert broken["state"] == "act"
    assert follower.overview.to_dict()[0]["problem"] is None


def test_following_goes_on_if_it_is_started_while_a_stopped_look_still_reads(tables, monkeypatch):
    follower = open_lake(tables[0]).follow(requests_per_minute=60_000)
    renew, reading, goes_on, looked_often = follower._renew, threading.Event(), threading.Event(), threading.Event()
    looks = []

    def slow(table):
        looks.append(table.name)
        reading.set()
        assert goes_on.wait(60)
        if len(looks) > 3:
            looked_often.set()
        return renew(table)

    monkeypatch.setattr(follower, "_renew", slow)
    follower.start()
    assert reading.wait(60)
    follower.stop()
    follower.start()
    goes_on.set()

    assert looked_often.wait(60)
    assert follower.is_running
    follower.stop()


def test_what_cannot_be_followed_is_refused(tables):
    root, _ = tables

    with pytest.raises(errors.InvalidArgumentError, match="nothing follows"):
        open_lake(root, at="1h").follow()
    with pytest.raises(errors.InvalidArgumentError, match="requests_per_minute must be a whole number, 1 or more"):
        open_lake(root).follow(requests_per_minute=0)


def test_the_widget_follows_if_it_was_told_to_before_its_tables_were_read(tables, monkeypatch):
    read, told = type(open_lake(tables[0])).overview, threading.Event()

    def overview(self, *arguments, **named):
        assert told.wait(60)
        return read(self, *arguments, **named)

    monkeypatch.setattr("snapshot_explorer.lake.Lake.overview", overview)
    monkeypatch.setattr("snapshot_explorer.jupyter.explorer.lake_view._FIRST_SECONDS", 0)
    view = explore(open_lake(tables[0]))
    view.follows = True
    told.set()
    view.wait(60)

    assert view._follower.is_running
    view.close()
    assert not view._follower.is_running


def test_the_widget_filters_sorts_and_opens_a_table(tables):
    root, _ = tables
    view = explore(open_lake(root)).wait()

    view.receive({"set": {"filter": "ord"}})
    names = view.names
    view.receive({"set": {"filter": "", "order": "table"}})
    in_order = view.names
    view.receive({"set": {"order": "no order", "filter": 1}})
    for column in view.overview_html.partition("<thead>")[2].partition("</thead>")[0].split("</th>")[:-1]:
        view.receive({"sort": column.rpartition(">")[2]})
        assert view.order == column.rpartition(">")[2]
    view.receive({"sort": "age"})
    downwards = view.overview["age_seconds"].to_pylist()
    view.receive({"sort": "age"})
    upwards = view.overview["age_seconds"].to_pylist()
    view.receive({"sort": "table"})
    view.receive({"open": "no table"})
    problem = view.problem
    view.receive({"open": "orders"})

    assert names == ["orders"]
    assert in_order == ["events", "orders"]
    assert (downwards, upwards) == (sorted(downwards, reverse=True), sorted(downwards))
    assert "no table" in problem
    assert (view.order, view.problem, view.explorer.table.name) == ("table", "", "orders")
    assert "orders" in view._repr_mimebundle_()["text/html"]
    view.close()
