"""A metadata file of an old version is missing, damaged or denied: every answer covers the others, and names it."""

import re
import shutil
from dataclasses import dataclass

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.table import Table
from tests.support.fault_search import tables
from tests.support.faults import registered
from tests.support.old_metadata_search import Damage, DamagedHistory
from tests.support.public_calls import opened

CASES = {
    "iceberg manifest list": ("iceberg/v2_cow", "metadata/snap-7229117937617312293-", "removed"),
    "iceberg manifest": ("iceberg/v2_cow", "metadata/0e5e5f42-.*-m0.avro", "denied"),
    "iceberg first manifest list": ("iceberg/v2_cow", "metadata/snap-1398021128885516776-", "halved"),
    "paimon snapshot": ("paimon/evolution_append", "snapshot/snapshot-2$", "emptied"),
    "paimon delta list": ("paimon/evolution_append", "manifest/manifest-list-4b5604ea-.*-1$", "removed"),
    "paimon base list": ("paimon/evolution_append", "manifest/manifest-list-4b5604ea-.*-0$", "reversed"),
    "delta commit": ("delta/checkpoint_parts", "_delta_log/0{19}2.json", "reversed"),
    "delta first commit": ("delta/checkpoint_parts", "_delta_log/0{20}.json", "denied"),
    "hudi commit": ("hudi/v9_cow_basic", "timeline/20261123033829855_.*commit", "halved"),
    "hudi commit after a deleted archive": ("hudi/archive_deleted", "timeline/20261123034308884_.*commit", "halved"),
    "hudi archive": ("hudi/v6_cow_archived", "archived/.commits_.archive.3_", "removed"),
}
"""A table, a metadata file of an old version, and what happens to it. `old_metadata_search` tries all of each."""


@dataclass(frozen=True)
class Damaged:
    """A table with a damaged metadata file, and what is true of it."""

    history: DamagedHistory
    table: Table
    gone: frozenset
    """The versions that are listed and cannot be read."""


@pytest.fixture(scope="module")
def histories():
    with registered():
        yield {name: DamagedHistory(name, tables()[name]) for name, *_ in CASES.values()}


@pytest.fixture(scope="module")
def unreadable():
    """The versions that cannot be read, by case, once they were tried."""
    return {}


@pytest.fixture(params=CASES)
def damaged(request, histories, unreadable):
    name, pattern, kind = CASES[request.param]
    history = histories[name]
    path = next(damage.path for damage in history.damages() if re.search(pattern, damage.path))
    with history.damaged(Damage(kind, path)):
        if request.param not in unreadable:
            unreadable[request.param] = frozenset(history.unreadable() or ())
        yield Damaged(history, opened(history.store), unreadable[request.param])


def differences(damaged, *calls):
    """Return what the search finds of these calls; nothing where the answers are as they must be."""
    found = []
    for call in calls:
        if isinstance(damaged.history.truth(call), SnapshotExplorerError):
            continue  # the intact table refuses it too
        answer = damaged.history.calls[call].make(damaged.table)
        found.append(damaged.history.difference(call, answer))
    return [one for one in found if one]


def test_a_version_that_cannot_be_read_is_one_of_several_and_its_request_is_our_error(damaged):
    assert damaged.gone < set(damaged.history.versions)
    for version in damaged.gone:
        with pytest.raises(SnapshotExplorerError):
            damaged.table.at(version).files()


def test_lifetimes_and_what_is_computed_from_them_cover_the_others(damaged):
    assert not differences(damaged, "lifetimes", "health_history", "profile_over", "anomalies")


def test_the_history_and_the_changes_cover_the_others(damaged):
    assert not differences(damaged, "history", "file_changes")


def test_the_newest_versions_are_those_of_the_intact_table(damaged):
    names = ["files", "file_changes of the newest", "blame of the newest"]

    assert not differences(damaged, *names)
    assert damaged.table.current.files().num_rows


def test_a_verification_is_not_ok_and_readability_says_which_versions_cannot_be_loaded(damaged):
    verified, states = damaged.table.verify(), damaged.table.verify().versions.to_dict()

    assert not verified.is_ok
    assert (
        "could not be checked" in verified.verdict or "not checked" in verified.verdict or "problem" in verified.verdict
    )
    by_version = {row["version"]: row for row in states}
    assert all(by_version[version]["readable"] != "yes" for version in damaged.gone)
    assert all(by_version[version]["reason"] for version in damaged.gone)
    assert not differences(damaged, "verify", "readability")


