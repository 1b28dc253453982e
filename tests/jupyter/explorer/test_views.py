"""What the tabs of an explorer tell, and loading rows into a variable."""

import io
import re
import shutil
import threading

import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer, explore
from snapshot_explorer.view import drawing_of, render_text
from tests.inner.jupyter import SnapshotMagics, load_limits
from tests.support.explorers import grid_of, outcome, pressed, shown_text, typed
from tests.support.paimon.table_builder import PaimonTable


def test_the_commit_is_reported_with_what_is_stored_of_it(explorer):
    said = shown_text(explorer, "commit")

    assert "identifier     9223372036854775807" in said
    assert "baseManifestList       manifest-list-" in said
    assert explorer.code == "orders.at(18).commit"


def test_what_an_operation_counted_stands_by_itself():
    explorer = Explorer(open_table(samples.path("payments"))).wait()
    explorer.state.b = 18
    explorer.wait()

    said = shown_text(explorer, "commit")

    assert "What the operation counted:" in said
    assert re.search(r"numDeletedRows +11\n", said)
    stored = said.partition("What the operation counted:")[2].partition("payments.at(18)")[0].split()
    assert " ".join(stored) in " ".join(str(explorer.table.at(18).commit).split())
    assert " ".join(stored) in " ".join(render_text(drawing_of(explorer.table.at(18))).split())
    explorer.close()


def test_rows_that_are_not_counted_are_read_on_request_and_the_list_has_the_answer():
    explorer = Explorer(open_table(samples.path("payments")), variables={}).wait()
    typed(explorer, tab="commit")
    explorer.state.b = 13
    explorer.wait()
    before = explorer.view["headline"]

    pressed(explorer, "Count rows")

    after, listed = explorer.view["headline"], {row["version"]: row for row in explorer.listed["rows"]}
    assert (before["change"], before["canCount"]) == ("\N{MINUS SIGN}18 rows net (at most 16 rewritten)", True)
    assert (after["change"], after["canCount"], after["notes"]) == ("+16 \N{MINUS SIGN}34 rows", False, [])
    assert (listed["13"]["added"], listed["13"]["removed"], listed["13"]["isNet"]) == (16, 34, False)
    explorer.close()


def test_rows_that_were_compared_are_counted_in_the_list(explorer):
    def changes():
        return {row["version"]: row["change"] for row in explorer.listed["rows"]}

    explorer.state.tab = "rows"
    explorer.state.b = 17
    explorer.wait()

    assert changes()["17"] == "\N{MINUS SIGN}6 rows"
    assert changes()["16"] == "rows not counted (5 written)"

    explorer.state.a = 15  # not the version before
    explorer.state.b = 16
    explorer.wait()
    explorer.state.a = 14
    explorer.wait()

    assert changes()["14"] == "rows not counted (13 written)"


def test_the_commit_says_why_its_rows_cannot_be_counted(tmp_path):
    shutil.copytree(samples.path("payments"), tmp_path / "payments")
    explorer = Explorer(open_table(str(tmp_path / "payments")), variables={}).wait()
    explorer.state.b = 13
    explorer.wait()
    for path in (tmp_path / "payments").glob("*.parquet"):
        path.unlink()

    pressed(explorer, "Count rows")

    (note,) = explorer.view["headline"]["notes"]
    assert note.startswith("The rows of 1 commit cannot be counted, such as those of version 13: ")
    assert "canCount" in explorer.view["headline"]
    explorer.close()


def test_the_source_is_cited(explorer, orders):
    explorer.state.a, explorer.state.tab = 5, "manifests"
    explorer.wait()

    assert explorer.view["code"] == "orders.compare(5, 18).manifests"
    assert (
        explorer.view["source"]
        == f"{orders.path}, version 5 of 2026-11-04 02:00:00.261Z and version 18 of 2026-11-14 02:00:00.092Z"
    )


