"""What tools answer: the same as the Python calls, with evidence, within limits, and calls to make next."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import fastjsonschema
import pyarrow as pa
import pytest

from snapshot_explorer import open_lake, open_table
from tests.inner.agents import OUTPUT_SCHEMA, TOOLS, Answer, CallLimits, ToolSpelling, reply_of
from tests.inner.core import VERBS, Hint, python_call

CALLS = [
    ("find_tables", {}),
    ("find_tables", {"path": "{lake}", "depth": 1}),
    ("lake_overview", {"path": "{lake}", "since": "30d"}),
    ("describe_table", {"path": "{lake}/orders"}),
    ("describe_table", {"path": "{lake}/orders", "ref": "tag:v1"}),
    ("describe_table", {"path": "{lake}/shipments"}),
    ("history", {"path": "{lake}/rides"}),
    ("history", {"path": "{lake}/orders", "between": "5..8", "limit": 2}),
    ("find_anomalies", {"path": "{lake}/payments", "columns": ["amount"]}),
    ("find_anomalies", {"path": "{lake}/events"}),
    ("compare", {"path": "{lake}/orders", "a": "7", "b": "8"}),
    ("compare", {"path": "{lake}/shipments", "a": "latest^"}),
    ("changed_rows", {"path": "{lake}/orders", "a": "8^", "b": "8"}),
    ("changed_rows", {"path": "{lake}/payments", "a": "10", "b": "11", "key": ["payment_id"], "where": "amount > 1"}),
    ("blame", {"path": "{lake}/orders", "where": "order_id = 42"}),
    ("bisect", {"path": "{lake}/payments", "condition": "amount > 1000", "bad": "12"}),
    ("bisect", {"path": "{lake}/payments", "condition": "amount > 1000000"}),
    ("trace", {"path": "{lake}/orders", "where": "order_id = 42"}),
    ("sql", {"query": "select * from o version as of 8 order by order_id", "tables": {"o": "{lake}/orders"}}),
    ("sql", {"query": "describe o", "tables": {"o": "{lake}/orders"}}),
    ("health", {"path": "{lake}/orders"}),
    ("health", {"path": "{lake}/shipments", "ref": "latest^"}),
    ("usage", {"path": "{lake}/orders", "by": "version", "to_free": "50 kB"}),
    ("repair_plan", {"path": "{lake}/payments", "to": "10"}),
    ("repair_plan", {"path": "{lake}/payments", "undo": "21", "key": ["payment_id"]}),
]


@pytest.mark.parametrize(
    ("name", "arguments"), CALLS, ids=[f"{number}-{name}" for number, (name, _) in enumerate(CALLS)]
)
def test_every_answer_fits_the_declared_schema_and_is_json(agent, name, arguments):
    answer = agent(name, **arguments)

    fastjsonschema.compile(OUTPUT_SCHEMA)(json.loads(json.dumps(answer)))
    assert answer["answer"]
    assert answer["evidence"]["seconds"] >= 0
    assert str(agent.lake) in answer["evidence"]["table"]


@pytest.mark.parametrize(
    ("name", "arguments"), CALLS, ids=[f"{number}-{name}" for number, (name, _) in enumerate(CALLS)]
)
def test_the_python_of_the_evidence_runs(agent, name, arguments):
    import snapshot_explorer

    answer = agent(name, **arguments)
    result = None
    for line in answer["evidence"]["python"].split("; "):
        result = eval(line, {key: getattr(snapshot_explorer, key) for key in snapshot_explorer.__all__})

    if name == "changed_rows":
        assert result.counts == {key: answer["facts"][key] for key in ("inserted", "deleted", "updated")}
    elif name == "bisect":
        assert result.version == answer["facts"]["version"]
    elif name == "blame":
        assert len(result) == answer["rows_total"]
    assert result is not None


@pytest.mark.parametrize(
    ("name", "arguments"), CALLS, ids=[f"{number}-{name}" for number, (name, _) in enumerate(CALLS)]
)
def test_every_call_that_is_suggested_can_be_made(agent, name, arguments):
    for call in agent(name, **arguments)["next_calls"][:2]:
        tool = next(item for item in TOOLS if item.name == call["tool"])
        fastjsonschema.compile(tool.input_schema)(call["arguments"])
        assert call["left_to_you"] == []
        answer = agent.raw(call["tool"], **call["arguments"])
        assert "error" not in answer or answer["error"]["type"] == "UnsupportedFeatureError"


def test_there_are_a_dozen_tools_and_every_one_is_described_for_a_model():
    assert len(TOOLS) == 14
    for tool in TOOLS:
        assert tool.use.startswith(("Use ", "Start here "))
        assert len(tool.use) > 100
        fastjsonschema.compile(tool.input_schema)
        assert "Rows:" in tool.use
        assert all(schema["description"] for schema in tool.parameters.values())


def test_answers_are_those_of_the_python_calls(agent, lake):
    orders = open_table(lake / "orders")

    changed = agent("changed_rows", path="{lake}/orders", a="7", b="8")
    assert changed["facts"]["updated"] == 16 == orders.diff_rows(7, 8).counts["updated"]
    assert changed["rows_total"] == 32
    assert [row["amount"] for row in changed["rows"]] == [
        None if value is None else str(value) for value in orders.diff_rows(7, 8).to_arrow()["amount"].to_pylist()
    ]
    assert changed["evidence"]["versions"] == [7, 8]
    assert changed["evidence"]["times"] == "7 of 2026-11-05 20:00:00.462Z to 8 of 2026-11-06 03:00:00.444Z"
    assert changed["evidence"]["read"] == {
        "files": 14, "size_bytes": 30191, "files_of_both_versions_not_read": 0
    }  # fmt: skip

    history = agent("history", path="{lake}/orders", limit=3)
    assert [row["version"] for row in history["rows"]] == [18, 17, 16]
    assert "readable" in history["rows"][0]
    assert history["rows"][0]["readable"] is None  # not checked

    names = [row["name"] for row in agent("find_tables")["rows"]]
    assert names == [table.name for table in open_lake(lake)]


def test_large_versions_are_texts_in_the_evidence_too(agent):
    history = agent("history", path="{lake}/rides")

    assert history["evidence"]["versions"][-1] == history["rows"][0]["version"] == "20261112220000116"


def test_nothing_is_left_out_silently(agent):
    answer = agent(
        "sql", limits=CallLimits(rows=3, resource_rows=3), query="select * from o", tables={"o": "{lake}/orders"}
    )

    assert (len(answer["rows"]), answer["limits"]["reached"]) == (3, ["rows"])
    assert (answer["answer"], answer["rows_total"]) == ("More than 3 rows.", None)
    assert answer["evidence"]["not_checked"] == ["Rows beyond the limit were not computed: their number is unknown."]

    answer = agent("history", limits=CallLimits(rows=3), path="{lake}/orders")
    assert (len(answer["rows"]), answer["rows_total"], answer["limits"]["reached"]) == (3, 18, ["rows"])

    answer = agent("history", limits=CallLimits(answer_bytes=1_000), path="{lake}/orders")
    assert answer["limits"]["reached"] == ["answer_bytes"]
    assert 0 < len(answer["rows"]) < 4

    answer = agent("sql", query="select repeat('x', 2000) as long from o limit 1", tables={"o": "{lake}/orders"})
    assert answer["rows"][0]["long"] == "x" * 500 + "... (1,500 more letters)"


def test_a_query_is_cut_in_its_own_order(agent):
    query = "select order_id from o order by order_id desc -- the newest\n;"

    answer = agent("sql", limits=CallLimits(rows=2, resource_rows=2), query=query, tables={"o": "{lake}/orders"})

    rows = agent("sql", query="select max(order_id) as last from o", tables={"o": "{lake}/orders"})["rows"]
    assert [row["order_id"] for row in answer["rows"]] == [rows[0]["last"], rows[0]["last"] - 1]


def test_a_comment_behind_a_query_is_no_error(agent):
    query = "select order_id from o; -- of the newest version"

    answer = agent("sql", limits=CallLimits(rows=2, resource_rows=2), query=query, tables={"o": "{lake}/orders"})

    assert answer["answer"] == "More than 2 rows."


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sql", {"query": "select * from o", "tables": {"o": "{lake}/orders"}}),
        ("changed_rows", {"path": "{lake}/orders", "a": "7", "b": "8"}),
        ("bisect", {"path": "{lake}/orders", "condition": "amount < 0"}),
    ],
)
def test_more_bytes_than_the_limit_are_not_read(agent, name, arguments):
    message = agent.fails(name, limits=CallLimits(size_bytes=100), **arguments)

    assert "of data files, and the limit of a call is 100 B." in message


def test_a_statement_is_exact_or_left_out(agent):
    answer = agent("repair_plan", path="{lake}/payments", to="10")
    assert answer["statements"] == [open_table(agent.lake / "payments").repair(to=10).statement]

    answer = agent("repair_plan", limits=CallLimits(answer_bytes=10), path="{lake}/payments", to="10")
    assert answer["statements"] == []
    assert answer["evidence"]["not_checked"][0].startswith("The statements are too long for an answer")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "history: 'path' is a required property. path: the folder or URL of a table"),
        (
            {"path": "{lake}/orders", "limt": 3},
            "history: Additional properties are not allowed ('limt' was unexpected). ",
        ),
        ({"path": "{lake}/orders", "limt": 3}, " limit: at most so many commits"),
        ({"path": "{lake}/orders", "limit": "3"}, "history: '3' is not of type 'integer'. limit: at most so many"),
        ({"path": "{lake}/orders", "limit": True}, "history: True is not of type 'integer'. limit: at most so many"),
        ({"path": ["{lake}/orders"]}, "is not of type 'string'. path: the folder or URL of a table"),
        ({"path": "x" * 30_000}, "is too long. path: the folder or URL of a table"),
        (
            {"path": "{lake}/orders", "kind": "compaction"},
            "'compaction' is not one of ['append', 'overwrite', 'compact'",
        ),
        ({"path": "{lake}/ordrs"}, "Did you mean orders?"),
        ({"path": "{lake}/orders", "between": "17..99"}, "Version 99 does not exist."),
    ],
)
def test_a_mistake_is_an_answer_that_says_what_to_do(agent, arguments, message):
    assert message in agent.fails("history", **arguments)


def test_lists_of_arguments_have_texts(agent):
    said = agent.fails("blame", path="{lake}/orders", where="true", key=[1])
    assert said.startswith("blame: 1 is not of type 'string'. key: the columns that together identify a row")
    said = agent.fails("sql", query="select 1", tables={"o": 3})
    assert said.startswith("sql: 3 is not of type 'string'. tables: the path of each table")


def test_hints_in_errors_are_calls_of_tools(agent):
    answer = agent.raw("describe_table", path="{lake}/orders/snapshot")

    assert answer["next_calls"] == [
        {"tool": "describe_table", "arguments": {"path": f"{agent.lake}/orders"}, "left_to_you": []}
    ]
    assert "open_table(" not in answer["error"]["message"]


def test_an_unknown_tool_names_the_tools(agent):
    assert agent.fails("drop_table").startswith("There is no such tool. Tools: find_tables, ")


def test_values_are_exact_in_every_reader_of_json():
    big = 2**53 + 1
    rows = pa.table(
        {
            "id": [big],
            "x": [float("nan")],
            "t": [datetime(2026, 1, 1, tzinfo=UTC)],
            "b": [b"\x00\xff"],
            "m": [[{"a": 1}]],
        }
    )
    rows = rows.append_column("x", pa.array(["twice"]))

    answer = reply_of(Answer(text="t", rows=rows), CallLimits(), {}, ToolSpelling({})).content

    assert answer["rows"] == [
        {"id": str(big), "x": None, "t": "2026-01-01T00:00:00Z", "b": "00ff", "m": [{"a": 1}], "x (6)": "twice"}
    ]


def test_what_was_not_checked_is_never_called_fine(agent, tmp_path):
    answer = agent("describe_table", path="{lake}/orders")
    assert "Whether all files exist: health looks for them." in answer["evidence"]["not_checked"]

    answer = agent("trace", path="{lake}/orders", where="order_id = 42")
    assert answer["facts"]["is_complete"] is False
    assert answer["evidence"]["not_checked"][-1] == "Not everything could be examined: this proves no absence."


def test_tables_that_cannot_be_read_are_counted(agent, tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "notes.ducklake").write_text("no database")
    broken = type(agent)(tmp_path / "lake")

    assert broken("find_tables")["answer"] == f"0 tables below {tmp_path}/lake, 1 more cannot be read."
    overview = broken("lake_overview", path="{lake}")["answer"]
    assert overview == f"1 table below {tmp_path}/lake, 0 to look at, 1 cannot be read; the most urgent first."


def test_what_a_notebook_says_is_left_out_an_agent_says_too(agent):
    trace = agent("trace", path="{lake}/orders", where="order_id = 42")["evidence"]["not_checked"]
    assert "files that no version names, and copies of the table elsewhere" in trace[0]
    assert any(note.startswith("Not known in version") for note in trace)

    usage = agent("usage", path="{lake}/orders", to_free="50 kB")["evidence"]["not_checked"]
    assert "The path does not contain the database: replace DATABASE with its name." in usage

    before = agent("changed_rows", path="{lake}/orders", a="18", b="2")
    assert before["evidence"]["not_checked"] == ["Version 2 lacks the column channel: it was not compared."]


def test_hints_in_an_answer_become_calls_once():
    hint = Hint("table.history")
    spelling = ToolSpelling({"path": "/t"})
    answer = reply_of(Answer(text="t", hints=[hint, hint]), CallLimits(), {}, spelling).content
    assert [call["tool"] for call in answer["next_calls"]] == ["history"]


def test_the_guide_lists_every_tool():
    page = Path(__file__).parents[2] / "notebooks" / "guide" / "agents.md"

    assert re.findall(r"^\| `(\w+)` \|", page.read_text("utf-8"), re.MULTILINE) == [tool.name for tool in TOOLS]


def test_a_tool_has_the_parameters_of_the_calls_that_it_makes():
    for tool in TOOLS:
        names = tool.parameters.keys()
        for verb in tool.verbs:
            assert verb in VERBS
            assert set(VERBS[verb]) <= names | {"path"}


@pytest.mark.parametrize(
    ("hint", "arguments", "left"),
    [
        (Hint("table.diff_rows", {"a": 7, "b": 8, "key": "id"}), {"path": "/t", "a": "7", "b": "8", "key": ["id"]}, []),
        (Hint("table.diff_rows", {"a": 7}), {"path": "/t", "a": "7"}, []),
        (Hint("table.blame", {"where": ...}), {"path": "/t"}, ["where"]),
        (Hint("table.blame"), {"path": "/t"}, ["where"]),
        (Hint("open_table", {"path": "/other"}), {"path": "/other"}, []),
        (Hint("open_table", {"path": ...}), {"path": "/t"}, []),
        (Hint("table.at", {"ref": 17}), {"path": "/t", "ref": "17"}, []),
        (Hint("", {"key": ["a", "b"]}), {"path": "/t", "key": ["a", "b"]}, ["a"]),
    ],
)
def test_hints_are_spelled_as_calls_of_tools(hint, arguments, left):
    changed_rows = next(tool for tool in TOOLS if tool.name == "changed_rows")

    spelling = ToolSpelling({"path": "/t"}, changed_rows)

    call = spelling.call(hint)

    assert (call["arguments"], call["left_to_you"]) == (arguments, left)
    assert spelling.text(hint).endswith(json.dumps(arguments, separators=(",", ":")))


@pytest.mark.parametrize(
    "hint",
    [
        Hint("table.verify"),
        Hint("open_table", {"path": "/t", "relocate": {}}),
        Hint("", {"limits": 3}),
        Hint("table.diff_rows", {"a": 7, "key": ["id\u202e"]}),
        Hint("table.diff_rows", {"a": 7, "key": "x" * 2_000}),
    ],
)
def test_what_no_tool_does_is_spelled_in_python(hint):
    spelling = ToolSpelling({"path": "/t"}, TOOLS[0])

    assert spelling.call(hint) is None
    assert spelling.text(hint) == python_call(hint)


def test_calls_about_a_branch_keep_it(agent):
    answer = agent("history", path="{lake}/orders", branch="dev")

    assert {call["arguments"].get("branch") for call in answer["next_calls"]} == {"dev"}
    assert "branch='dev'" in answer["evidence"]["python"]
    answer = agent("describe_table", path="{lake}/orders", branch="dev")
    assert answer["evidence"]["python"] == f"open_table('{agent.lake}/orders', branch='dev').at('latest')"
