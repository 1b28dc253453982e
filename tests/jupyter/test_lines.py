"""What a line may look like: assignments, silence, variables, names, quotes; and how errors look."""

from datetime import UTC, date, datetime

import pytest

from tests.inner.jupyter import REMOVED
from tests.support.paimon.table_builder import PaimonTable


def test_the_result_can_be_assigned_in_three_ways_and_is_then_not_shown(orders):
    for line in ("h = %snapshot log -n 2", "%snapshot h << log -n 2", "%snapshot log -n 2 -o h", "%snap h<<log -n2"):
        cell = orders.ok(line)
        assert cell.result is None
        assert cell.shown == {}
        assert orders["h"]["version"].to_pylist() == [5, 4]
        del orders.ip.user_ns["h"]


def test_nothing_is_printed_and_returned_both(orders):
    cell = orders.ok("%snapshot log")

    assert cell.stdout == ""
    assert cell.stderr == ""
    assert cell.said == []


@pytest.mark.parametrize("line", ["%snapshot log;", "%snapshot log ; ", "%snap load 2;", "x = 1\n%snapshot log;"])
def test_a_semicolon_silences(orders, line):
    cell = orders.ok(line)

    assert (cell.shown, cell.said, cell.stdout) == ({}, [], "")


def test_a_semicolon_behind_an_assignment_still_assigns(orders):
    orders.ok("df = %snapshot load 2;")

    assert len(orders["df"]) == 3


@pytest.mark.parametrize("line", ["%snapshot show {n}", "%snapshot show $n", "%snapshot show {n + 0} -t {name}"])
def test_variables_are_expanded(orders, line):
    orders["n"], orders["name"] = 3, "orders"

    assert orders.ok(line).result.version == 3


def test_a_value_with_blanks_and_quotes_survives(shell, memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, f"{root}/it's my table").commit()
    shell["path"] = f"memory://{root}/it's my table"

    assert shell.ok("%snapshot open {path} as a").result.current.version == 1
    assert shell.ok("%snapshot open $path as b").result.current.version == 1
    assert shell.ok('%snapshot open "{path}" as c').result.current.version == 1
    assert shell.ok(f'%snapshot open "memory://{root}/it\'s my table" as d').result.current.version == 1


def test_variables_stand_in_conditions_and_braces_that_are_none_do_not_break(orders):
    orders["low"], orders["who"] = 2, "c"

    assert len(orders.ok('%snapshot load --where "id > {low}"').result) == 2
    assert len(orders.ok("%snapshot load --where \"name = '{who}'\"").result) == 1
    assert len(orders.ok("%snapshot load --where \"name <> '{nobody}' and id > {low}\"").result) == 2
    assert len(orders.ok("%snapshot load --where \"regexp_matches(name, '^[a-z]{1}$')\"").result) == 3


def test_a_list_of_columns_comes_from_a_variable(orders):
    orders["chosen"] = ["name", "id"]

    assert list(orders.ok("%snapshot load --columns {chosen}").result.columns) == ["name", "id"]


def test_a_magic_inside_a_function_sees_its_variables(orders):
    cell = orders.ok(
        "def versions(at, handle):\n"
        "    found = %snapshot show {at} -t handle\n"
        "    return found.version\n"
        "versions(4, orders)"
    )

    assert cell.result == 4


def test_a_handle_made_in_python_is_a_table_by_its_variables_name(shell, path):
    shell.ok(f"import snapshot_explorer as sx\nsales = sx.open_table('{path}')")

    assert shell.ok("%snapshot show").result.version == 5
    assert shell.ok("%snapshot show -t sales").result.version == 5
    assert shell.ok("%snapshot show sales@3").result.version == 3
    assert shell.ok("%snapshot show {sales} 3").result.version == 3