def test_the_lens_shows_what_became_of_each_manifest(explorer, orders):
    explorer.state.tab, explorer.state.a = "manifests", 9
    explorer.wait()

    lines = shown_text(explorer, "manifests").splitlines()

    assert "2 added, 2 merged away, 1 rewritten." in lines[1]
    assert lines[2] == "Forward from version 9 (A) to version 18 (B): + is new in B, - is gone from B."
    assert lines[3].split() == ["A:", "version", "9", "B:", "version", "18"]
    assert [line.strip("- ") for line in lines if line.startswith("--")] == ["base", "delta", "changelog: no manifest"]
    left, right = lines[5][:59], lines[5][59:].strip()
    assert left.startswith("- manifest-34f17bb7")
    assert right.startswith("~ manifest-6c59a41e")


def test_the_lens_turned_round_shows_what_is_added_as_removed(explorer, orders):
    explorer.state.tab, explorer.state.a, explorer.state.b = "manifests", 18, 9
    explorer.wait()

    lines = shown_text(explorer, "manifests").splitlines()

    assert "2 added, 3 removed." in lines[1]
    assert lines[1].endswith("Signs: = carried over, + added, - removed.")
    assert lines[2].startswith("Back from version 18 (A) to the older version 9 (B): ")
    left, right = lines[5][:59], lines[5][59:].strip()
    assert left.startswith("- manifest-6c59a41e")
    assert right.startswith("+ manifest-34f17bb7")


def test_the_lens_shows_a_manifest_of_both_in_one_line_of_its_lane(explorer):
    explorer.state.tab = "manifests"
    explorer.wait()

    lines = shown_text(explorer, "manifests").splitlines()

    (line,) = [line for line in lines if line.startswith("= manifest-") and line[:40] == line[61:101]]
    place = lines.index(line)
    assert not [one for one in lines[place + 1 : place + 2] if one[:1] in "+~"]


def test_a_cell_may_open_a_manifest_before_the_lens_offers_it(explorer, orders):
    path = orders.at(17).manifests().to_pandas()["path"].iloc[-1]

    explorer.state.a, explorer.state.b, explorer.state.tab = 16, 17, "manifests"
    explorer.state.manifest = path
    explorer.wait()

    assert explorer.view["manifest"] == explorer.state.manifest == path
    assert shown_text(explorer, "entries").startswith("Entries of manifest-")


def test_a_manifest_is_opened_down_to_its_entries(explorer):
    explorer.state.tab = "manifests"
    explorer.wait()
    label, path = explorer.views["manifests"].result.choices[-1]

    explorer.receive({"open": path})
    explorer.wait()

    assert label.startswith(("+ ", "= "))
    assert shown_text(explorer, "entries").startswith("Entries of manifest-")
    assert "bucket-" in shown_text(explorer, "entries")
    assert ".entries('manifest-" in explorer.views["entries"].content["code"]


def test_many_manifests_that_are_carried_over_are_counted_until_they_are_wanted(memory_root):
    table = PaimonTable(*memory_root)
    for number in range(9):
        table.commit([(number, "x")])
    explorer = Explorer(open_table(f"memory://{table.root}")).wait()
    explorer.state.tab = "manifests"
    explorer.wait()

    lines = shown_text(explorer, "manifests").splitlines()
    (line,) = [line for line in lines if "carried over" in line and line.startswith("= ")]
    assert line.split() == ["=", "7", "carried", "over", "=", "8", "carried", "over"]
    typed(explorer, carried=True)
    explorer.wait()

    assert sum(line.startswith("= manifest-") for line in shown_text(explorer, "manifests").splitlines()) == 8
    (lanes,) = [part["lanes"] for part in explorer.view["parts"] if "lanes" in part]
    path = next(item["opens"] for lane in lanes for row in lane["rows"] for item in row if item)
    explorer.receive({"open": path})
    explorer.wait()
    assert shown_text(explorer, "entries").startswith("Entries of manifest-")
    explorer.receive({"open": "no/such"})
    assert explorer.state.manifest == path
    explorer.close()


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_rows_of_a_grid_are_saved_as_they_are_filtered(explorer, orders, file_format):
    explorer.state.tab = "data"
    explorer.wait()
    sent = []
    explorer.send = lambda *message: sent.append(message)
    typed(explorer, where="amount > 250")

    for what in (["data", file_format], ["data", "exe"], ["nothing", "csv"], ["health", "csv"], "data csv", 3):
        explorer.receive({"save": what})

    ((message, (content,)),) = sent
    assert message == {"save": f"orders_data_18.{file_format}"}
    expected = orders.at(18).to_arrow(where="amount > 250")
    if file_format == "parquet":
        assert pq.read_table(io.BytesIO(content)).sort_by("order_id").equals(expected.sort_by("order_id"))
    else:
        assert len(content.splitlines()) == 1 + len(expected)


