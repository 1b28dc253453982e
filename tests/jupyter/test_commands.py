"""Each command of %snapshot, in a real shell, against a real table."""

from importlib import import_module
from itertools import groupby
from pkgutil import iter_modules
from typing import get_args

import pandas as pd
import pyarrow as pa
import pytest

from snapshot_explorer import Snapshot, Table, samples
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter import commands
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.results import Frame
from tests.inner.core import TableSchema
from tests.inner.jupyter import Command, Question
from tests.inner.lake import Twins
from tests.support import rest_catalogs
from tests.support.paimon.table_builder import PaimonTable


def versions(frame):
    return frame["version"].to_pylist()


def test_every_command_is_listed_in_the_module_of_its_question():
    modules = [import_module(f"{commands.__name__}.{module.name}") for module in iter_modules(commands.__path__)]
    written = [item.name for module in modules for item in vars(module).values() if isinstance(item, Command)]
    rooms = {(command.run.__module__, command.question) for command in COMMANDS}

    assert sorted(written) == sorted(command.name for command in COMMANDS)
    assert len(rooms) == len({module for module, _ in rooms}) == len({question for _, question in rooms})


def test_open_returns_the_table_and_binds_its_name(shell, path):
    cell = shell.ok(f"%snapshot open {path} as orders")

    assert isinstance(cell.result, Table)
    assert shell["orders"] is cell.result
    assert path in cell.shown["text/plain"]


@pytest.mark.parametrize("words", ["{} as sales", "{} --as sales", "--as=sales {}", "'{}' --format paimon --as sales"])
def test_open_takes_a_name_before_or_after_the_path(shell, path, words):
    shell.ok(f"%snapshot open {words.format(path)}")

    assert isinstance(shell["sales"], Table)


def test_open_without_a_name_takes_the_last_part_of_the_path(shell, memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, f"{root}/shop.db/2026-orders").commit()

    shell.ok(f"%snapshot open memory://{root}/shop.db/2026-orders/")

    assert isinstance(shell["table_2026_orders"], Table)


def test_open_does_not_overwrite_a_variable_that_was_not_named(shell, memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, f"{root}/orders").commit()
    shell["orders"] = "mine"

    assert shell.fails(f"%snapshot open memory://{root}/orders") == (
        "The table would be called 'orders', but that is a variable of yours (str). "
        "Name it: %snapshot open PATH as orders_table."
    )
    assert shell["orders"] == "mine"


def test_open_does_not_give_a_second_table_the_name_of_the_first(shell, memory_root):
    filesystem, root = memory_root
    for folder in ("a", "b"):
        PaimonTable(filesystem, f"{root}/{folder}/orders").commit()
    shell.ok(f"%snapshot open memory://{root}/a/orders")

    said = shell.fails(f"%snapshot open memory://{root}/b/orders")

    assert said == f"orders is already the name of {shell['orders'].path}. Name this one: as orders_2."
    assert shell["orders"].path.endswith("a/orders")
    shell.ok(f"%snapshot open memory://{root}/a/orders")


def test_open_takes_storage_options_from_a_variable_and_never_shows_them(shell, path):
    shell["options"] = {"secret": "HUSH"}

    cell = shell.run(f"%snapshot open {path} as orders --options options")

    assert "HUSH" not in f"{cell.stdout}{cell.stderr}{cell.shown}{cell.said}{cell.error}"


def test_open_asks_a_catalog_for_a_name(shell):
    with rest_catalogs.served(rest_catalogs.loaded(f"{samples.path('shipments')}/metadata/{rest_catalogs.FILE}")) as (
        uri,
        _,
    ):
        shell["login"] = {"token": "HUSH"}
        cell = shell.ok(f"%snapshot open shop.shipments --catalog {uri} --catalog-options login")
        said = shell.fails(f"%snapshot open shop.none --catalog {uri} --catalog-options nothing")

    assert cell.result is shell["shipments"]
    assert "HUSH" not in f"{cell.stdout}{cell.stderr}{cell.shown}"
    assert said == (
        "--catalog-options must be a variable that contains a dict. Variables with a dict: login. "
        "Define it first: catalog_options = {...}."
    )


