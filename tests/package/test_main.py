"""`snapshot-explorer`, which is `python -m snapshot_explorer`, prints a table in a terminal."""

import json
import os
import re
import runpy
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from snapshot_explorer import __version__, open_table, samples
from snapshot_explorer.lake import LakeSnapshot
from snapshot_explorer.terminal import commands
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable, add

RUN = "snapshot-explorer"
COMMAND = [sys.executable, "-m", "snapshot_explorer"]


def run(*arguments, **variables):
    return subprocess.run(
        [*COMMAND, *arguments], check=False, capture_output=True, text=True, env=os.environ | variables
    )


def test_the_card_and_the_newest_commits_are_printed():
    answer = run(samples.path("orders"), "-n", "3")

    assert answer.returncode == 0
    assert re.search(r"^newest version +18$", answer.stdout, re.MULTILINE)
    assert re.search(r"^columns +order_id, buyer, amount", answer.stdout, re.MULTILINE)
    assert "%snapshot" not in answer.stdout
    assert "3 of 18 versions" in answer.stdout


def test_the_tables_below_a_folder_that_is_not_a_table_are_printed():
    answer = run(str(Path(samples.path("orders")).parent))

    assert answer.returncode == 0
    assert "Tables below" in answer.stdout
    assert "orders  paimon" in answer.stdout


def test_a_table_that_cannot_be_read_is_an_error_in_one_line():
    answer = run("/not/there", "--format", "delta")

    assert answer.returncode == 2
    assert answer.stderr.startswith("No delta table at /not/there")
    assert answer.stderr.count("\n") == 1


def test_text_is_as_wide_as_the_terminal_and_in_its_letters(tmp_path):
    table = DeltaTable(None, tmp_path, fields=(("stra\u00dfe", "string"), ("size", "long")))
    table.commit(add("a", rows=1), add("b", rows=1))

    answer = run(str(tmp_path), COLUMNS="60", PYTHONIOENCODING="ascii")

    assert answer.returncode == 0
    assert "columns         stra\\xdfe, size" in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 60
    assert "not shown: " in answer.stdout


def test_a_reader_that_stops_reading_ends_it_without_a_traceback():
    source, target = os.pipe()
    os.close(source)

    answer = subprocess.run(
        [*COMMAND, samples.path("orders")], check=False, stdout=target, stderr=subprocess.PIPE, text=True
    )
    os.close(target)

    assert (answer.returncode, answer.stderr) == (141, "")