def test_the_checkpoint_of_a_delta_table_is_its_base():
    explorer = Explorer(open_table(samples.path("payments"))).wait()
    explorer.state.tab = "manifests"
    explorer.wait()

    said = shown_text(explorer, "manifests")

    assert "= 00000000000000000020.checkpoint.parquet" in said
    assert "+ 00000000000000000021.json" in said
    explorer.close()


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("overview", "The schema is the same"),
        ("partitions", "partitions and buckets that differ"),
        ("files", "files that differ"),
        ("commits", "Commits between: version 17 to 18: one"),
        ("properties", "The properties are the same."),
    ],
)
def test_parts_of_the_comparison_are_reported(explorer, part, expected):
    explorer.state.tab, explorer.state.a, explorer.state.compared = "compare", 17, part
    explorer.wait()

    assert expected in shown_text(explorer, "compare")
    assert explorer.code.startswith("orders.compare(17, 18)")


def test_rows_are_previewed_as_asked(explorer, orders):
    explorer.state.tab, explorer.state.columns, explorer.state.where = "data", ["order_id", "amount"], "amount > 250"
    explorer.wait()

    said = shown_text(explorer, "data")

    assert "Files that can match: 2 of 2 files." in said
    assert explorer.view["title"] == "6 of 41 rows match at version 18"
    assert explorer.code == "orders.at(18).to_arrow(columns=['order_id', 'amount'], where='amount > 250')"
    assert len(grid_of(explorer, "data")[1]) == eval(explorer.code).num_rows


def test_a_condition_that_does_not_fit_is_reported_in_its_place(explorer):
    explorer.state.tab = "data"
    explorer.wait()
    explorer.state.where = "color = 'red'"
    explorer.wait()

    assert "color" in explorer.views["data"].error
    assert "\n" not in explorer.views["data"].error
    assert explorer.view["error"] == explorer.views["data"].error
    assert explorer.view["parts"]  # the rows before, which the page dims

    explorer.state.where = ""
    explorer.wait()
    assert explorer.views["data"].error == ""


def test_rows_are_loaded_into_a_variable(orders):
    variables = {}
    explorer = Explorer(orders, name="orders", variables=variables).wait()
    explorer.state.tab, explorer.state.variable, explorer.state.b = "data", "old", 2
    explorer.wait()

    pressed(explorer, "Load as variable")

    assert variables["old"].equals(orders.at(2).to_pandas())
    assert "old holds 24 rows of version 2. Read: 38 rows in 4 files" in outcome(explorer, "load")
    assert explorer.view["load"]["line"] == "old = orders.at(2).to_pandas()"
    explorer.close()


def test_a_variable_of_the_users_is_replaced_only_when_asked_twice(orders):
    variables = {"df": "precious"}
    explorer = Explorer(orders, variables=variables).wait()
    explorer.state.tab, explorer.state.engine = "data", "arrow"
    explorer.wait()

    pressed(explorer, "Load as variable")
    assert variables == {"df": "precious"}
    assert "The variable df already contains a str. Press again to replace it." in outcome(explorer, "load")

    pressed(explorer, "Load as variable")
    assert variables["df"].num_rows == 41
    explorer.close()