def test_a_table_stays_open_when_its_variable_is_used_for_rows(orders):
    orders.ok("orders = %snapshot load")

    assert orders.ok("%snapshot show -t orders").result.version == 5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "%snapshot lgo",
            "There is no command lgo. Did you mean log? Commands: open, status, lake, explore, help, log, ",
        ),
        ("%snapshot optimize", "%snapshot is read-only and cannot optimize. "),
        ("%snapshot orders", "orders is a table, not a command. Try %snapshot status orders or %snapshot log orders."),
        ("%snapshot log --knd x", "%snapshot log has no option --knd. Did you mean --kind?"),
        ("%snapshot log -n many", "-n must be a whole number, 0 or more, or all, got 'many'. Example: -n 20."),
        ("%snapshot load --limit -5", "--limit must be a whole number, 0 or more, got '-5'. Example: --limit 20."),
        (
            "%snapshot load --engine dask",
            "The engine 'dask' is unknown. Use --engine pandas or --engine arrow or --engine spark.",
        ),
        ("%snapshot show -t ordres", "No open table is called 'ordres'. Did you mean orders? Open: orders."),
        ("%snapshot show ordres@17", "No open table is called 'ordres'. Did you mean orders? Open: orders."),
        ("%snapshot open --close nothing", "No open table is called 'nothing'. Open: orders."),
        ("%snapshot open ordres", "No Paimon, Delta Lake, Iceberg, Hudi or DuckLake table at "),
        ("%snapshot open orders --branch b", "orders is an open table, and --branch is for a path. Use its path: "),
        ("%snapshot open --close orders as x", "--close and --as exclude each other. Use one of them."),
        ("%snapshot load --key id", "--key needs --duplicates. Add it, or leave out --key."),
        ("%snapshot load --duplicates -n 3", "--duplicates and --limit exclude each other. Use one of them."),
        ("%snapshot profile --key id", "--key needs --anomalies. Add it, or leave out --key."),
        ("%snapshot profile --anomalies --exact", "--anomalies and --exact exclude each other. Use one of them."),
        ("%snapshot log --measure rows", "--measure needs --picture. Add it, or leave out --measure."),
        ("%snapshot files --where id=1 -p a=1", "--where and --partition exclude each other. Use one of them."),
        ("%snapshot lake x --no-sizes", "--no-sizes needs --list. Add it, or leave out --no-sizes."),
        ("%snapshot lake x --list --at 3h", "--list and --at exclude each other. Use one of them."),
        ("%snapshot diff --twins --rows", "--twins and --rows exclude each other. Use one of them."),
        ("%snapshot diff 3..4 --twins", "--twins compares all versions, got '3..4'. Name two open tables, "),
        ("%snapshot diff 3..4 --options x", "--options needs --twins. Add it, or leave out --options."),
        ("%snapshot files --partition dt", "--partition must be column=value, got 'dt'. Example: --partition dt=2026"),
        ("%snapshot log -o 'a b'", "'a b' cannot be the name of a variable. Use letters, digits and _."),
        ("%snapshot log as class", "'class' cannot be the name of a variable. Use letters, digits and _."),
        (
            "%snapshot open x as import",
            "'import' cannot be the name of a variable. Use letters, digits and _: as ",
        ),
        (
            "%snapshot open x as my-orders",
            "'my-orders' cannot be the name of a variable. Use letters, digits and _: as ",
        ),
        ("%snapshot help lod", "There is no command lod. Did you mean load?"),
        ('%snapshot load --where "id >"', ""),
        ("%snapshot load --columns nope", ""),
        (
            "%snapshot load --columns ID",
            "Unknown column 'ID'. Did you mean id? Columns: id, name.",
        ),
        (
            '%snapshot load --columns ""',
            "--columns contains no column. Separate names with commas: --columns id,amount.",
        ),
        ("%snapshot log 5..99", "Version 99 does not exist. Available versions: 1 to 5. Try 5, latest or @2h."),
        (
            "%snapshot log 99.. --picture",
            "Version 99 does not exist. Available versions: 1 to 5. Try 5, latest or @2h.",
        ),
        (
            "%snapshot health --over 99..",
            "Version 99 does not exist. Available versions: 1 to 5. Try 5, latest or @2h.",
        ),
        ("%snapshot show 99", ""),
        ("%snapshot show nonsense", ""),
        ("%snapshot show tag:v2", ""),
        ("%snapshot log --kind vacuum", "'vacuum' is not a kind of commit. Kinds: append, "),
        ("%snapshot log --since nonsense", "since='nonsense' is not a time."),
        ("%snapshot files --partition dt=1", "'dt' is not a partition key. The table is not partitioned."),
        ("%snapshot open memory://not-there", "No Paimon, Delta Lake, Iceberg, Hudi or DuckLake table at memory://"),
        (
            "%snapshot open x --format lance",
            "No format is called 'lance'. Formats: paimon, delta, iceberg, hudi, ducklake.",
        ),
        (
            "%snapshot open x --options nope",
            "--options must be a variable that contains a dict. No variable contains a dict. ",
        ),
        ("%snapshot log don't --grep 'x", '"don\'t" is not a range of versions'),
    ],
)
def test_an_error_is_one_line_that_says_what_to_do(orders, line, said):
    line = orders.fails(line)

    assert line.startswith(said)
    assert line[-1] in ".?s"


