"""What people type by mistake or by habit, and what the answer says."""

import re
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import TableNotFoundError
from tests.jupyter.test_completion import completed
from tests.support.paimon.table_builder import PaimonTable


@pytest.mark.parametrize("line", ["%snapshot log?", "%snap log ??", "?%snapshot log", "x = 1\n%snapshot log?"])
def test_a_question_mark_shows_the_help_of_a_command(shell, line):
    assert repr(shell.ok(line).result).startswith("%snapshot log [A..B]")


def test_a_question_about_another_name_of_a_command_is_answered_too(shell):
    assert repr(shell.ok("%snapshot history?").result).startswith("%snapshot log [A..B]")
    assert repr(shell.ok("%%snapshot sql?\nselect 1").result).startswith("%snapshot sql [QUERY]")


def test_questions_of_others_are_left_alone_and_unloading_removes_the_answers(shell):
    before = shell.ip.transform_cell("print?\nx = '%snapshot log?'\n")
    shell.ok("%unload_ext snapshot_explorer")

    assert "pinfo" in before
    assert "'%snapshot log?'" in before
    assert "pinfo" in shell.ip.transform_cell("%snapshot log?")


def test_loading_twice_answers_questions_once(shell):
    count = len(shell.ip.input_transformers_cleanup)

    shell.ok("%reload_ext snapshot_explorer")

    assert len(shell.ip.input_transformers_cleanup) == count


def test_diff_of_a_table_with_one_version_says_so(shell, memory_root):
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    shell.ok(f"%snapshot open memory://{table.root} as orders")

    assert shell.fails("%snapshot diff") == (
        "orders has one version, 1: there is none before it to compare with. %snapshot show 1 shows what it added."
    )


def test_the_title_of_a_history_has_the_branch(shell, written):
    branch = PaimonTable(written.filesystem, f"{written.root}/branch/branch-dev")
    branch.commit([(1, "a")])
    shell.ok(f"%snapshot open memory://{written.root} as dev --branch dev")

    title = f"History of {shell['dev'].name}, branch dev"

    assert shell.ok("%snapshot log").shown["text/plain"].startswith(title)
    assert shell["dev"].history().picture().layout.title.text.endswith(", branch dev")


@pytest.mark.parametrize("command", ["show", "load", "files", "manifests"])
def test_a_time_just_before_a_commit_says_which_version_it_is(orders, command):
    cell = orders.ok(f"%snapshot {command} 2026-01-01T00:03:59.556Z")

    assert cell.said[-1] == (
        "@2026-01-01T00:03:59.556000Z is version 3, the last one committed by then: version 4 was committed 0.444 s "
        "later, at 2026-01-01T00:04:00Z."
    )


@pytest.mark.parametrize("ref", ["@2026-01-01T00:03:00Z", "@2026-01-01T00:04:00Z", "3", "@2026-01-02", "latest"])
def test_other_refs_say_nothing_about_the_next_version(orders, ref):
    assert orders.ok(f"%snapshot show {ref}").said == []


def test_a_range_of_times_says_it_for_both_sides(orders):
    said = orders.ok("%snapshot diff 2026-01-01T00:01:30..2026-01-01T00:03:30").said

    assert [line.partition(",")[0] for line in said] == [
        "@2026-01-01T00:01:30Z is version 1",
        "@2026-01-01T00:03:30Z is version 3",
    ]


@pytest.fixture
def lake(tmp_path):
    for name in ("cdf-table", "orders", "_staging", *(f"events_{number}" for number in range(11))):
        (tmp_path / "lake" / name / "_delta_log").mkdir(parents=True)
        (tmp_path / "lake" / name / "_delta_log" / f"{0:020}.json").write_text("{}")
    return tmp_path / "lake"


def test_a_typo_in_a_path_suggests_the_nearest_folder(shell, lake):
    sentence = shell.fails(f"%snapshot open {lake}/cdf-tabel")

    assert sentence.endswith(f"Check the path and the options. Did you mean cdf-table? {lake} has 12 folders more.")


def test_a_typo_in_the_folder_above_is_found(lake):
    with pytest.raises(
        TableNotFoundError, match=rf"Did you mean lake\? {lake.parent} has \d+ folders? more\.|Did you mean lake\?$"
    ):
        open_table(lake.parent / "laek" / "orders")


def test_where_no_table_is_similar_some_are_named(lake):
    with pytest.raises(
        TableNotFoundError, match=f"{lake} has 13 folders, among them the tables cdf-table, events_0, events_1.$"
    ):
        open_table(lake / "xyzzy")


def test_a_missing_bucket_suggests_nothing():
    with pytest.raises(TableNotFoundError, match=r"Check the path and the options\.$"):
        open_table("memory://not-there")