def test_what_is_large_by_the_settings_is_loaded_only_when_asked_twice(orders, shell):
    shell.ok("%config SnapshotMagics.load_row_limit = 40")
    variables = {}
    explorer = Explorer(orders, variables=variables).wait()
    explorer.state.tab = "data"
    explorer.wait()

    pressed(explorer, "Load as variable")
    assert variables == {}
    assert "This reads 41 rows in 2 files, 4.9 kB." in outcome(explorer, "load")

    explorer.state.load_limit = 3
    pressed(explorer, "Load as variable")
    assert len(variables["df"]) == 3
    explorer.state.load_limit = 0
    pressed(explorer, "Load as variable")
    pressed(explorer, "Load as variable")
    assert len(variables["df"]) == 41
    explorer.close()


def test_who_agrees_to_replace_a_variable_has_not_agreed_to_read_much(orders, shell):
    shell.ok("%config SnapshotMagics.load_row_limit = 40")
    variables = {"df": "precious"}
    explorer = Explorer(orders, variables=variables).wait()
    explorer.state.tab = "data"
    explorer.wait()

    pressed(explorer, "Load as variable")
    assert "Press again to replace it." in outcome(explorer, "load")
    pressed(explorer, "Load as variable")
    assert "press again to read all of it." in outcome(explorer, "load")
    assert variables == {"df": "precious"}
    pressed(explorer, "Load as variable")

    assert len(variables["df"]) == 41
    explorer.close()


def test_what_is_large_without_the_extension_is_what_its_settings_begin_with():
    traits = SnapshotMagics.class_traits()

    limits = load_limits()

    assert limits.rows == traits["load_row_limit"].default_value
    assert limits.size_bytes == traits["load_size_limit"].default_value


def test_loading_is_cancelled(orders, monkeypatch):
    gate = threading.Event()
    variables = {}
    explorer = Explorer(orders, variables=variables).wait()
    explorer.state.tab = "data"
    explorer.wait()
    read = type(orders.current).to_pandas
    monkeypatch.setattr(
        type(orders.current), "to_pandas", lambda *given, **named: gate.wait(30) and read(*given, **named)
    )

    explorer.load()
    assert explorer.busy["load"] == "Reading ..."
    explorer.receive({"cancel": "load"})
    gate.set()
    explorer.wait()

    assert variables == {}
    assert "Nothing was loaded: that was cancelled." in outcome(explorer, "load")
    assert explorer.busy == {}
    explorer.close()


def test_files_are_verified_and_orphans_are_found_when_that_is_requested(explorer, monkeypatch):
    typed(explorer, tab="health", health="verify")
    assert "Opens none." in shown_text(explorer, "health")
    pressed(explorer, "Verify files")
    assert "All 35 data files exist" in shown_text(explorer, "health")
    assert explorer.view["code"] == "orders.verify('existence')"

    typed(explorer, health="orphans", older_than="12h")
    assert "Deletes nothing" in shown_text(explorer, "health")
    pressed(explorer, "Find orphans")
    assert "No file older than 12 hours is orphaned." in shown_text(explorer, "health")
    typed(explorer, older_than="long")
    pressed(explorer, "Find orphans")
    assert "'long'" in shown_text(explorer, "health")

    monkeypatch.delattr(type(explorer.table), "verify")
    typed(explorer, health="verify")
    assert "All 35 data files exist" in shown_text(explorer, "health")


def test_verifying_files_is_cancelled(explorer, monkeypatch):
    gate = threading.Event()
    typed(explorer, tab="health", health="verify", level="bytes")
    monkeypatch.setattr(type(explorer.table), "verify", lambda *_: gate.wait(30))

    explorer.receive({"act": "read files"})
    assert explorer.busy["health"] == "Reading ..."
    explorer.receive({"cancel": "health"})
    gate.set()
    explorer.wait()

    assert "Reads every data file" in shown_text(explorer, "health")
    assert explorer.busy == {}


