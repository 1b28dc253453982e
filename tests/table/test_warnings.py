"""A warning about a table is logged once as long as the table is open, whatever is asked of it."""

import contextlib
import json
import logging
from collections import Counter

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.delta.table_builder import DeltaTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable
from tests.support.public_calls import arguments_for, calls


def iceberg_sizes(root):
    """Return a table whose manifest lists record other sizes of the manifests."""
    table = IcebergTable(*root)
    record = table.manifest
    table.manifest = lambda *args, **more: (
        (found := record(*args, **more)) | {"manifest_length": found["manifest_length"] + 7}
    )
    for number in range(4):
        table.commit([(number, "a")])
    return f"memory://{table.root}", "bytes, but its manifest list records"


def paimon_deletes(root):
    """Return a table whose commit removes a file that none added."""
    table = PaimonTable(*root)
    table.commit([(0, "a")])
    table.live["nowhere.parquet"] = 1
    table.commit([(1, "b")], removed=["nowhere.parquet"])
    table.commit([(2, "c")])
    return f"memory://{table.root}", "files that were never added"


def delta_checksum(root):
    """Return a table whose checksum file contradicts the log."""
    table = DeltaTable(*root)
    for number in range(3):
        table.append([(number, "a")])
    table.checksum(numFiles=17)
    return table.url, "17"


def delta_checkpoint(root):
    """Return a table with a checkpoint that is damaged, whose commits are all there."""
    table = DeltaTable(*root)
    for number in range(3):
        table.append([(number, "a")])
    table.checkpoint()
    table.append([(3, "a")])
    (name,) = (path for path in table.filesystem.find(table.root) if ".checkpoint.parquet" in path)
    content = table.filesystem.cat_file(name)
    table.filesystem.pipe_file(name, content[: len(content) // 2])
    return table.url, "Failed to create a snapshot from log segment"


def delta_statistics(root):
    """Return a table with statistics that are not JSON."""
    table = DeltaTable(*root)
    for number in range(3):
        action = table.data(f"{number}.parquet", [(number, "a")])
        action["add"]["stats"] = "{" + json.dumps(action["add"]["stats"])
        table.commit(action)
    return table.url, None


TABLES = (iceberg_sizes, paimon_deletes, delta_checksum, delta_checkpoint, delta_statistics)


def warnings_of(caplog):
    return Counter(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


CALLS = (
    *("history", "history stat", "lifetimes", "health over", "readability", "tags", "branches", "to_arrow", "count"),
    *("files", "files with statistics", "manifests", "plan where", "commit", "entries", "changes", "diff_rows"),
    *("row_changes", "health", "compare", "profile", "doctor", "sql"),
)


def use(url):
    """Make calls of a table, each twice."""
    table = open_table(url)
    questions = calls(arguments_for(table))
    for question in (questions[name] for name in CALLS if name in questions):
        for _ in range(2):
            with contextlib.suppress(SnapshotExplorerError):
                repr(question(table))
    for version in table.versions():
        table.at(version).to_arrow()
    return table


@pytest.mark.parametrize("build", TABLES)
def test_a_warning_is_logged_once_for_an_open_table(memory_root, caplog, build):
    url, part = build(memory_root)
    use(url)

    warnings = warnings_of(caplog)

    assert [message for message, times in warnings.items() if times > 1] == []
    assert part is None or any(part in message for message in warnings), warnings


def test_each_table_has_its_own_warnings(memory_root, caplog):
    filesystem, root = memory_root
    for name in ("a", "b"):
        url, part = paimon_deletes((filesystem, f"{root}/{name}"))
        table = open_table(url)
        for _ in range(3):
            table.current.to_arrow()

    assert [times for message, times in warnings_of(caplog).items() if part in message] == [2]


def test_a_tag_that_cannot_be_read_is_a_warning_once(memory_root, caplog):
    table = PaimonTable(*memory_root)
    for number in range(3):
        table.commit([(number, "a")])
    table.tag("good", 1)
    table.tag("bad", 2)
    table.write("tag/tag-bad", b"{")
    opened = open_table(f"memory://{table.root}")

    for _ in range(3):
        opened.history()
        opened.branches()
        opened.lifetimes()
        opened.health()

    assert [times for message, times in warnings_of(caplog).items() if "tag-bad" in message] == [1]