@pytest.fixture
def sales(shell):
    """The shell, with a table of decimals opened as sales."""
    shell.ok(f"%snapshot open {samples.path('orders')} as sales")
    return shell


def test_decimals_say_once_how_to_get_floats(sales):
    said = [
        sales.ok(f"df = %snapshot load 8 {words}").said for words in ("--columns order_id", "", "", "--types numpy")
    ]

    assert [len(lines) for lines in said] == [1, 2, 1, 1]
    assert said[1][1] == (
        "Decimals are exact, as Arrow dtypes, which NumPy functions and merges with floats do not accept. For floats: "
        "--types numpy."
    )
    assert str(sales["df"].dtypes["amount"]) == "float64"


def test_types_are_completed_and_checked(sales):
    assert str(sales.ok("%snapshot load 8 --types nullable").result.dtypes["amount"]) == "Float64"
    assert sales.fails("%snapshot load 8 --types float").startswith("--types float is unknown. ")
    assert sales.fails("%snapshot load 8 --types numpy --engine arrow").startswith(
        "--types is for pandas, and the engine"
    )


def test_conditions_and_columns_come_from_variables_by_name(sales):
    sales["chosen"], sales["bad"], sales["amount"] = ["order_id"], "amount < 0", "order_id = 1"

    found = sales.ok("%snapshot load 8 --columns chosen --where bad").result

    assert list(found.columns) == ["order_id"]
    assert len(found) == len(sales.ok('%snapshot load 8 --where "amount < 0"').result)
    assert list(sales.ok("%snapshot load 8 --columns amount").result.columns) == ["amount"]
    assert len(sales.ok("%snapshot files 8 --where bad").result) >= 1


def test_the_card_of_an_opened_table_has_what_is_asked_first(shell):
    shown = shell.ok(f"%snapshot open {samples.path('events')} as events").shown["text/plain"]

    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[0] == "events"
    assert lines[1:-1] == [
        f"path {shell['events'].path}",
        "format paimon",
        "format version snapshot 3: parquet files, unaware buckets",
        "branch main",
        "newest version 15",
        "versions 15",
        "last commit append 2026-11-09 00:30:00.067Z",
        "rows 75",
        "files 7, 11.0 kB",
        "partition keys day",
        "next %snapshot log, %snapshot diff, %snapshot explore",
    ]


def test_titles_have_the_name_of_the_table_and_only_the_card_its_path(orders, path):
    lines = [
        "log 2",
        "show",
        "diff 1",
        "diff 1 --rows",
        "manifests",
        "files",
        "health",
        "verify",
        "tags",
        "files --plan",
    ]
    lines += [
        "bisect 'id > 3'",
        "blame 'id = 1'",
        "profile id",
        "profile --anomalies",
        "inspect snapshots",
        "log --picture",
        "branches",
    ]
    explorer = orders.ok("%snapshot explore").result.wait()

    pages = {line: orders.ok(f"%snapshot {line}").shown["text/plain"] for line in lines}
    card = orders.ok("%snapshot").shown["text/plain"]

    name = "orders"
    titled = {"log 2", "show", "diff 1", "health", "tags", "blame 'id = 1'", "profile id", "log --picture"}
    assert [line for line in titled if name not in pages[line].split("\n")[0]] == []
    assert [line for line, page in pages.items() if path in page.split("\n")[0]] == []
    assert card.split("\n")[0] == name
    assert card.count(path) == 1
    assert str(explorer).startswith(f"Explorer of {name}\n")


def versions_offered(shell):
    return [kind for text, kind in completed(shell, "%snapshot show ") if text[-1].isdigit() and "~" not in text]


def test_after_open_of_a_local_table_all_versions_are_offered_with_kind_and_time(shell):
    shell.ok(f"%snapshot open {samples.path('orders')} as orders")

    kinds = versions_offered(shell)

    assert len(kinds) == 18
    assert kinds[:2] == ["compact 2026-11-14 02:00:00.092Z", "append 2026-11-13 20:00:00.332Z"]
    assert "version" not in kinds


def test_after_open_of_a_remote_table_only_the_newest_commit_has_been_read(shell, path):
    shell.ok(f"%snapshot open {path} as orders")

    assert versions_offered(shell) == ["compact 2026-01-01 00:05:00.000Z", *["version"] * 4]


def test_a_table_of_which_one_commit_cannot_be_read_is_opened_all_the_same(shell):
    path = Path(samples.path("orders"))
    (path / "snapshot" / "snapshot-16").write_bytes(b"damaged")

    shown = shell.ok(f"%snapshot open {path} as orders").shown["text/plain"]

    assert re.search(r"newest version +18\n", shown)
    assert re.search(r"last commit +compact 2026-11-14 02:00:00.092Z\n", shown)