def test_open_takes_a_handle_made_in_python(shell, path):
    shell.ok(f"from snapshot_explorer import open_table\nhandle = open_table('{path}')")

    assert shell.ok("%snapshot open handle").result is shell["handle"]
    assert shell.ok("%snapshot open handle as orders").result is shell["orders"]


def test_open_takes_a_path_from_a_bare_variable(shell, path):
    shell["where_it_is"] = path

    assert isinstance(shell.ok("%snapshot open where_it_is as orders").result, Table)


def test_bare_snapshot_lists_the_commands_until_a_table_is_open(shell, path):
    listed = shell.ok("%snapshot").shown["text/plain"]

    assert all(f"\n  {command.name} " in listed and command.examples[0] in listed for command in COMMANDS)
    shell.ok(f"%snapshot open {path} as orders")
    assert shell.ok("%snapshot").result is shell["orders"]


def test_status_sees_new_commits(orders, written):
    written.commit([(9, "z")])

    cell = orders.ok("%snapshot status")

    assert cell.result.current.version == 6
    assert "6" in cell.shown["text/plain"]


def test_status_of_several_tables_lists_them(orders, path):
    orders.ok(f"%snapshot open {path} as again")

    assert orders.ok("%snapshot").result["name"].to_pylist() == ["orders", "again"]
    assert orders.ok("%snapshot status orders").result is orders["orders"]
    assert orders.ok("%snapshot status -t again").result is orders["again"]


def test_open_without_a_path_lists_the_tables_and_with_a_name_chooses_one(orders, path):
    orders.ok(f"%snapshot open {path} as again")

    frame = orders.ok("%snapshot open").result

    assert frame["current"].to_pylist() == [None, "*"]
    assert frame["version"].to_pylist() == [5, 5]
    assert orders.ok("%snapshot open orders").result is orders["orders"]
    assert orders.ok("%snapshot open").result["current"].to_pylist() == ["*", None]


def test_choosing_a_table_leaves_a_variable_of_its_name_alone(orders, path):
    orders.ok(f"%snapshot open {path} as again\norders = %snapshot load")

    assert isinstance(orders.ok("%snapshot open orders").result, Table)
    assert isinstance(orders["orders"], pd.DataFrame)
    assert orders.ok("%snapshot").result["current"].to_pylist() == ["*", None]


def test_lake_with_list_lists_the_tables_below_that_folder(shell, memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, f"{root}/shop.db/orders").commit()
    shell["folder"] = f"memory://{root}"

    (row,) = shell.ok(f"%snapshot lake memory://{root} --list --depth 2").result.to_dict()

    assert (row["name"], row["format"], row["version"]) == ("shop.db/orders", "paimon", 1)
    assert row["size_bytes"] is not None
    assert shell.ok("%snapshot lake folder --list --no-sizes").result["size_bytes"].null_count == 1
    assert "--depth" in shell.fails("%snapshot lake folder --list --depth few")
    shell.ok("%snapshot lake folder as lake")
    assert shell.fails("%snapshot lake lake --list").startswith("--list needs a folder, and lake is a lake.")


def test_lake_with_usage_returns_the_bytes_of_its_tables(shell, memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, f"{root}/shop.db/orders").commit()
    shell["folder"] = f"memory://{root}"

    (row,) = shell.ok("%snapshot lake folder --usage --price 0.02").result.to_dict()

    assert (row["name"], row["version"], row["held_bytes"]) == ("shop.db/orders", 1, 0)
    assert row["cost_per_month"] == row["size_bytes"] / 1e9 * 0.02
    assert shell.fails("%snapshot lake folder --price 1").startswith("--price needs --usage.")
    assert shell.fails("%snapshot lake folder --usage --price much").startswith("--price must be a number, got much.")
    assert shell.fails("%snapshot lake folder --usage --pin").startswith("--pin and --usage name two results.")


