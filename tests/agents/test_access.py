"""Agents reach the allowed folders and nothing else, for as long as a call may take, and no secret is in an answer."""

import json
import pickle
import re
import shutil
from time import monotonic

import fsspec
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import AccessDeniedError, InvalidArgumentError
from snapshot_explorer.storage import Storage, pickled_with_options
from tests.agents.conftest import Agent
from tests.inner.agents import TOOLS, Access, CallLimits, allowed_roots, answer_of
from tests.inner.core import StoppedError
from tests.support.delta.table_builder import DeltaTable, add

OUTSIDE = "outside of the folders that are allowed"
SECRET = "hunter2-canary"
NEEDED = {"where": "true", "condition": "true", "a": "1", "to": "1"}
WITH_PATH = [tool for tool in TOOLS if "path" in tool.parameters]


def needed(tool):
    return {name: NEEDED[name] for name in tool.parameters if name in NEEDED}


@pytest.mark.parametrize(
    "path",
    [
        "{lake}/../secret/orders",
        "file://{lake}/../secret/orders",
        "file:{lake}/../secret/orders",
        "{lake}/link",
        "~",
        "/",
        "memory://secret",
        "s3://secret/orders",
        "https://127.0.0.1:9/orders",
        "zip://orders::{lake}/../secret.zip",
    ],
)
@pytest.mark.parametrize("tool", WITH_PATH, ids=lambda tool: tool.name)
def test_no_path_leads_out(agent, lake, tool, path):
    link = lake / "link"
    if not link.is_symlink():
        link.symlink_to(lake.parent / "secret" / "orders")

    said = agent.fails(tool.name, path=path, **needed(tool))

    assert OUTSIDE in said or "which is not followed" in said or "A folder of an archive" in said


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{lake}/../secret.csv')",
        "select * from '{lake}/../secret.csv'",
        "from read_text('{lake}/../secret.csv')",
        "select * from read_parquet('{lake}/orders/bucket-0/*.parquet')",
        "select * from glob('{lake}/../*')",
        "select * from o, read_blob('{lake}/../secret.csv')",
        "select (select content from read_text('{lake}/../secret.csv')) as x from o",
        "attach '{lake}/../secret.db' as s",
        "copy (select 1) to '{lake}/out.csv'",
        "copy o from '{lake}/../secret.csv'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma database_list",
        "create table x as select 1",
        "select 1; select 2",
        "select 1) ; attach '{lake}/../secret.db' as s; (select 2",
        "select getenv('HOME')",
        "select * from duckdb_secrets()",
        "select * from information_schema.tables",
        "select * from secret",
        "explain analyze select * from read_csv('{lake}/../secret.csv')",
        "call pragma_version()",
        "export database '{lake}/x'",
        "select * from query('select * from read_text(''{lake}/../secret.csv'')')",
        "select * from query_table('o')",
    ],
)
def test_sql_sees_the_given_tables_and_nothing_else(agent, lake, query):
    answer = agent.raw("sql", query=query.format(lake=lake), tables={"o": "{lake}/orders"})

    assert "error" in answer, answer
    assert "hunter2" not in json.dumps(answer)
    assert not (lake / "out.csv").exists()
    assert not (lake / "x").exists()


def test_sql_opens_no_table_outside(agent):
    said = agent.fails("sql", query="select * from o", tables={"o": "{lake}/../secret/orders"})
    assert OUTSIDE in said


def test_metadata_that_names_a_file_outside_is_refused(tmp_path):
    table = DeltaTable(None, tmp_path / "lake" / "clone")
    table.commit(add(f"file://{tmp_path}/outside/a.parquet", rows=1))
    agent = Agent(tmp_path / "lake")

    said = agent.fails("sql", query="select * from t where id > 0", tables={"t": "{lake}/clone"})

    assert OUTSIDE in said
    assert "outside/a.parquet" in said


def test_a_linked_data_file_is_not_read(tmp_path):
    orders = shutil.copytree(samples.path("orders"), tmp_path / "lake" / "orders")
    data = next(orders.glob("bucket-0/*.parquet"))
    data.symlink_to(shutil.move(data, tmp_path / "elsewhere.parquet"))

    answer = Agent(tmp_path / "lake")("trace", path="{lake}/orders", where="order_id = 42")

    reasons = [row["reason"] for row in answer["rows"] if row["rows"] is None]
    assert reasons
    assert all(OUTSIDE in reason for reason in reasons if reason)
    assert answer["facts"]["is_complete"] is False


def test_a_call_ends_after_its_time(agent):
    said = agent.fails("sql", limits=CallLimits(seconds=0.0), query="select 1 from o", tables={"o": "{lake}/orders"})
    assert said.startswith("The call took more than 0 seconds, the limit of this server, and was stopped.")

    began = monotonic()
    query = "select count(*) from range(1000000) a, range(1000000) b, o where a.range + b.range + amount < 0"
    said = agent.fails("sql", limits=CallLimits(seconds=0.5), query=query, tables={"o": "{lake}/orders"})
    assert said.startswith("The call took more than 0.5 seconds")
    assert monotonic() - began < 100  # of the hours that it would take