def test_without_a_table_every_command_about_one_says_how_to_open_one(shell):
    for command in ("status", "log", "show", "manifests", "files", "tags", "branches", "load", "open", "open --close"):
        assert shell.fails(f"%snapshot {command}") == ("No table is open. Open one: %snapshot open PATH as NAME.")


def test_with_several_handles_and_none_chosen_a_command_asks(shell, path):
    shell.ok(f"import snapshot_explorer as sx\na = sx.open_table('{path}')\nb = sx.open_table('{path}')")

    assert shell.fails("%snapshot log") == (
        "No table is chosen. Open: a, b. Select one with -t NAME, or choose one with %snapshot open NAME."
    )


def test_dict_variables_are_offered_by_name_and_their_content_never(orders):
    orders["minio"] = {"secret": "HUSH"}

    said = orders.fails("%snapshot open x --options HUSHED")

    assert said == (
        "--options must be a variable that contains a dict. Variables with a dict: minio. "
        "Define it first: options = {...}."
    )


def test_debug_shows_the_traceback(orders):
    for line in ("%snapshot show 99 --debug", "%config SnapshotMagics.debug = True\n%snapshot show 99"):
        cell = orders.run(line)
        assert type(cell.error).__name__ == "SnapshotNotFoundError"
        assert "Traceback" in cell.stdout + cell.stderr


def test_an_unexpected_error_is_not_swallowed(orders, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(type(orders["orders"]), "tags", broken)

    cell = orders.run("%snapshot tags")

    assert isinstance(cell.error, ZeroDivisionError)
    assert "Traceback" in cell.stdout + cell.stderr


def test_an_error_with_control_characters_stays_one_line(orders):
    said = orders.fails("%snapshot show \x1b[31mred")

    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("%snapshot 3", 3),
        ("%snap -2", 4),
        ("%snapshot v3", 3),
        ("%snapshot HEAD~1", 4),
        ("%snapshot latest", 5),
        ("%snapshot tag:v1", 2),
        ("%snapshot orders@3", 3),
        ("%snapshot {n}", 3),
        ("%snapshot show -1", 5),
        ("%snapshot show n", 3),
        ("%snapshot show n~1", 2),
        ("%snapshot show orders n", 3),
        ("%snapshot show orders@n", 3),
        ("%snapshot show text", 4),
        ("%snapshot show seen", 2),
        ("%snapshot show moment", 3),
        ("%snapshot show @moment", 3),
        ("%snapshot show day", 5),
        ("%snapshot show 2026-01-01T00:03:30", 3),
        ("%snapshot show 2026-01-02", 5),
        ("%snapshot show yesterday", 5),
    ],
)
def test_a_version_is_accepted_as_people_write_it(orders, line, version):
    orders["n"], orders["text"], orders["day"] = 3, "latest~1", date(2026, 1, 2)
    orders["moment"] = datetime(2026, 1, 1, 0, 3, 30, tzinfo=UTC)
    orders.ok("seen = orders.at(2)")

    assert orders.ok(line).result.version == version


@pytest.mark.parametrize(
    ("line", "versions"),
    [
        ("%snapshot log 2", [5, 4]),
        ("%snapshot log -2", [5, 4]),
        ("%snapshot log n", [5, 4]),
        ("%snapshot log orders 2", [5, 4]),
        ("%snapshot log 2 3", [3, 2]),
        ("%snapshot log v2..HEAD~2", [3, 2]),
        ("%snapshot log n..3", [3, 2]),
        ("%snapshot log -3..-2", [4, 3]),
        ("%snapshot log -n n", [5, 4]),
        ("%snapshot log --since 2026-01-01T00:04:00", [5, 4]),
        ("%snapshot log --since moment", [5, 4]),
        ("%snapshot log --until 2026-01-01", []),
        ("%snapshot log --since yesterday", []),
        ("%snapshot history 2", [5, 4]),
        ("%snapshot versions -n 1", [5]),
        ("%snapshot show history -n 1", [5]),
    ],
)
def test_a_range_of_commits_is_accepted_as_people_write_it(orders, line, versions):
    orders["n"], orders["moment"] = 2, datetime(2026, 1, 1, 0, 4, tzinfo=UTC)

    assert orders.ok(line).result["version"].to_pylist() == versions


