"""The overview of a lake adds up commits only where it knows all of them, and names those that it does not know."""

import shutil

import pytest

from snapshot_explorer import open_lake, open_table
from tests.support.fault_search import tables

CASES = {
    "a missing commit": ("samples/payments", "_delta_log/00000000000000000020.json", None, "20"),
    "another missing commit": ("samples/payments", "_delta_log/00000000000000000012.json", None, "12"),
    "an empty commit": ("samples/payments", "_delta_log/00000000000000000015.json", b"", "15"),
    "a page in place of a commit": ("samples/payments", "_delta_log/00000000000000000018.json", b"<html>", "18"),
    "a missing commit of a table with parts": (
        "delta/checkpoint_parts",
        "_delta_log/0000000000000000000[12].json",
        None,
        "",
    ),
    "a missing snapshot": ("paimon/evolution_append", "snapshot/snapshot-2", None, "2"),
    "a damaged snapshot": ("paimon/evolution_append", "snapshot/snapshot-3", b"{", "3"),
    "an empty snapshot": ("paimon/dv_append", "snapshot/snapshot-2", b"", "2"),
    "a damaged commit of Hudi": (
        "hudi/v9_cow_basic",
        ".hoodie/timeline/20261123033829855_*.commit",
        b"Obj",
        "20261123033829855",
    ),
    "an empty commit of Hudi": (
        "hudi/v9_cow_basic",
        ".hoodie/timeline/20261123033829855_*.commit",
        b"",
        "20261123033829855",
    ),
    "a damaged commit of Hudi's older layout": ("hudi/v6_mor_compaction_run", ".hoodie/*.deltacommit", b"{", ""),
}
"""A table, a file of a commit, its new content (None: it is removed), and the version."""


def overview(folder):
    (row,) = open_lake(folder).overview(since="3650d").to_arrow().to_pylist()
    return row


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_added_up_without_a_commit(tmp_path, case):
    name, pattern, content, version = CASES[case]
    table = shutil.copytree(tables()[name], tmp_path / "lake" / "t")
    whole = overview(tmp_path / "lake")
    path = min(table.glob(pattern))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)

    row = overview(tmp_path / "lake")

    assert whole["commits"] > 1
    assert (row["commits"], row["added_rows"], row["added_bytes"]) == (None, None, None)
    assert version in row["note"]
    assert "missing" in row["note"] or "cannot be read" in row["note"]


def test_a_commit_from_before_the_time_may_be_missing(tmp_path):
    table = shutil.copytree(tables()["samples/payments"], tmp_path / "t")
    newest = max(open_table(table).history().to_arrow()["committed_at"].to_pylist())
    (table / "_delta_log" / "00000000000000000001.json").unlink()

    (row,) = open_lake(tmp_path).overview(since=newest.strftime("%Y-%m-%d %H:%M")).to_arrow().to_pylist()

    assert row["commits"] >= 1
    assert row["note"] is None