def test_a_trace_proves_nothing_and_names_the_versions(damaged):
    columns = damaged.table.at("latest").schema.columns
    trace = damaged.table.trace(f'"{columns[0].name}" is null and "{columns[0].name}" is not null')

    assert not trace.is_complete
    assert "No version returns a matching row, and no data file" not in trace.verdict
    rows = {row["version"]: row for row in trace.versions.to_dict()}
    assert all(rows[version]["reason"] for version in damaged.gone if rows[version]["rows"] is None)
    assert not differences(damaged, "trace")


def test_no_file_is_safe_to_delete_that_an_unread_version_may_need(damaged):
    orphans = damaged.table.orphans("0d").files.to_dict()

    assert not any(row["is_orphan"] for row in orphans)
    assert not differences(damaged, "orphans", "retention", "retention of few")


def test_retention_says_that_unread_versions_cannot_be_loaded(damaged):
    outcomes = {row["version"]: row for row in damaged.table.retention().versions.to_dict()}

    unread = damaged.table.lifetimes().unread
    assert all(outcomes[version]["outcome"] == "gone" for version in unread)
    assert all("cannot be read" in outcomes[version]["because"] for version in unread)


def test_a_blame_shows_changes_of_unread_versions_with_the_next_one(damaged):
    assert not differences(damaged, "blame")


def test_a_bisection_passes_over_them_and_says_so(damaged):
    assert not differences(damaged, "bisect", "bisect metadata")


def test_health_and_check_report_them(damaged):
    assert not differences(damaged, "doctor", "check", "compare")


@pytest.mark.parametrize("name", CASES)
def test_answers_are_whole_again_when_the_file_can_be_read(histories, name):
    folder, pattern, kind = CASES[name]
    history = histories[folder]
    path = next(damage.path for damage in history.damages() if re.search(pattern, damage.path))
    calls = ["file_changes", "lifetimes", "readability", "verify"]

    with history.damaged(Damage(kind, path)):
        table = opened(history.store)
        lacking = [history.calls[call].make(table)[0] for call in calls]
    whole = [history.calls[call].make(table)[0] for call in calls]

    assert lacking != whole
    assert whole == [history.truth(call)[0] for call in calls]


def test_a_local_table_answers_in_the_same_way(tmp_path):
    folder = shutil.copytree(tables()["iceberg/v2_cow"], tmp_path / "t")
    next(folder.glob("metadata/snap-7229117937617312293-*")).unlink()
    table = open_table(folder)

    known = table.lifetimes()

    assert (known.versions, list(known.unread)) == ((1, 3, 4, 5, 6, 7), [2])
    assert not table.verify().is_ok
    assert table.blame(between="6..7").notes == ()
    assert "version 2 cannot be read" in str(table.retention()).lower()


def test_where_no_version_can_be_read_the_error_is_that_of_the_newest_one(histories):
    history = histories["paimon/evolution_append"]
    lists = [path for path in history.store.files if "manifest/manifest-list" in path]

    with history.store.without(lists):
        table = opened(history.store)
        with pytest.raises(SnapshotExplorerError, match="manifest-list-"):
            table.lifetimes()


def test_a_version_whose_schema_is_damaged_cannot_be_loaded(histories):
    history = histories["paimon/evolution_append"]

    with history.damaged(Damage("halved", "schema/schema-2")):
        table = opened(history.store)
        rows = {row["version"]: row for row in table.verify().versions.to_dict()}

        assert (rows[2]["readable"], rows[4]["readable"]) == ("no", "yes")
        assert "schema/schema-2 is not a readable Paimon schema" in rows[2]["reason"]
        assert not table.verify().is_ok


def test_a_time_near_a_version_that_cannot_be_read_is_refused_and_any_other_is_found(histories):
    history = histories["paimon/evolution_append"]
    times = opened(history.store).history().to_arrow()["committed_at"].to_pylist()[::-1]

    with history.damaged(Damage("emptied", "snapshot/snapshot-2")):
        table = opened(history.store)

        assert [table.at(times[index]).version for index in (2, 3)] == [3, 4]
        with pytest.raises(SnapshotNotFoundError, match="because version 2 may have been committed before or after"):
            table.at(times[1])