@pytest.fixture
def heeds_interrupts():
    """Let new processes heed SIGINT. A shell makes what it runs in the background ignore it, and they inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a process")
@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_ends_it_while_a_server_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/orders"
        with subprocess.Popen([*COMMAND, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = server.accept()
            process.send_signal(signal.SIGINT)
            try:
                _, said = process.communicate(timeout=60)
            finally:
                process.kill()
                connection.close()

    assert (process.returncode, said) == (130, "")


def test_an_interrupt_ends_it_while_it_loads(monkeypatch):
    class Interrupts:
        def find_spec(self, name, *_):
            if name == "snapshot_explorer.lake.discovery":
                raise KeyboardInterrupt

    for name in ("snapshot_explorer.lake.discovery", "snapshot_explorer.terminal.program"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])

    with pytest.raises(SystemExit, match="130"):
        runpy.run_module("snapshot_explorer", run_name="__main__")


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0

    assert capsys.readouterr().out == f"snapshot-explorer {__version__}\n"


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    return shutil.copytree(samples.path("orders"), tmp_path_factory.mktemp("lake") / "orders")


def printed(capsys, *words):
    status = main([str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_command_of_the_magic_runs_in_a_terminal():
    answer = run("log", samples.path("orders"), "-n", "3")

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("History of orders\n")
    assert "3 of 18 versions" in answer.stdout


@pytest.mark.parametrize("name", ["status", "log", "health", "retention", "verify", "tags", "files"])
def test_commands_print_text_and_json(capsys, orders, name):
    status, shown, _ = printed(capsys, name, orders)
    assert (status, shown.strip() != "") == (0, True)
    assert "%snapshot" not in shown
    assert f"{orders}None" not in shown

    status, shown, _ = printed(capsys, name, orders, "--json")
    assert status == 0
    assert isinstance(json.loads(shown), list | dict)


@pytest.mark.parametrize("words", [["log", "--picture"], ["branches", "--picture"], ["files", "--plan"]])
def test_pictures_and_plans_are_printed_as_text_and_json(capsys, orders, words):
    name, *options = words
    for more in ([], ["--json"]):
        status, shown, _ = printed(capsys, name, orders, *options, *more)
        assert (status, shown.strip() != "") == (0, True)


def test_rows_are_printed_as_json(capsys, orders):
    _, shown, _ = printed(capsys, "sql", orders, "select count(*) as n from orders", "--json")
    assert json.loads(shown) == [{"n": 41}]

    _, shown, said = printed(capsys, "load", orders, 17, "--limit", 3, "--columns", "order_id", "--json")
    assert [set(row) for row in json.loads(shown)] == [{"order_id"}] * 3
    assert "reading" in said


def test_columns_of_one_name_are_printed_apart(capsys, orders):
    query = "select 1 as n, 2 as n from orders limit 1"
    assert json.loads(printed(capsys, "sql", orders, query, "--json")[1]) == [{"n": 1, "n (2)": 2}]
    assert "n (2)" in printed(capsys, "sql", orders, query)[1]


def test_an_answer_is_printed_with_its_facts(capsys, orders):
    _, shown, _ = printed(capsys, "bisect", orders, "count(*) > 10", "--json")

    answer = json.loads(shown)
    assert answer["first"] == str(open_table(str(orders)).bisect("count(*) > 10").first)
    assert answer["condition"] == "count(*) > 10"


def test_changed_rows_are_printed_as_json_also_without_a_key(capsys):
    path = samples.path("invoices")
    status, shown, _ = printed(capsys, "diff", path, "1..latest", "--rows", "--json")

    difference, expected = json.loads(shown), open_table(path).diff_rows(1, "latest")
    assert (status, difference["key"], difference["counts"]) == (0, [], expected.counts)
    assert [row["rowkind"] for row in difference["rows"]] == expected.to_arrow()["rowkind"].to_pylist() != []

    _, shown, _ = printed(capsys, "diff", path, "1..latest", "--rows", "--preview", "--json")
    assert json.loads(shown) == {name: difference[name] for name in difference if name not in ("counts", "rows")}


def test_mistakes_are_one_line_that_can_be_typed_in_a_terminal(capsys, orders):
    for words, said in (
        (["blame", orders], f"snapshot-explorer blame {orders} needs CONDITION"),
        (["blame"], "blame needs a path: snapshot-explorer blame PATH."),
        (["diff", orders, "17..99"], "Version 99 does not exist."),
        (["log", orders, "-o", "x"], "--out is for notebooks."),
        (["logs", orders], "There is no command logs. Did you mean log?"),
        (["log", orders, "--options", orders / "none.json"], "--storage-options: "),
        (["log", orders, "--options", '{"key": "k"}'], "--storage-options is the name of a JSON file, not the options"),
        (["report", orders, "none.html", "--where", "amont = 3"], "Unknown column 'amont'"),
        (["health", orders, "--jsn"], f"{RUN} health {orders} has no option --jsn. Did you mean --json?"),
        (["tags", orders, "--zzz"], f"{RUN} tags {orders} has no option --zzz. Options: --branch, --format, "),
        (
            ["lake", orders.parent, "--branch", "b"],
            f"{RUN} lake {orders.parent} has no option --branch. Options: --since, ",
        ),
        (["tags", orders, "x"], f"{RUN} tags {orders} takes no argument; 'x' is one too many."),
        (["timeline", orders], f"There is no command timeline. Use: {RUN} log {orders} --picture"),
        (["tables", orders.parent], f"There is no command tables. Use: {RUN} lake {orders.parent} --list"),
        (["plan", orders], f"There is no command plan. Use: {RUN} files {orders} --plan"),
        (["close", orders], "There is no command close. Commands: status, "),
        (["check", orders, "--fail-on", "rows <"], "The condition 'rows <' is not SQL: a value is missing after <."),
    ):
        status, shown, error = printed(capsys, *words)
        assert (status, shown, error.count("\n")) == (2, "", 1)
        assert error.startswith(said)


def test_the_example_in_a_message_can_be_typed_in_a_shell(capsys, orders):
    for name, example in (("blame", "order_id = 42"), ("sql", "select * from orders@17")):
        _, _, error = printed(capsys, name, orders)

        assert error.endswith(f'Example: {RUN} {name} {orders} "{example}"\n')


def test_a_key_is_suggested_as_an_option(capsys, tmp_path):
    table = DeltaTable(
        None,
        tmp_path,
        fields=(("id", "long"), ("parts", {"type": "array", "elementType": "long", "containsNull": True})),
    )
    table.commit(add("a", rows=1))

    _, _, error = printed(capsys, "load", tmp_path, "--duplicates")

    assert error.endswith("Name other columns as the key, such as --key id.\n")


def test_the_versions_of_a_lake_are_printed_as_the_record_that_can_be_opened(capsys, orders):
    _, shown, _ = printed(capsys, "lake", orders.parent, "--pin", "--json")

    assert LakeSnapshot.from_json(shown).versions["version"].to_pylist() == [18]
    assert set(json.loads(shown)) == {"kind", "name", "time", "tables"}


def test_storage_options_come_from_a_file_whose_content_is_in_no_message(capsys, tmp_path, orders):
    file = tmp_path / "options.json"
    file.write_text('{"key": "hunter2"')
    status, _, error = printed(capsys, "log", orders, "--options", file)
    assert status == 2
    assert "is not a JSON object" in error
    assert "hunter2" not in error

    file.write_text("{}")
    assert printed(capsys, "log", orders, "--options", file, "-n", 1)[0] == 0


def test_help_names_the_commands(capsys):
    assert main(["--help"]) == 0

    shown = capsys.readouterr().out
    assert "  What happened?                          log, show, tags, branches\n" in shown
    assert "The exit status is 0,\n1 where a check fails, 2 where something cannot be read" in shown


def test_without_words_ten_lines_name_every_command_by_its_question(capsys):
    assert main([]) == 0

    shown = capsys.readouterr().out.splitlines()
    named = [name for line in shown[2:] for name in line.rpartition("  ")[2].split(", ")]
    assert len(shown) == 10
    assert named == [*commands.names(), "demo", "notebook", "mcp", "completion", "help"]


def test_the_installed_command_is_the_module():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["scripts"] == {"snapshot-explorer": "snapshot_explorer.__main__:run"}


def test_help_is_about_the_terminal(capsys):
    status, shown, _ = printed(capsys, "log", "--help")

    assert status == 0
    assert shown.startswith("snapshot-explorer log PATH ")
    assert "--json" in shown
    assert "--out" not in shown
    assert "variable" not in shown


def test_examples_in_help_are_lines_for_a_shell(capsys):
    _, shown, _ = printed(capsys, "bisect", "--help")
    assert '  snapshot-explorer bisect PATH "' in shown

    _, shown, _ = printed(capsys, "sql", "--help")
    assert '  snapshot-explorer sql PATH "select * from orders@17"' in shown
    assert "%" not in shown

    _, shown, _ = printed(capsys, "lake", "--help")
    assert "  snapshot-explorer lake PATH --since yesterday --match 'ord*'\n" in shown


def test_a_report_says_as_json_what_it_wrote(capsys, orders, tmp_path):
    status, shown, _ = printed(capsys, "report", orders, str(tmp_path / "night.html"), "--json")

    assert status == 0
    assert json.loads(shown)["message"].startswith(f"Wrote {tmp_path / 'night.html'}, ")


def test_errors_are_json_too(capsys, orders):
    status, shown, error = printed(capsys, "diff", orders, "17..99", "--json")

    assert (status, error) == (2, "")
    assert json.loads(shown)["error"]["type"] == "SnapshotNotFoundError"
    assert json.loads(shown)["error"]["message"].startswith("Version 99 does not exist.")


def test_the_tables_below_a_folder_are_printed_as_json(capsys, orders):
    status, shown, _ = printed(capsys, "lake", orders.parent, "--list", "--json")

    assert status == 0
    assert [row["name"] for row in json.loads(shown)] == ["orders"]


def test_a_verification_that_finds_a_problem_has_an_exit_status(capsys, orders, tmp_path):
    assert printed(capsys, "verify", orders)[0] == 0

    damaged = shutil.copytree(orders, tmp_path / "orders")
    next(damaged.glob("bucket-0/*.parquet")).unlink()
    assert printed(capsys, "verify", damaged)[0] == 1


def test_an_environment_variable_names_the_storage_options(capsys, monkeypatch, tmp_path, orders):
    monkeypatch.setenv("SNAPSHOT_EXPLORER_STORAGE_OPTIONS", str(tmp_path / "none.json"))

    for words in (["log", orders], ["lake", orders], [orders]):
        status, _, error = printed(capsys, *words)
        assert (status, error.partition(":")[0]) == (2, "--storage-options")


def test_recorded_folders_that_were_moved_are_named_in_pairs(capsys, tmp_path):
    catalog = samples.path("festival")
    with sqlite3.connect(catalog) as connection:
        [(data,)] = connection.execute("select value from ducklake_metadata where key = 'data_path'")
        connection.execute("update ducklake_metadata set value = '/recorded/' where key = 'data_path'")
    moved = shutil.copytree(Path(catalog).parent / data, tmp_path / "moved")
    path = f"{catalog}::main.tickets"

    assert printed(capsys, "load", path, "--relocate", f"/recorded/={moved}")[0] == 0
    assert printed(capsys, path, "--relocate", f"/recorded/={moved}")[0] == 0
    for words in (["load", path], [path]):
        assert printed(capsys, *words, "--relocate", "moved")[2].startswith("--relocate is OLD=NEW")


def test_a_table_whose_folder_is_no_name_has_one_in_queries(capsys, tmp_path, orders):
    path = shutil.copytree(orders, tmp_path / "sales-2026")

    assert "24" in printed(capsys, "sql", path, "select count(*) from sales_2026 version as of 1")[1]
    assert printed(capsys, "load", path, "-n", 1)[2].startswith("sales_2026 version")


def test_a_folder_with_the_name_of_a_command_does_not_hide_it(capsys, monkeypatch, tmp_path, orders):
    (tmp_path / "log").mkdir()
    monkeypatch.chdir(tmp_path)

    assert printed(capsys, "log", orders, "-n", 1)[1].startswith("History of orders")


def test_commands_in_a_terminal_do_not_load_ipython(orders):
    code = (
        "import sys; from snapshot_explorer.terminal.program import main;"
        "main(['log', sys.argv[1]]); print(sorted({'IPython', 'ipywidgets', 'plotly'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, orders], capture_output=True, text=True, check=True)

    assert done.stdout.endswith("[]\n")


def test_a_version_is_compared_with_a_file(capsys, tmp_path):
    open_table(samples.path("orders")).at(8).to_pandas().iloc[1:].to_csv(tmp_path / "orders.csv", index=False)

    status = main(["diff", samples.path("orders"), "8", f"{tmp_path}/orders.csv", "--key", "order_id"])

    assert status == 0
    assert "Rows: 0 inserted, 1 deleted, 0 updated." in capsys.readouterr().out