def test_a_call_that_nobody_waits_for_ends_at_its_next_read(lake):
    access = Access(allowed_roots([str(lake)]), None, CallLimits())
    storage = Storage(lake, access.options_for(str(lake)))
    access.stop()

    answer = answer_of("trace", {"path": f"{lake}/orders", "where": "true"}, access).content

    assert answer["error"]["type"] == "LimitError"
    with pytest.raises(StoppedError):
        storage.list("")


@pytest.mark.parametrize("call", [tool for tool in TOOLS if tool.name != "sql"], ids=lambda tool: tool.name)
def test_no_secret_is_in_an_answer(lake, call):
    options = {"key": SECRET, "secret": f"{SECRET}-2", "endpoint_url": "http://127.0.0.1:9"}
    agent = Agent(lake, options)
    has_path = "path" in call.parameters

    texts = [json.dumps(agent.raw(call.name, **({"path": "{lake}/orders"} if has_path else {}), **needed(call)))]
    access = Access(allowed_roots([str(lake), "s3://lake"]), options, CallLimits(seconds=20))
    if call.name in ("describe_table", "find_tables"):
        urls = ("s3://lake/orders", f"https://user:{SECRET}@host/x?sig={SECRET}", f"s3://{SECRET}:x@lake/orders")
        texts += [json.dumps(answer_of(call.name, {"path": url}, access).content) for url in urls]

    assert all(SECRET not in text for text in texts)


def test_roots_are_checked_when_the_server_starts(lake, tmp_path):
    with pytest.raises(InvalidArgumentError, match="No folder is allowed"):
        allowed_roots([])
    with pytest.raises(InvalidArgumentError, match="is not a folder"):
        allowed_roots([str(tmp_path / "none")])
    with pytest.raises(InvalidArgumentError) as caught:
        allowed_roots([f"https://host/lake?sig={SECRET}"])
    assert SECRET not in str(caught.value)


def test_processes_that_read_for_a_call_are_confined_too(lake):
    access = Access(allowed_roots([str(lake)]), {"key": SECRET}, CallLimits())
    for content in (
        pickled_with_options(Storage(lake, access.options_for(str(lake)))),
        pickled_with_options(Storage(lake, access.options_for(str(lake))).below("orders")),
    ):
        storage = pickle.loads(content)
        (lake / "orders" / "out").unlink(missing_ok=True)
        (lake / "orders" / "out").symlink_to(lake.parent / "secret")
        with pytest.raises(AccessDeniedError, match=OUTSIDE):
            storage.list("orders/out" if storage.root.endswith("lake") else "out")
        (lake / "orders" / "out").unlink()


def test_a_call_ends_after_its_requests():
    fs = fsspec.filesystem("memory")
    fs.put(f"{samples.path('orders')}/", "/requests/orders", recursive=True)
    limits, roots = CallLimits(requests=5), allowed_roots(["memory://requests"])
    path = {"path": "memory://requests/orders"}

    access = Access(roots, None, CallLimits())
    answer = answer_of("history", path, access).content
    stopped = answer_of("history", path, Access(roots, None, limits)).content

    assert answer["evidence"]["requests"] == access.requests > 5
    assert answer["limits"]["requests"] == 10_000
    assert stopped["error"]["message"].startswith("The call needed more than 5 requests, the limit of this server")
    fs.rm("/requests", recursive=True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sql", {"query": "select * from o", "tables": {"o": "{lake}/orders"}}),
        ("sql", {"query": "select * from o for system_time all where amount < 0", "tables": {"o": "{lake}/orders"}}),
        ("sql", {"query": "select count(*) from o for system_time all", "tables": {"o": "{lake}/orders"}}),
        ("changed_rows", {"path": "{lake}/orders", "a": "7", "b": "8"}),
        ("blame", {"path": "{lake}/orders", "where": "order_id = 42"}),
        ("trace", {"path": "{lake}/orders", "where": "order_id = 42"}),
        ("bisect", {"path": "{lake}/orders", "condition": "amount < 0"}),
        ("repair_plan", {"path": "{lake}/payments", "to": "10"}),
        ("repair_plan", {"path": "{lake}/payments", "undo": "21", "key": ["payment_id"]}),
    ],
)
def test_a_call_that_would_read_too_much_is_refused_before_it_reads(agent, name, arguments):
    said = agent.fails(name, limits=CallLimits(size_bytes=1_000), **arguments)

    assert re.match(r"This may read [\d.]+ kB of data files, and the limit of a call is 1.0 kB\. [AGC]", said), said


def test_the_message_of_a_repair_is_its_own(agent):
    assert agent.fails("repair_plan", path="{lake}/payments").startswith("repair needs either the commit to undo")
    assert agent.fails("repair_plan", path="{lake}/payments", undo="99").startswith("Version 99 does not exist.")


@pytest.mark.parametrize("limit", ["rows", "seconds", "size_bytes", "requests"])
def test_a_negative_limit_is_refused(limit):
    with pytest.raises(InvalidArgumentError, match=f"The limit {limit} must be 0 or more, got -1"):
        CallLimits(**{limit: -1})


def test_nothing_is_written(tmp_path):
    orders = shutil.copytree(samples.path("orders"), tmp_path / "lake" / "orders")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob("*")}
    agent = Agent(tmp_path / "lake")

    for tool in WITH_PATH:
        agent.raw(tool.name, path=str(orders), **needed(tool))

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob("*")} == before
    assert open_table(orders).current.version == 18