def test_outside_of_a_notebook_nothing_is_loaded(orders):
    explorer = explore(orders).wait()

    explorer.load()

    assert "There is no notebook to load rows into." in outcome(explorer, "load")
    explorer.close()


def test_files_are_filtered_and_sorted(memory_root):
    table = PaimonTable(*memory_root)
    for number in range(60):
        table.commit([(key, "x") for key in range(number % 7 + 1)])
    explorer = Explorer(open_table(f"memory://{table.root}")).wait()
    state, view = explorer.state, explorer.views["files"]
    state.tab = "files"
    explorer.wait()
    at = grid_of(explorer, "files")[0].index("rows")
    explorer.receive({"grid": {"place": "files", "arrange": {"sort": at, "descending": True}}})

    names, rows = grid_of(explorer, "files")
    assert [row[names.index("rows")] for row in rows] == sorted(
        (row[names.index("rows")] for row in rows), reverse=True
    )
    assert (view.grid.content["count"], len(rows)) == (60, 60)
    state.partition = "nothing"
    explorer.wait()
    assert "0 of 60 files are in partitions that hold 'nothing'." in shown_text(explorer, "files")
    explorer.close()


def test_files_of_a_partition_are_chosen_by_its_text():
    table = open_table(samples.path("events"))
    explorer = Explorer(table).wait()
    partition = dict(table.current.files().to_arrow()["partition"][0].as_py())
    key, value = next(iter(partition.items()))
    explorer.state.tab, explorer.state.partition = "files", f"{key}={value}"
    explorer.wait()

    expected = table.current.files(partition).num_rows
    assert f"{expected} of {table.current.files().num_rows} files are in partitions" in shown_text(explorer, "files")
    explorer.close()


@pytest.mark.parametrize("text", ["", "DAY=2026-11-0"])
def test_the_line_of_code_gives_the_files_that_are_shown(text):
    table = open_table(samples.path("events"))
    explorer = Explorer(table, name="table").wait()
    explorer.state.tab, explorer.state.partition = "files", text
    explorer.wait()

    shown = [path[-20:] for path in re.findall(r"\S+\.parquet", shown_text(explorer, "files"))]
    given = [str(path)[-20:] for path in eval(explorer.code)["path"]]

    assert len(given) > 1
    assert given == shown
    explorer.close()


def test_pictures_of_all_versions_are_those_of_python(explorer, orders):
    typed(explorer, tab="files", file_view="lifetimes")
    lives = explorer.view
    typed(explorer, file_view="partitions", measure="files")
    heat = explorer.view
    typed(explorer, tab="branches")
    graph = explorer.view

    assert lives["title"].startswith("34 files over 18 versions. ")
    assert lives["picture"] == orders.lifetimes().picture("files").svg
    assert heat["picture"] == orders.lifetimes().picture("partitions", y="files").svg
    assert heat["code"] == "orders.lifetimes().picture('partitions', y='files')"
    assert graph["picture"] == orders.branches().picture().svg
    assert "opening" in shown_text(explorer, "branches")


def test_usage_is_what_python_returns(explorer, orders):
    typed(explorer, tab="files", file_view="usage")

    usage = orders.usage("time")
    assert explorer.view["title"] == usage.verdict
    assert explorer.view["code"] == "orders.usage('time')"
    shown = shown_text(explorer, "files")
    assert "only older versions" in shown
    assert "held" in shown


def test_a_format_with_actions_and_file_groups_has_their_pictures():
    explorer = Explorer(open_table(samples.path("rides"))).wait()
    typed(explorer, tab="files", file_view="actions")
    actions = explorer.view
    typed(explorer, file_view="slices")
    groups = explorer.view["picture"]
    assert explorer.page["choices"]["file_view"][-2:] == ["actions", "slices"]
    explorer.close()

    texts = re.findall(">([^<]+)</text>", actions["picture"])
    assert texts[:2] == ["deltacommit", "savepoint"]
    assert "2026-11-02 22:00:04" in texts
    shares = [float(share) for share in re.findall('<svg x="([0-9.]+)%', actions["picture"])]
    assert (min(shares) < 0.1, max(shares) <= 100.05) == (True, True)
    assert len(re.findall("(?:Kassel|Lyon)/[0-9a-f]{8}</text>", groups)) == 14


