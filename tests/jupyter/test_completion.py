"""Tab completion, asked as frontends ask."""

import os
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.core.completer import CompletionContext, provisionalcompleter

from snapshot_explorer import open_table
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.commands import COMMANDS
from tests.inner.core import Listing
from tests.inner.jupyter import REMOVED, OpenTables, matcher, suggestions
from tests.support.delta.table_builder import DeltaTable, metadata
from tests.support.effort import at_most_steps


def plain(kind):
    """Return what a completion is, with the blanks and hyphens at which no frontend breaks it made plain ones."""
    return kind.replace("\u00a0", " ").replace("\u2011", "-")


def completed(shell, source):
    """Return what a notebook offers at the end of a cell: the cell with each completion put in, and its type."""
    with provisionalcompleter():
        found = list(shell.ip.Completer.completions(source, len(source)))
    return [(source[: item.start] + item.text + source[item.end :], plain(item.type)) for item in found]


def texts(shell, source):
    return [text.removeprefix(source) for text, _ in completed(shell, source)]


@pytest.mark.parametrize("head", ["%snapshot ", "%snap ", "df = %snapshot ", "a, b = %snap ", "%snapshot h << "])
def test_commands_are_offered_in_every_form_of_line(shell, head):
    offered = completed(shell, head)

    assert offered == [(head + command.name, "command") for command in COMMANDS]


def test_a_started_command_is_finished_and_nothing_else_is_offered(shell):
    shell["lodge"] = 1

    assert completed(shell, "%snapshot lo") == [("%snapshot log", "command"), ("%snapshot load", "command")]
    assert completed(shell, "df = %snapshot loa") == [("df = %snapshot load", "command")]


def test_the_second_line_of_a_cell_is_completed(shell):
    assert texts(shell, "x = 1\ndf = %snapshot loa") == ["d"]


def test_the_old_interface_agrees(shell):
    with pytest.warns(PendingDeprecationWarning):
        _, matches = shell.ip.complete("", "df = %snapshot loa", len("df = %snapshot loa"))

    assert matches == ["load"]


def test_flags_are_offered_and_not_twice(shell):
    assert completed(shell, "%snapshot load --li") == [("%snapshot load --limit", "option")]
    assert suggestions("%snapshot load --limit 5 --li", OpenTables({}), {}).items == ()
    assert set(texts(shell, "%snapshot tags -")) == {"-table", "-out", "-debug", "-help"}
    assert texts(shell, "%snapshot files -p dt=1 --pa") == ["rtition"]


def test_versions_come_newest_first_with_kind_and_time_where_known(orders):
    orders.ok("%snapshot log -n 1")
    assert completed(orders, "%snapshot show ")[:3] == [
        ("%snapshot show latest", "newest"),
        ("%snapshot show 5", "compact 2026-01-01 00:05:00.000Z"),
        ("%snapshot show 4", "version"),
    ]
    orders.ok("%snapshot log")

    offered = completed(orders, "df = %snapshot load ")

    assert offered[:3] == [
        ("df = %snapshot load latest", "newest"),
        ("df = %snapshot load 5", "compact 2026-01-01 00:05:00.000Z"),
        ("df = %snapshot load 4", "overwrite 2026-01-01 00:04:00.000Z"),
    ]
    assert "latest~1" in [text.removeprefix("df = %snapshot load ") for text, _ in offered]
    assert completed(orders, "%snapshot show 4") == [("%snapshot show 4", "overwrite 2026-01-01 00:04:00.000Z")]


def test_tags_tables_columns_kinds_and_engines_are_offered(orders, path):
    orders.ok("%snapshot tags")
    orders.ok(f"%snapshot open {path} as other")

    assert texts(orders, "%snapshot show -t orders tag:") == ["v1"]
    assert texts(orders, "%snapshot log -t o") == ["rders", "ther"]
    assert texts(orders, "%snapshot open oth") == ["er"]
    assert texts(orders, "%snapshot show --table=o") == ["rders", "ther"]
    assert texts(orders, "%snapshot load --engine ") == ["pandas", "arrow", "spark"]
    assert texts(orders, "%snapshot load --engine=p") == ["andas"]
    assert texts(orders, "%snapshot log --kind com") == ["pact"]
    assert texts(orders, "%snapshot help lo") == ["g", "ad"]
    assert texts(orders, "%snapshot open x --format ") == ["paimon", "delta", "iceberg", "hudi", "ducklake"]
    orders.ok("%snapshot open orders")
    assert texts(orders, "%snapshot load --columns ") == ["id", "name"]
    assert texts(orders, "%snapshot load --columns id,na") == ["me"]
    assert texts(orders, "%snapshot load --columns id,") == ["name"]
    assert texts(orders, '%snapshot load --where "id > 3 and na') == ["me"]


