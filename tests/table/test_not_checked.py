"""What was not checked is null and drawn as "not checked", in every public result of every format.

Never "yes", "in good order", "none", "nothing changed" or 0; see ARCHITECTURE, "What a result may say".
"""

import copy
import re
from pathlib import Path

import fsspec
import pytest

import snapshot_explorer
from snapshot_explorer import Snapshot, Table, open_table
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.table import parts_of
from tests.support import not_checked, public_calls
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol, remove
from tests.support.iceberg import table_builder
from tests.support.not_checked import is_called, more_calls, tables_in, texts_of, unfounded
from tests.support.public_calls import arguments_for, calls, drawings, notebook_calls
from tests.support.scenarios import SCENARIOS, played


def results(url):
    """Yield every public call by name, with its result on a newly opened table; nothing of calls that fail."""
    given = arguments_for(open_table(url))
    for name, call in (calls(given) | drawings(given) | notebook_calls(given) | more_calls(given)).items():
        try:
            yield name, call(open_table(url))
        except SnapshotExplorerError:
            continue


@pytest.fixture(params=SCENARIOS, ids=[scenario.format for scenario in SCENARIOS])
def scenario(request, memory_root):
    return played(request.param(*memory_root))


def remove_a_file(scenario):
    """Remove a data file that the newest version needs."""
    path = open_table(scenario.url).current.files()["path"][0].as_py()
    fsspec.filesystem("memory").rm_file(f"{scenario.root}/{path.removeprefix(scenario.root).lstrip('/')}")


@pytest.mark.parametrize("is_lost", [False, True], ids=["whole", "lost"])
def test_no_result_calls_a_version_readable_whose_files_nobody_looked_for(scenario, is_lost):
    if is_lost:
        remove_a_file(scenario)
    seen = set()

    for name, result in results(scenario.url):
        seen.add(name)
        assert unfounded(name, result) == []
    assert {"history", "commit", "compare", "%snapshot log", "explorer", "readability", "find_tables"} <= seen
    assert "health" in seen


NO_RESULTS = {
    *(
        "Lake",
        "LakeSnapshot",
        "Limits",
        "load_ipython_extension",
        "samples",
        "show_progress",
        "show_versions",
        "unload_ipython_extension",
        "verify_certificate",
    ),
    *("renamed_column", "report", "uncache"),
    *("card", "loaded", "pair_side", "past", "read_overview"),
}
"""Public names that return nothing about the files of versions, or what other names return too."""
ON_SPARK = {"to_spark"}
"""Those whose DataFrames are compared with the results of the local engine in tests/spark."""


def test_every_public_name_is_among_the_calls():
    sources = [Path(module.__file__).read_text(encoding="utf-8") for module in (public_calls, not_checked)]
    names = {name for owner in (Table, Snapshot) for name in vars(owner) if not name.startswith("_")}

    called = {name for name in {*names, *snapshot_explorer.__all__} if is_called(name, *sources)}

    assert {*names, *snapshot_explorer.__all__} - called - NO_RESULTS == ON_SPARK


def test_a_lost_file_of_the_newest_version_is_found_by_readability_and_then_known_everywhere(scenario):
    remove_a_file(scenario)
    table = open_table(scenario.url)
    newest = table.current.version

    assert table.current.commit.readable is None
    for shown in (table.current, table.current.commit, table.history(), table.history().picture()):
        assert "not checked" in shown._repr_mimebundle_()["text/plain"]
    has_health = scenario.format != "hudi"  # which has no settings for maintenance
    if has_health:
        assert "Not checked: whether its files exist" in table.health(metadata_only=True).verdict
    found = {row["version"]: row["readable"] for row in table.verify().versions.to_dict()}
    assert found[newest] == "metadata"
    assert table.current.commit.readable == "metadata"
    assert table.history()["readable"].to_pylist()[0] == "metadata"
    assert re.search(r"no: 1 of \d+ files", repr(table.history()))
    if has_health:
        assert table.health(metadata_only=True).verdict.startswith("To do: missing files")


@pytest.mark.parametrize("content", [b"", b"PAR1"], ids=["empty", "cut"])
def test_readability_compares_sizes(scenario, content):
    table = open_table(scenario.url)
    files = table.current.files()
    path = files["path"][0].as_py()
    fsspec.filesystem("memory").pipe_file(f"{scenario.root}/{path.removeprefix(scenario.root).lstrip('/')}", content)

    row = table.verify().versions.to_dict()[0]

    assert row["readable"] == "metadata"
    assert row["reason"] == f"1 of {len(files)} files have another size than recorded"


FILES_OF = {"rows": "files", "added_rows": "added_files", "removed_rows": "removed_files"}
NUMBERS = (*FILES_OF, "net_rows", "total_rows", "null_count", "null_rate", "min", "max")
"""Columns of numbers that come from statistics of files."""


def unfounded_numbers(rows):
    """Return the columns and values of numbers of files, which have no statistics. No files have 0 rows."""
    drawn = [name for name in NUMBERS if name in rows.column_names and rows.schema.field(name).metadata]
    return [
        (name, row[name])
        for row in rows.to_pylist()
        for name in drawn
        if row[name] is not None and row.get(FILES_OF.get(name)) != 0
    ]


def test_numbers_of_files_without_statistics_are_null(memory_root):
    table = DeltaTable(*memory_root, first=None)
    for number in range(4):
        stored = table.data(f"{number}.parquet", [(number, "a")])
        stored["add"].pop("stats")
        first = (protocol(), metadata()) if number == 0 else (remove(f"{number - 1}.parquet"),)
        table.commit(*first, stored)
    of_rows = {"profile exact", "inspect history", "trace"}

    for name, result in results(table.url):
        for rows in tables_in(result) if name not in of_rows else ():
            assert unfounded_numbers(rows) == [], name
        for text in texts_of(result) if name != "repair" else ():  # which reads and counts the rows
            assert not re.search(r"(?<![\d,.])0 rows", text), (name, text)


def test_rows_that_are_unknown_are_not_drawn_as_nothing(memory_root):
    table = DeltaTable(*memory_root)
    table.commit(add("a.parquet"))
    table.commit(add("b.parquet"), remove("a.parquet"))

    compared = open_table(table.url).compare(1, 2)

    assert unfounded_numbers(compared.summary.to_arrow()) == []
    assert "same" not in compared.proof
    assert "nothing" not in repr(compared).lower()


def test_a_number_of_live_files_that_manifest_lists_do_not_contain_is_unknown(memory_root, monkeypatch):
    schema = copy.deepcopy(table_builder.MANIFEST_LIST)
    for field in schema["fields"]:
        if field["name"] == "added_files_count":
            field |= {"type": ["null", "int"], "default": None}
    monkeypatch.setattr(table_builder, "MANIFEST_LIST", schema)
    table = table_builder.IcebergTable(*memory_root)
    snapshot_id = table.commit([(1, "a")])
    for manifest in table.manifests[snapshot_id]:
        manifest["added_files_count"] = None
    table.commit([(2, "b")])
    snapshot = open_table(f"memory://{table.root}").current

    assert parts_of(snapshot).loaded.live_files() is None
    assert re.search("live_files +unknown", snapshot._repr_mimebundle_()["text/plain"])
    assert len(snapshot.files()) == parts_of(snapshot).loaded.live_files() == 2