def test_lake_with_trace_takes_the_names_of_the_column(shell, memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, f"{root}/shop.db/orders").commit()
    shell["folder"] = f"memory://{root}"

    line = '%snapshot lake folder --trace "nobody = 42"'
    assert shell.ok(line).result.tables["outcome"].to_pylist() == ["no column"]
    assert shell.ok(f"{line} --column orders=id").result.tables["condition"].to_pylist() == ["(id = 42)"]
    assert "no table of" in shell.fails(f"{line} --column other=id")
    assert shell.fails(f"{line} --column id").startswith("--column is a pattern of tables and the column's name there")
    assert shell.fails("%snapshot lake folder --column a=b").startswith("--column needs --trace.")
    assert "Erasure, not run" in shell.ok(f"{line} --statements").shown["text/plain"]
    assert shell.fails("%snapshot lake folder --statements").startswith("--statements needs --trace.")
    assert shell.fails(f"{line} --usage").startswith("--usage and --trace name two results.")


def test_log_is_history_newest_first(orders):
    cell = orders.ok("%snapshot log")

    assert isinstance(cell.result, Frame)
    assert versions(cell.result) == [5, 4, 3, 2, 1]
    *_, e, d, c, b, a, remark, hint = cell.shown["text/plain"].splitlines()
    assert [line.split()[0] for line in (e, d, c, b, a)] == ["5", "4", "3", "2", "1"]
    assert hint == "rows: not all counted; %snapshot log --exact reads those that differ"
    assert orders.ok("%snapshot log --exact").shown["text/plain"].splitlines()[-1] == remark
    assert remark == "readable: not checked; verify looks for every file"
    assert "<table" in cell.shown["text/html"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("2..4", [4, 3, 2]),
        ("..2", [2, 1]),
        ("orders@4..", [5, 4]),
        ("orders 4..", [5, 4]),
        ("-n 2", [5, 4]),
        ("-n2", [5, 4]),
        ("-n all", [5, 4, 3, 2, 1]),
        ("--kind append", [3, 2, 1]),
        ("--since @2026-01-01T00:04:00Z", [5, 4]),
        ("--grep COMPACT", [5]),
        ("--grep don't", []),
        ("latest~1..latest -t orders", [5, 4]),
    ],
)
def test_log_chooses_commits(orders, words, expected):
    assert versions(orders.ok(f"%snapshot log {words}").result) == expected


def test_log_shows_as_many_commits_as_were_requested(orders, written):
    for _ in range(25):
        written.commit()

    assert "20 of 30 versions\n" in orders.ok("%snapshot log").shown["text/plain"]
    shown = orders.ok("%snapshot log -n 25").shown["text/plain"]
    assert "25 of 30 versions\n" in shown
    assert [line.split()[0] for line in shown.splitlines()[-27:-25]] == ["30", "29"]


@pytest.mark.parametrize(
    ("words", "version"),
    [("", 5), ("3", 3), ("latest~2", 3), ("orders@2", 2), ("orders 2", 2), ("2 -t orders", 2), ("tag:v1", 2)],
)
def test_show_is_a_snapshot(orders, words, version):
    cell = orders.ok(f"%snapshot show {words}")

    assert isinstance(cell.result, Snapshot)
    assert cell.result.version == version
    assert f"version {version}" in cell.shown["text/plain"]


def test_show_with_schema_is_the_tables_schema(orders):
    cell = orders.ok("%snapshot show 2 --schema")

    assert isinstance(cell.result, TableSchema)
    assert [column.name for column in cell.result.columns] == ["id", "name"]
    assert "BIGINT" in cell.shown["text/plain"]