def test_members_of_tables_and_snapshots_are_offered_without_jedi(orders, monkeypatch):
    orders["snap"] = orders["orders"].at(4)
    monkeypatch.setattr(orders.ip.Completer, "_jedi_matches", lambda *_, **__: pytest.fail("Jedi ran"))

    assert completed(orders, "orders.hist") == [("orders.history", "function")]
    assert ("x = snap.to_pandas", "function") in completed(orders, "x = snap.")
    assert texts(orders, "orders._repr_m") == ["imebundle_"]
    assert not [text for text in texts(orders, "orders.") if text.startswith("_")]


def test_versions_are_offered_as_the_argument_of_at(orders):
    orders.ok("%snapshot log")

    assert texts(orders, "orders.at(")[:2] == ['"latest"', "5"]
    assert texts(orders, "x = orders.at('lat") == ["est", "est~1"]
    assert texts(orders, "orders.at(4") == [""]


def test_columns_are_offered_in_lists_of_columns(orders):
    orders["snap"] = orders["orders"].at(4)
    orders.ok("snap.schema")

    assert texts(orders, "orders.at(4).to_pandas(columns=['") == ["id", "name"]
    assert texts(orders, "orders.current.to_arrow(limit=3, columns=['id', 'na") == ["me"]
    assert texts(orders, 'snap.to_pandas(columns=["i') == ["d"]


def test_recorded_users_are_offered_to_the_filter(shell, memory_root):
    table = DeltaTable(*memory_root)
    table.commit(metadata())
    for user in ("Ada B", "{secret}", "nightly"):
        table.commit(info={"userName": user})
    shell.ok(f"%snapshot open {table.url} as orders")
    shell.ok("%snapshot log")

    assert texts(shell, "%snapshot log --user ") == ["nightly", '"Ada B"']
    assert texts(shell, "%snapshot log --user=ni") == ["ghtly"]


def test_refs_of_a_named_table_and_of_ranges_are_offered(orders, memory_root):
    orders.ok("%snapshot log")

    assert "5" in texts(orders, "%snapshot show orders@")
    assert "5" in texts(orders, "%snapshot log 2..")
    assert texts(orders, "%snapshot log 2..lat") == ["est", "est~1"]
    assert "3" in texts(orders, "%snapshot show orders ")


def test_variables_with_dicts_are_offered_for_options(shell):
    shell["minio"] = {"secret": "HUSH"}

    assert texts(shell, "%snapshot open x --options mi") == ["nio"]
    assert "HUSH" not in str(completed(shell, "%snapshot open x --options "))


def test_after_unloading_nothing_is_offered(orders):
    orders.ok("%unload_ext snapshot_explorer")

    assert "%snapshot load" not in [text for text, _ in completed(orders, "%snapshot loa")]


def test_lines_of_others_are_left_alone(orders):
    for line in ("snapshot lo", "x = 10 %snapshot lo", "print('%snapshot lo", "%snapshots lo", "%sql lo"):
        assert suggestions(line, OpenTables(orders.ip.user_ns), {}).items == ()


def test_completion_asks_the_storage_nothing(counted, shell, written):
    shell.ok(f"%snapshot open counted://{written.root} as orders")
    shell.ok("%snapshot log")
    counted.requests.clear()

    for line in ("show ", "load --columns ", "load tag:", "log 1..", "log --kind ", "show orders@", "load --where 'na"):
        completed(shell, f"%snapshot {line}")

    assert counted.requests == []


