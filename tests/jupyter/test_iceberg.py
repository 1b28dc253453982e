"""The magics over an Iceberg table, and what is Iceberg's own."""

import shutil
from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter

from snapshot_explorer import samples


@pytest.fixture(scope="module")
def path():
    return Path(samples.path("shipments"))


def test_a_table_that_was_moved_is_opened_listed_and_loaded(shell, path):
    shell.ok(f"%snapshot open {path} as shipments")

    assert shell.ok("%snapshot open").result["format"].to_pylist() == ["iceberg"]
    assert shell.ok("%snapshot log -n 3").result["version"].to_pylist() == [16, 15, 14]
    assert shell.ok("%snapshot branches").result["branch"].to_pylist() == ["reweigh"]
    assert len(shell.ok("%snapshot load tag:first-days").result) == 46
    then = shell.ok("%snapshot show @2026-11-07T12:00:00Z").result
    assert then.label == "version 9 of branch 1226473735626099650"  # main left it later, by a rollback


def test_a_branch_is_compared_loaded_and_queried_before_it_is_published(shell, path):
    shell.ok(f"%snapshot open {path} as shipments")

    comparison = shell.ok("%snapshot diff main..branch:reweigh").result
    assert (comparison.a, comparison.b) == (16, 7)
    rows = shell.ok("%snapshot diff 5..branch:reweigh --rows").result
    loaded = shell.ok("%snapshot load branch:reweigh")
    assert "shipments version 7 of branch reweigh, of 2026-11-06 09:05:06.280Z: reading" in loaded.said[0]
    before = shell.ok("%snapshot load shipments@branch:reweigh~2").result
    assert len(loaded.result) == len(before) - len(rows.before) + len(rows.after)
    assert len(shell.ok("%snapshot select * from shipments version as of 'reweigh'").result) == len(loaded.result)
    assert shell.ok("%snapshot show branch:reweigh").result.version == 7
    assert shell.ok("%snapshot log ..branch:reweigh").result["version"].to_pylist()[0] == 7
    assert "The table has no branch 'reweight'" in str(shell.fails("%snapshot show branch:reweight"))


def test_a_snapshot_of_a_branch_in_a_variable_is_that_of_the_branch(shell, path):
    shell.ok(f"%snapshot open {path} as shipments")
    shell.ok("snap = shipments.at('branch:reweigh')")

    assert shell.ok("%snapshot show snap").result.label == "version 7 of branch reweigh"
    assert shell.ok("%snapshot show snap~1").result.label == "version 6 of branch reweigh"
    assert "to 7 of branch reweigh" in repr(shell.ok("%snapshot diff 16..snap").result)
    shell.ok(f"%snapshot open {path} --branch reweigh as reweigh")
    assert shell.ok("%snapshot show snap").result.label == "version 7 of branch reweigh"
    shell.ok("taken = shipments.at(16)")
    assert shell.ok("%snapshot show reweigh@taken").result.label == "version 16"


def test_branches_are_completed(shell, path):
    shell.ok(f"%snapshot open {path} as shipments")

    for line in ("%snapshot load ", "%snapshot diff main.."):
        with provisionalcompleter():
            found = shell.ip.Completer.completions(f"{line}branch:", len(f"{line}branch:"))
            texts = [(item.text, item.type) for item in found]
        assert [text for text, kind in texts if kind == "branch"] == ["branch:main", "branch:reweigh"]


def test_a_metadata_file_opens_the_table_as_it_was_then(shell, path):
    file = min(path.glob("metadata/*.json"))

    shell.ok(f"%snapshot open {file} as before")

    assert shell["before"].current.version < 16


def test_folders_that_lie_elsewhere_are_named_by_a_variable(shell, path, tmp_path):
    shutil.copytree(path, tmp_path / "shipments")
    (tmp_path / "shipments" / "data").rename(tmp_path / "elsewhere")
    shell.ip.user_ns["moved"] = {"s3a://lake/shop/shipments/data": str(tmp_path / "elsewhere")}

    shell.ok(f"%snapshot open {tmp_path / 'shipments'} as shipments --relocate moved")

    assert len(shell.ok("%snapshot load").result) == 118
    assert "--relocate must be a variable" in str(shell.fails(f"%snapshot open {path} as other --relocate nothing"))