def test_manifests_and_files_are_those_of_the_version(orders):
    assert orders.ok("%snapshot manifests 3").result["list"].to_pylist() == ["base", "base", "delta"]
    assert orders.ok("%snapshot files orders@2").result["path"].to_pylist() == [
        "bucket-0/data-1.parquet",
        "bucket-0/data-2.parquet",
    ]


def test_entries_are_those_of_a_manifest_of_the_version(orders):
    assert orders.ok("%snapshot manifests orders@3 --entries manifest-2").result["path"].to_pylist() == [
        "bucket-0/data-2.parquet"
    ]
    assert orders.fails("%snapshot manifests 3 --entries manifest-7").startswith(
        "'manifest-7' is not a manifest of version 3. The nearest is manifest-"
    )
    assert orders.fails("%snapshot manifests --entries") == "--entries needs a value: --entries NAME."


def test_tags_and_branches_are_listed(orders):
    assert orders.ok("%snapshot tags").result["tag"].to_pylist() == ["v1"]
    cell = orders.ok("%snapshot branches orders")
    assert cell.result["branch"].to_pylist() == []
    assert cell.shown["text/plain"].endswith("no branches")


def test_load_says_what_it_reads_and_returns_pandas(orders):
    cell = orders.ok("df = %snapshot load 2")

    assert isinstance(orders["df"], pd.DataFrame)
    assert sorted(orders["df"]["id"]) == [1, 2, 3]
    assert cell.said == ["orders version 2 of 2026-01-01 00:02:00.000Z: reading 3 rows in 2 files, 1.4 kB"]
    assert cell.shown == {}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--engine arrow", {"id": [1, 2, 3, 4], "name": ["A", "b", "c", "d"]}),
        ("2 --engine=arrow --columns name", {"name": ["a", "b", "c"]}),
        ('--engine arrow --where "id > 2" --columns id', {"id": [3, 4]}),
        ("--engine arrow --where \"name = 'c'\"", {"id": [3], "name": ["c"]}),
        ("--engine arrow --where 'name = 'c''", {"id": [3], "name": ["c"]}),
        ("--engine arrow --where name='c'", {"id": [3], "name": ["c"]}),
        ('--engine arrow --where "-id < -3" --columns id,name', {"id": [4], "name": ["d"]}),
        ('--engine arrow --columns "name, id" --where id=1', {"name": ["A"], "id": [1]}),
    ],
)
def test_load_chooses_columns_and_rows(orders, words, expected):
    rows = orders.ok(f"%snapshot load {words}").result

    assert isinstance(rows, pa.Table)
    assert rows.sort_by(rows.column_names[0]).to_pydict() == expected


def test_load_with_a_limit_says_so(orders):
    cell = orders.ok("%snapshot load --limit 2")

    assert len(cell.result) == 2
    assert cell.said[0].endswith("; at most 2 rows are returned")


def test_load_above_the_settings_asks_and_reads_nothing(orders, written):
    orders.ok("%config SnapshotMagics.load_row_limit = 3")
    for name in written.live:
        written.remove(f"bucket-0/{name}")

    assert orders.fails("%snapshot load") == (
        "Version 5 of orders would read 4 rows in 2 files, 1.4 kB: more than 3 rows or 1.0 GB is "
        "read only when asked for. Add --limit N for a part, or --yes for all."
    )


@pytest.mark.parametrize("words", ["--yes", "-y", "--limit 10", "2"])
def test_load_above_the_settings_reads_when_requested(orders, words):
    orders.ok("%config SnapshotMagics.load_row_limit = 3")

    assert len(orders.ok(f"%snapshot load {words}").result) in (3, 4)


def test_load_asks_above_a_size_too(orders):
    orders.ok("%config SnapshotMagics.load_size_limit = 999")

    assert "more than 1,000,000 rows or 999 B is read only when asked for" in orders.fails("%snapshot load")