def test_a_picture_that_the_format_lacks_is_refused(explorer):
    typed(explorer, tab="files", file_view="actions")

    assert "actions" not in explorer.page["choices"]["file_view"]
    assert explorer.view["error"] == "orders has no picture of actions: its format records none."


def test_doubled_rows_are_found_when_asked(explorer):
    typed(explorer, tab="health", health="duplicates", key=["channel"])
    assert explorer.view["title"] == "Which rows of B are there more than once?"

    pressed(explorer, "Find duplicates")

    assert "repeat the channel of another one." in shown_text(explorer, "health")
    assert explorer.view["code"] == "orders.at(18).duplicates(['channel'])"
    typed(explorer, key=[])
    assert explorer.view["title"] == "Which rows of B are there more than once?"


def test_files_are_looked_for_when_asked():
    explorer = Explorer(open_table(samples.path("orders"))).wait()

    typed(explorer, tab="files", file_view="lifetimes", missing=True)

    assert explorer.view["title"].endswith("No file is missing")
    explorer.close()


def test_health_is_reported(explorer):
    explorer.state.tab = "health"
    explorer.wait()

    assert "nothing to do" in shown_text(explorer, "health")


def test_what_can_be_read_is_answered_in_a_sentence_above_the_versions():
    explorer = Explorer(open_table(samples.path("payments"))).wait()
    explorer.state.tab, explorer.state.health = "health", "readability"
    explorer.wait()

    assert explorer.view["title"] == "No file is missing: 22 versions can be loaded."
    assert explorer.view["grid"]["total"] == 22
    explorer.close()


def test_the_timeline_follows_what_was_found_missing(tmp_path):
    shutil.copytree(samples.path("payments"), tmp_path / "payments")
    table = open_table(str(tmp_path / "payments"))
    (tmp_path / "payments" / table.current.files()["path"][0].as_py()).unlink()
    explorer = Explorer(table).wait()
    assert explorer.state.commits["readable"][0].as_py() is None

    explorer.state.tab, explorer.state.health = "health", "readability"
    explorer.wait()

    expected = {row["version"]: row["readable"] for row in table.verify().versions.to_dict()}
    assert expected[table.current.version] == "metadata"
    assert {row["version"]: row["readable"] for row in explorer.state.commits.to_pylist()} == expected
    explorer.refresh()
    explorer.wait()
    assert explorer.state.commits["readable"][0].as_py() == "metadata"
    explorer.close()


def test_what_can_be_read_does_not_contradict_itself_where_every_data_file_is_missing(tmp_path):
    shutil.copytree(samples.path("payments"), tmp_path / "payments")
    for file in (tmp_path / "payments").rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()
    explorer = Explorer(open_table(tmp_path / "payments")).wait()
    explorer.state.tab, explorer.state.health = "health", "readability"
    explorer.wait()

    part = "21 of 22 versions cannot be loaded, because files are missing or damaged: versions 1 to 21."
    assert explorer.view["title"] == part
    explorer.close()


def test_retention_is_reported_or_that_it_is_not_there(explorer, orders):
    explorer.state.tab, explorer.state.health, explorer.state.keep = "health", "retention", "3d"
    explorer.wait()

    assert "etention" in shown_text(explorer, "health")
    assert "retention(keep='3d')" in explorer.views["health"].content["code"]
    typed(explorer, keep_last=4)
    explorer.wait()
    assert explorer.state.keep_last == 4
    assert "keep at least 4 versions (as requested)" in " ".join(shown_text(explorer, "health").split())
    assert "retention(keep='3d', keep_last=4)" in explorer.views["health"].content["code"]