@pytest.mark.parametrize(
    "line", ["diff 3 4", "diff v3 v4", "diff -3 -2", "diff 3..4", "3..4", "diff orders 3 4", "diff a b"]
)
def test_two_versions_are_compared(orders, line):
    orders["a"], orders["b"] = 3, 4

    found = orders.ok(f"%snapshot {line}").result

    assert (found.a, found.b) == (3, 4)


@pytest.mark.parametrize(
    "line", ["%snapshot load 2 as df", "%snapshot load as df -n 3", "%snapshot load orders@2 as df"]
)
def test_a_result_is_named_with_as(orders, line):
    assert orders.ok(line).result is None
    assert len(orders["df"]) == 3


def test_nouns_behind_show_and_other_names_are_commands(orders):
    for line in ("show tables", "sql show tables", "sql SHOW TABLES;", "sql show tables --out found"):
        found = orders.ok(f"%snapshot {line}").result
        assert (orders["found"] if found is None else found)["name"].to_pylist() == ["orders"]
    for head in ("%%snapshot", "%%snapshot sql"):
        assert orders.ok(f"{head}\nshow tables;").result["name"].to_pylist() == ["orders"]
    assert orders.ok("%snapshot show tags").result["tag"].to_pylist() == ["v1"]
    assert [column.name for column in orders.ok("%snapshot describe 3").result.columns] == ["id", "name"]
    assert orders.fails("%snapshot hstory").startswith("There is no command hstory. Did you mean history?")


@pytest.mark.parametrize("word", REMOVED)
def test_a_word_that_was_a_command_names_the_line_that_replaces_it(orders, word):
    expected = f"There is no command {word}. Use: %snapshot {REMOVED[word]}"
    replacement = REMOVED[word].replace("PATH", "x").replace("NAME", "orders")

    for line in (f"{word} 3 --all", f"{word} --help", f"help {word}", f"show {word} 3", f"{word}?"):
        assert orders.fails(f"%snapshot {line}") == expected
    assert "no option" not in str(orders.run(f"%snapshot {replacement}").error)


def test_a_table_may_have_the_name_of_a_word_that_was_a_command(orders, path):
    orders.ok(f"%snapshot open {path} as plan")

    assert orders.fails("%snapshot plan").startswith("plan is a table, not a command.")
    assert orders.ok("%snapshot show plan 3").result.version == 3


def test_watch_is_an_explorer_that_follows(orders):
    orders.ok("explorer = %snapshot watch")

    assert orders["explorer"].state.follow
    orders["explorer"].close()


def test_an_explorer_is_written_into_a_file(orders, tmp_path):
    file = tmp_path / "orders.html"

    written = orders.ok(f"%snapshot explore --html {file} --versions 1").result

    assert repr(written) == f"Wrote {file}, {file.stat().st_size / 1000:,.0f} kB."
    assert orders.fails(f"%snapshot explore --html {file}").endswith("or replace it with --overwrite.")


def test_a_short_form_that_is_also_a_variable_of_another_value_is_refused(orders):
    orders["v3"], orders["latest"] = 2, 1

    assert orders.fails("%snapshot show v3") == (
        "v3 is ambiguous: it reads as 3, and is a variable of yours with the value 2. Write 3 or {v3}."
    )
    assert orders.ok("%snapshot show {v3}").result.version == 2
    assert orders.ok("%snapshot show latest").result.version == 5


def test_a_variable_of_another_kind_is_not_a_version(orders):
    orders["flag"], orders["rows"] = True, [1]

    assert "'flag' is not a valid ref" in orders.fails("%snapshot show flag")
    assert "'rows' is not a valid ref" in orders.fails("%snapshot show rows")


def test_a_tag_and_a_version_of_one_name_are_distinguished(orders):
    assert orders.fails("%snapshot show v1") == (
        "'v1' is ambiguous: a tag of this name is version 2, and 1 is version 1. Write tag:v1 or 1."
    )