def test_load_with_duplicates_returns_the_repeated_keys_within_the_limits(orders, written):
    written.commit([(1, "again")])

    cell = orders.ok("%snapshot load --duplicates --key id")

    assert cell.result.to_dict() == [{"rows": 2, "id": 1}]
    assert cell.said[0].startswith("orders version 6 of ")
    assert orders.ok('%snapshot load --duplicates --key id --where "id > 1"').result.num_rows == 0
    assert orders.ok("%snapshot load 2 --duplicates").result.num_rows == 0
    orders.ok("%config SnapshotMagics.load_row_limit = 3")
    assert orders.fails("%snapshot load --duplicates --key id").endswith(
        "is read only when asked for. Narrow it with --where, or add --yes for all."
    )
    assert orders.ok("%snapshot load --duplicates --key id --yes").result.num_rows == 1


def test_diff_with_twins_compares_the_files_of_two_tables(orders, path):
    orders.ok(f"%snapshot open {path} as copy")
    orders["place"] = path

    for line in ("diff orders copy", f"diff orders {path}", "diff orders place"):
        found = orders.ok(f"%snapshot {line} --twins").result
        assert isinstance(found, Twins)
        assert found.versions.num_rows == 5
    assert orders.fails("%snapshot diff orders@1 copy@2 --twins").startswith(
        "--twins compares all versions, got '1..2'"
    )
    assert orders.fails("%snapshot diff --twins").endswith("use %snapshot diff PATH --twins.")


def test_an_empty_table_opens_and_loads_no_rows(shell, memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, root)

    assert "none yet" in shell.ok(f"%snapshot open memory://{root} as empty").shown["text/plain"]
    assert shell.ok("%snapshot log").result.num_rows == 0
    assert [column.name for column in shell.ok("%snapshot show --schema").result.columns] == ["id", "name"]
    assert "has no version yet" in shell.fails("%snapshot show latest --schema")
    assert shell.ok("%snapshot open").result["version"].to_pylist() == [None]


def test_close_forgets_a_table_and_its_variable(orders, path):
    orders.ok(f"%snapshot open {path} as again")

    assert orders.ok("%snapshot open --close orders").shown["text/plain"] == "Closed orders. Open: again."
    assert "orders" not in orders
    assert orders.ok("%snapshot open --close").shown["text/plain"] == "Closed again. Open: none."
    assert orders.ok("%snapshot").shown["text/plain"].startswith("%snapshot COMMAND")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
@pytest.mark.parametrize("spelling", ["%snapshot {} --help", "%snapshot {} -h", "%snapshot help {}", "%snap {} x -h"])
def test_every_command_has_help_with_usage_flags_and_examples(shell, command, spelling):
    shown = shell.ok(spelling.format(command.name)).shown["text/plain"]

    assert shown.startswith(f"%snapshot {command.name}")
    assert command.summary in shown
    for option in command.all_options:
        assert ", ".join(option.flags) in shown
    for argument in command.arguments:
        assert f"\n  {argument.name} " in shown
    for example in command.examples:
        assert example in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_help_of_load_reads_well(shell):
    assert shell.ok("%snapshot help load").shown["text/plain"].splitlines()[:4] == [
        '%snapshot load [REF] [--engine ENGINE] [--types TYPES] [--columns A,B] [--where "SQL"] [-n N] [-y]',
        "               [--duplicates] [--key A,B] [-t NAME] [-o NAME] [--debug] [-h]",
        "",
        "The rows of a version as a DataFrame",
    ]


def test_there_are_27_commands_and_the_help_groups_them_by_question(shell):
    questions = [question for question, _ in groupby(command.question for command in COMMANDS)]
    listed = shell.ok("%snapshot help").shown["text/plain"]

    assert len(COMMANDS) == 27
    assert questions == list(get_args(Question))
    assert [line for line in listed.splitlines() if line in questions] == questions