def test_completion_of_a_long_history_makes_no_suggestion_of_each_version(shell, memory_root, monkeypatch, path):
    shell.ok(f"%snapshot open {path} as orders")
    listing = Listing(versions=tuple(range(1, 100_001)), identity=())
    monkeypatch.setattr(history_of(shell["orders"]).table_format, "listing", lambda start: listing)
    shell["orders"].versions()
    tables = OpenTables(shell.ip.user_ns)

    tracemalloc.start()
    with at_most_steps(20_000):
        offered = suggestions("%snapshot show ", tables, {}).items
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 2 << 20  # the text of each version would be 5 MB
    assert offered[1] == ("100000", "version")
    assert len(offered) < 120


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.sampled_from([command.name for command in COMMANDS]), st.text(max_size=40))
def test_no_line_makes_completion_raise(orders, command, rest):
    tables = OpenTables(orders.ip.user_ns)

    suggestions(f"%snapshot {command} {rest}", tables, orders.ip.user_ns)
    suggestions(f"%snapshot {rest}", tables, orders.ip.user_ns)


def test_system_tables_are_offered_with_what_they_hold(orders):
    offered = completed(orders, "%snapshot inspect files")

    assert offered[0] == ("%snapshot inspect files", "the live data files, with statistics as text")
    assert "partitions" in texts(orders, "%snapshot inspect ")
    assert "latest" in texts(orders, "%snapshot inspect files ")


def test_files_is_offered_with_versions_flags_and_columns(orders):
    assert texts(orders, "%snapshot fi") == ["les"]
    assert {"latest", "--where"} <= set(texts(orders, "%snapshot files "))
    assert "d" in texts(orders, '%snapshot files --where "i')


def test_open_tables_are_offered_before_folders(orders, tmp_path, monkeypatch):
    (tmp_path / "order_folder").mkdir()
    monkeypatch.chdir(tmp_path)

    for line in ("%snapshot open ord", "%snapshot open --close ord", "%snapshot check ord"):
        assert texts(orders, line) == ["ers", "er_folder/"]


def test_words_that_were_commands_are_not_offered(shell):
    assert [text for removed in REMOVED for text in texts(shell, f"%snapshot {removed}")] == []


class Lazy:
    """A variable that imports when it is looked at, as lazy modules do."""

    @property
    def __class__(self):
        raise ImportError("a library of the user's is broken")


def test_a_variable_that_cannot_be_imported_does_not_disturb_completion(shell):
    shell["lazy"], shell["storage"] = Lazy(), {"key": "x"}

    assert texts(shell, "%snapshot lo")[0] == "g"
    assert "storage" in texts(shell, "%snapshot open x --options ")


class Broken(dict):
    """Variables that cannot be listed."""

    def items(self):
        raise ImportError("a library of the user's is broken")


def test_a_failure_is_logged_once_and_completion_goes_on(caplog):
    variables = {}
    complete = matcher(OpenTables({}), variables)
    broken = matcher(OpenTables({}), Broken())

    def offered(line, complete):
        context = CompletionContext(token="", full_text=line, cursor_position=len(line), cursor_line=0, limit=None)
        return [item.text for item in complete(context)["completions"]]

    with caplog.at_level("WARNING", logger="snapshot_explorer"):
        lost = [offered("%snapshot open x --options ", broken) for _ in range(3)]

    assert lost == [[], [], []]
    (record,) = caplog.records
    assert 'ImportError("a library of the user\'s is broken")' in record.getMessage()
    assert record.exc_info
    assert offered("%snapshot loa", broken) == ["load"]
    assert offered("%snapshot loa", complete) == ["load"]


def test_completion_that_cannot_be_imported_says_so(tmp_path):
    code = (
        "import sys, logging; logging.basicConfig(format='%(levelname)s %(message)s');"
        "sys.modules['snapshot_explorer.jupyter.completion'] = None;"
        "from IPython.core.interactiveshell import InteractiveShell; ip = InteractiveShell();"
        "ip.run_line_magic('load_ext', 'snapshot_explorer'); ip.run_line_magic('snapshot', 'help')"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"IPYTHONDIR": str(tmp_path)},
    )

    assert "WARNING Completion of %snapshot lines is off: " in done.stderr


def test_of_very_many_columns_some_are_offered(memory_root):
    table = DeltaTable(*memory_root)
    names = [f"column_{number}" for number in range(5_000)]
    table.commit(metadata([(name, "long") for name in names]))
    opened = open_table(table.url)
    tables = OpenTables({"t": opened})
    _ = opened.current.schema

    assert len(suggestions("%snapshot load t --columns ", tables, {"t": opened}).items) == 1_000
    assert [text for text, _ in suggestions("%snapshot load t --columns column_49", tables, {}).items][:2] == [
        "column_49",
        "column_490",
    ]
