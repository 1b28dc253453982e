"""The magics over a Delta table: the same commands, and what is Delta's own."""

import re

import pandas as pd
import pytest

from snapshot_explorer import explore, samples
from tests.inner.jupyter import OpenTables, suggestions
from tests.support.delta.table_builder import DeltaTable
from tests.support.scenarios import DeltaScenario, played


@pytest.fixture
def payments(shell, memory_root):
    """The shell, with a Delta table opened as payments."""
    shell.ok(f"%snapshot open {played(DeltaScenario(*memory_root)).url} as payments --format delta")
    return shell


def offered(shell, line, name="payments"):
    tables = OpenTables(shell.ip.user_ns)
    tables.add(name, shell[name])
    return dict(suggestions(line, tables, {}).items)


def test_a_table_is_opened_listed_and_shown(payments):
    assert payments.ok("%snapshot open").result["format"].to_pylist() == ["delta"]
    assert payments.ok("%snapshot log -n 2").result["version"].to_pylist() == [4, 3]
    assert payments.ok("%snapshot log --kind compact").result["version"].to_pylist() == [4]
    assert "overwrite" in payments.ok("%snapshot show 3").shown["text/plain"]
    assert "long" in payments.ok("%snapshot show --schema").shown["text/plain"]
    assert payments.ok("%snapshot manifests 2").result["list"].to_pylist() == ["delta"] * 3
    assert payments.ok("%snapshot manifests 2 --entries 2.json").result["change"].to_pylist()
    assert payments.ok("%snapshot files earliest").result.num_rows == 1


def test_rows_are_loaded_at_a_version_and_at_a_time(payments):
    cell = payments.ok("%snapshot load 1 --columns id")

    assert isinstance(cell.result, pd.DataFrame)
    assert sorted(cell.result["id"]) == [1, 2, 3]
    assert cell.said[0].startswith("payments version 1 of 2026-01-01 00:02:00.000Z: reading 3 rows in 2 files, ")
    assert sorted(payments.ok("%snapshot load @2026-01-01T00:03:30Z").result["id"]) == [1, 2, 3, 4]


def test_a_version_of_which_nothing_tells_the_time_is_loaded_too(shell, memory_root):
    table = DeltaTable(*memory_root)
    table.commit(table.data("a.parquet", [(1, "a")]), info=False)
    shell.ok(f"%snapshot open {table.url} as untimed")

    cell = shell.ok("%snapshot load latest")

    assert len(cell.result) == 1
    assert cell.said[0].startswith("untimed version 1: reading 1 row ")
    shell.ok("%snapshot log")
    assert offered(shell, "%snapshot show ", "untimed")["1"] == "append"


def test_history_and_detail_are_inspected(payments):
    assert payments.ok("%snapshot inspect history").result["operation"].to_pylist()[:2] == ["OPTIMIZE", "WRITE"]
    assert payments.ok("%snapshot inspect detail 1").result["numFiles"].to_pylist() == [2]
    assert payments.fails("%snapshot inspect history 1").startswith(
        "history describes the table as a whole, not one version. Leave 1 out"
    )
    assert payments.fails("%snapshot inspect files").startswith("No metadata table is called 'files'. ")


def test_the_log_shows_predicates_of_operations(shell):
    shell.ok(f"%snapshot open {samples.path('payments')} as payments")

    shown = shell.ok("%snapshot log 17..18").shown["text/plain"]

    assert re.search(r"delete +DELETE where customer = Hana ", shown)


def test_what_the_open_table_offers_is_completed(payments):
    found = offered(payments, "%snapshot inspect ")

    assert found["history"] == "every commit, as DESCRIBE HISTORY shows it, newest first"
    assert {"detail", "properties", "transactions", "domains"} <= set(found)
    assert "file_key_ranges" not in found


def test_versions_are_completed_with_kind_and_time(payments):
    payments.ok("%snapshot log")

    assert offered(payments, "%snapshot show ")["3"] == "overwrite 2026-01-01 00:04:00.000Z"


def test_there_are_no_tags_and_no_branches(payments):
    assert payments.ok("%snapshot tags").result.num_rows == 0
    assert payments.ok("%snapshot branches").result.num_rows == 0
    assert "no tags" in payments.fails("%snapshot show tag:v1")


def test_a_version_that_is_not_there_is_one_readable_line(payments):
    line = payments.fails("%snapshot show 99")

    assert line == "Version 99 does not exist. Available versions: 0 to 4. Try 4, latest or @2h."


def test_the_help_tells_of_both_formats(shell):
    manual = repr(shell.ok("%snapshot inspect --help").result)

    assert "DESCRIBE HISTORY" in manual
    assert "orders$files" in manual
    assert "paimon, delta, iceberg, hudi or ducklake" in repr(shell.ok("%snapshot open --help").result)
    assert "Paimon's own" not in repr(shell.ok("%snapshot help").result)


def seconds(times):
    return [time.as_py().timestamp() // 1 for time in times]


def test_a_table_that_was_copied_says_that_its_commit_times_are_those_of_the_copy(shell, tmp_path):
    table = DeltaTable(None, tmp_path / "table")
    table.commit(table.data("a.parquet", [(1, "a")]), info={"timestamp": 1_766_000_000_000})
    table.commit(info={"timestamp": 1_765_000_000_000})

    shown = shell.ok(f"%snapshot open {table.url} as copied").shown["text/plain"]
    said = [shell.ok("%snapshot log").said for _ in range(2)]

    (note,) = said[0]
    assert note.startswith(
        "Commit times are the times of the log's files. The writer of version 2 recorded 2025-12-06 05:46:40"
    )
    assert "25 days apart: the table was probably copied. Refs by time follow the files, as in Delta; " in note
    assert said[1] == []
    assert "the table was probably copied" in " ".join(shown.split())
    assert re.search("\nformat version +reader 1, writer 2\n", shown)
    files, recorded = (shell.ok(f"%snapshot log {flag}").result for flag in ("", "--recorded-times"))
    assert files["version"].to_pylist() == [2, 1, 0]
    assert recorded["version"].to_pylist() == [0, 1, 2]
    times = dict(zip(recorded["version"].to_pylist(), recorded["committed_at"].cast("int64").to_pylist(), strict=True))
    assert (times[1], times[2]) == (1_766_000_000_000, 1_765_000_000_000)
    explorer = explore(shell["copied"], name="copied").wait()
    explorer.state.recorded_times = True
    explorer.wait()
    assert seconds(explorer.state.shown["committed_at"])[:2] == [1_765_000_000, 1_766_000_000]
    assert "2025-12-06 05:46:40" in str(explorer)
    assert explorer.state.history_call == "history(recorded_times=True)"
    assert explorer.page["isCopied"]
    explorer.state.reset_filters()
    assert seconds(explorer.state.shown["committed_at"])[:2] == seconds(files["committed_at"])[:2]
    explorer.close()


def test_a_table_with_times_of_its_own_says_nothing_of_a_copy(shell, tmp_path):
    table = DeltaTable(None, tmp_path / "table")
    table.commit(info={"timestamp": 1_766_000_000_000, "inCommitTimestamp": 1_766_000_000_000})
    shell.ok(f"%snapshot open {table.url} as copied")

    assert shell.ok("%snapshot log").said == []


def test_a_table_that_was_not_copied_says_nothing_of_it(payments):
    assert payments.ok("%snapshot log").said == []