def test_help_without_a_command_is_the_list(shell):
    listed = shell.ok("%snapshot help").shown["text/plain"]

    assert listed == shell.ok("%snapshot --help").shown["text/plain"]
    assert listed == shell.ok("%snap -h").shown["text/plain"]
    assert max(map(len, listed.splitlines())) <= 120
    assert "orders@17 is version 17 of the table orders." in listed.replace("\n", " ")


def test_a_question_mark_shows_the_usage(shell):
    described = shell.ip.object_inspect("%snapshot")

    assert described["docstring"] == shell.ok("%snapshot help").shown["text/plain"]


def test_files_of_a_partition_are_those_of_the_real_sample(shell):
    shell.ok("from snapshot_explorer import samples\n%snapshot open {samples.path('events')} as events")

    cell = shell.ok("%snapshot files --partition day=2026-11-04")

    assert set(map(tuple, cell.result["partition"].to_pylist())) == {(("day", "2026-11-04"),)}
    assert f"{cell.result.num_rows} of {shell['events'].current.files().num_rows} files" in cell.shown["text/plain"]
    assert shell.ok("%snapshot files -p day='2026-11-04'").result.num_rows == cell.result.num_rows


def test_a_branch_of_the_real_sample_is_a_table_of_its_own(shell):
    shell.ok("from snapshot_explorer import samples\nplace = samples.path('orders')")
    shell.ok("%snapshot open place")

    assert shell.ok("%snapshot branches").result.to_dict() == [
        {"branch": "dev", "forked_version": 5, "newest_version": 6}
    ]
    assert shell.fails("%snapshot open place --branch dev") == (
        f"orders is already the name of {shell['orders'].path}. Name this one: as orders_2."
    )
    assert shell.ok("%snapshot open place --branch dev as dev").result.current.branch == "dev"
    assert shell.fails("%snapshot open place --branch nope as x")
    assert "the limit is 9" in shell.fails("%snapshot open place as x --limits value_bytes=9")
    assert "limits must be NAME=NUMBER" in shell.fails("%snapshot open place as x --limits 9")
    assert shell.ok("%snapshot open place as x --limits value_bytes=999999").result.format == "paimon"


def test_files_with_plan_says_what_reading_takes(orders):
    frame = orders.ok("%snapshot files 1 --plan").result

    assert frame.title == "Plan of version 1"
    assert frame.to_arrow().equals(orders.ip.user_ns["orders"].at(1).plan().to_arrow())


def test_files_with_a_condition_say_what_it_spares(orders):
    plain = orders.ip.user_ns["orders"].at("latest").plan("id = 1").to_arrow()

    assert orders.ok('%snapshot files --where "id = 1"').result.to_arrow().equals(plain)
    assert orders.ok("p = %snapshot files orders@2 --plan").result is None
    assert orders.ip.user_ns["p"].title == "Plan of version 2"


def test_files_refuse_a_condition_that_does_not_fit(orders):
    assert "Unknown column 'nope'" in orders.fails('%snapshot files --where "nope = 1"')


def test_retention_says_what_would_go_and_returns_it(orders):
    cell = orders.ok("%snapshot retention --keep 0d --keep-last 1")

    assert cell.result.unloadable["version"].to_pylist() == versions(
        orders.ip.user_ns["orders"].retention("0d", keep_last=1).unloadable
    )
    assert ", dry run: what would be deleted" in cell.shown["text/plain"]
    assert "CALL sys.expire_snapshots(" in cell.shown["text/html"]
    assert orders.ok("r = %snapshot retention").result is None


def test_retention_refuses_invalid_input(orders):
    assert orders.fails("%snapshot retention --keep 7").startswith(
        "--keep 7 is not a duration. Did you mean 7d? Use a whole number with"
    )
    assert orders.fails("%snapshot retention --keep-last -1").startswith(
        "--keep-last must be a whole number, 1 or more, got '-1'."
    )
    assert "keep_last must be 1 to 2,147,483,647, got 0" in orders.fails("%snapshot retention --keep-last 0")


def test_usage_counts_the_bytes_and_what_would_be_freed(orders):
    cell = orders.ok("%snapshot du --by version --without 1 --without 2 --to-free 1B --price 0.02 --everything")

    table = orders.ip.user_ns["orders"]
    expected = table.usage("version", without=["1", "2"], to_free=1, price=0.02, everything=True)
    assert cell.result.groups.to_dict() == expected.groups.to_dict()
    assert cell.result.removal.freed_bytes == expected.removal.freed_bytes
    assert "Without version" in cell.shown["text/plain"]
    assert "%snapshot retention" in cell.shown["text/plain"]
    assert "orphaned files" in cell.shown["text/html"]


def test_usage_has_columns_and_prices(orders):
    columns = orders.ok("%snapshot usage --by column").result.groups
    assert sorted(columns["column"].to_pylist()[:2]) == ["id", "name"]
    assert columns["what"].to_pylist() == ["column", "column", "rest of the files"]
    prices = orders.ok("%snapshot usage --price gb_month=0.02,read=0.0004").result.groups.column_names
    assert prices[-2:] == ["cost_per_month", "cost_to_read"]


def test_usage_refuses_invalid_input(orders):
    assert orders.fails("%snapshot usage --by columns").startswith("by must be one of holder, version")
    assert orders.fails("%snapshot usage --price cheap").startswith("--price must be a number, got cheap")
    assert orders.fails("%snapshot usage --to-free much").startswith("to_free must be a number of bytes")


def test_verify_says_of_each_version_whether_it_can_be_loaded(orders):
    cell = orders.ok("%snapshot verify")

    assert set(cell.result.versions["readable"].to_pylist()) == {"yes"}
    assert "that can be loaded: ++" in cell.shown["text/plain"]


def test_inspect_returns_a_system_table(orders):
    frame = orders.ok("%snapshot inspect files 1").result

    assert isinstance(frame, Frame)
    assert frame["record_count"].to_pylist() == [1]
    assert orders.ok("%snapshot inspect orders tags").result["tag_name"].to_pylist() == ["v1"]


def test_inspect_of_rows_says_what_it_reads_and_draws_the_first(orders):
    out = orders.ok("%snapshot inspect audit_log 1")

    assert out.result.column_names[0] == "rowkind"
    assert out.result.num_rows == orders.ip.user_ns["orders"].at(1).count()
    assert out.said[0].startswith("orders version 1 of ")


def test_inspect_of_many_rows_asks_first(orders):
    orders.ok("%config SnapshotMagics.load_row_limit = 1")

    message = orders.fails("%snapshot inspect audit_log")

    assert "more than 1 rows or 1.0 GB is read only when asked for. Add --yes to read them all." in message
    assert orders.ok("%snapshot inspect audit_log --yes").result.num_rows > 1
    assert orders.ok("%snapshot inspect files").result.num_rows > 1


def test_inspect_names_the_nearest(orders):
    assert orders.fails("%snapshot inspect file").startswith("No system table is called 'file'. Did you mean files?")


def test_inspect_without_a_name_lists_the_tables_of_the_format(orders):
    listed = orders.ok("%snapshot inspect").result

    assert listed["name"].to_pylist() == [one.name for one in history_of(orders["orders"]).table_format.inspections]
    assert "of Delta" not in str(listed)


def test_blame_returns_the_states_of_rows(shell):
    shell.ok(f"%snapshot open {samples.path('orders')}")

    cell = shell.ok("%snapshot blame order_id = 42 --states --columns status")

    assert cell.result.schema.names[:3] == ["status", "_from_version", "_to_version"]
    assert "from version" in cell.shown["text/plain"]
    assert "Leave --key out" in shell.fails("%snapshot blame order_id = 42 --states --key order_id")
