"""The overview of a lake: planted incidents are found, and quiet tables are not marked."""

import re
import shutil

import pytest

from snapshot_explorer import errors, open_lake, samples
from snapshot_explorer.lake import processes
from tests.inner.jupyter import text_of
from tests.inner.lake import LakeOverview
from tests.inner.view import sparkline
from tests.support import filesystems, lakes
from tests.support.delta.table_builder import DeltaTable
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("lake")
    lakes.write_lake(root)
    return root


@pytest.fixture(scope="module")
def overview(root):
    return open_lake(root, at=lakes.NOW).overview("1d")


WITHOUT_BOUNDS = {"iceberg.db/doubled_iceberg"}
"""Its builder records no bounds of columns, so that equal files prove nothing."""


def test_each_planted_incident_is_found_and_no_quiet_table_is_marked(overview):
    rows = {row["name"]: row for row in overview.to_dict()}

    reported = {name: lakes.incident_of(row) for name, row in rows.items()}

    planted = {name: name.partition("/")[2].partition("_")[0] for name in rows}
    expected = {name: incident if incident in lakes.INCIDENTS else None for name, incident in planted.items()}
    assert reported == expected | dict.fromkeys(WITHOUT_BOUNDS)
    assert len(rows) == 3 * len(lakes.HISTORIES)


def test_the_most_urgent_tables_come_first_and_a_broken_one_is_a_row_with_its_error(overview):
    states = [row["state"] for row in overview.to_dict()]
    broken = [row for row in overview.to_dict() if "broken" in row["name"]]

    assert states == sorted(states, key=("act", "watch", "unknown", "ok").index)
    assert {row["format"] for row in broken} == {"delta", "iceberg", "paimon"}
    assert all(row["problem"] and row["state"] == "act" for row in broken)


def test_of_very_many_tables_the_most_urgent_are_drawn(overview):
    rows = [row | {"name": f"table {number}"} for number, row in enumerate(overview.to_dict() * 100)]

    many = LakeOverview(rows, name="many", request=overview.request, search="")

    page = many._repr_mimebundle_()["text/html"]
    assert page.count("<tr") == 1 + 500 + 50  # the heading, the tables, and the problems of the first ones
    assert f"500 of {len(rows):,} tables" in page
    assert f"{len(rows) - 500:,} more tables are not drawn. `matching` of the lake" in page
    assert many.num_rows == len(rows)


def test_the_first_sentence_says_what_is_late_unread_or_lost(overview):
    rows = overview.to_dict()
    late = [row for row in rows if row["rhythm"] == "late"]
    late = [row["name"] for row in sorted(late, key=lambda row: row["late_after_seconds"] / row["age_seconds"])]
    unread = [row["name"] for row in rows if row["problem"]]
    first = " ".join(str(overview).splitlines()[:4])

    named = f"{len(late)} late ({', '.join(late[:3])} and {len(late) - 3} more)"
    assert f": of {len(overview)} tables, {named}, {len(unread)} cannot be read ({', '.join(unread)})" in first


def test_the_widgets_own_rules_leave_the_cells_of_the_overview_alone(overview):
    page = overview._repr_mimebundle_()["text/html"]

    names = {name for names in re.findall('class="([^"]*)"', page) for name in names.split()}

    assert {name for name in names if re.search(rf"sx-explorer \\.{name}[ ,{{]", text_of("page.css"))} == set()


def test_iceberg_tables_without_a_version_hint_are_noted_once_and_not_logged(tmp_path, caplog):
    for name in ("a", "b"):
        lakes.write_iceberg(tmp_path / name, lakes.HISTORIES["daily"](0))
        (tmp_path / name / "metadata/version-hint.text").unlink()

    overview = open_lake(tmp_path, at=lakes.NOW).overview()

    assert [note[:24] for note in overview["note"].to_pylist()] == ["It has no version hint, "] * 2
    assert str(overview).count("version hint") == 1
    assert "A note on 2 tables: It has no version hint" in str(overview)
    assert not caplog.records


def test_what_was_not_checked_is_null_and_drawn_so(overview):
    assert overview["unreadable"].null_count == overview["health"].null_count == len(overview)
    assert "Not checked: versions that cannot be loaded; health, which lake.overview(health=True) reads." in repr(
        overview
    )
    assert 'title="late: older than' in overview._repr_mimebundle_()["text/html"]


def test_health_is_read_on_request(root):
    lake = open_lake(root, pattern="hourly_*", at=lakes.NOW)

    assert set(lake.overview(health=True)["health"].to_pylist()) <= {"act", "watch", "ok", "unknown"}


def test_rows_since_a_time_are_those_of_the_commits(root):
    lake = open_lake(root, at=lakes.NOW).matching("hourly_delta")

    (row,) = lake.overview("3h").to_dict()

    steps = [step for step in lakes.HISTORIES["hourly"](0) if step.hours_ago <= 3]
    assert (row["commits"], row["added_rows"]) == (len(steps), sum(step.rows for step in steps))
    assert row["schema_changes"] == row["removed_rows"] == 0


def test_a_lake_of_an_earlier_time_ignores_what_came_later(root):
    lake = open_lake(root, at="2026-11-22 03:00").matching("hourly_paimon")

    (row,) = lake.overview("1d").to_dict()

    assert row["version"] == sum(step.hours_ago >= 3 for step in lakes.HISTORIES["hourly"](0))


def test_a_lake_is_a_collection_of_tables(root):
    lake = open_lake(root, pattern=["late_*", "paimon.db/*"])

    assert len(lake) == len([*lake]) == 2 + len(lakes.HISTORIES)
    assert lake["late_delta"].name == "late_delta"
    assert [table.error is None for table in lake.matching("*/broken_*", "late_delta")] == [True, False]
    assert repr(lake).startswith("Lake(")
    assert "late_delta" in lake._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda root: open_lake(root / "none"), errors.TableNotFoundError, "is missing or empty"),
        (lambda root: open_lake(root, pattern="ordrs"), errors.TableNotFoundError, "No table of .* matches ordrs"),
        (lambda root: open_lake(root)["late_dlta"], errors.TableNotFoundError, "Did you mean delta.db/late_delta?"),
        (lambda root: open_lake(root / "delta.db/late_delta/_delta_log"), errors.TableNotFoundError, "is inside of"),
        (lambda root: open_lake(root).overview("soon"), errors.InvalidArgumentError, "since='soon' is not a time"),
        (lambda root: open_lake(root, at="2999-01-01"), errors.InvalidArgumentError, "is in the future"),
        (lambda root: open_lake(root).matching(3), errors.InvalidArgumentError, "pattern must be text"),
        (lambda root: open_lake("shop", catalog_options={}), errors.InvalidArgumentError, "catalog_options needs"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(root, call, error, message):
    with pytest.raises(error, match=message):
        call(root)


def with_five_commits(filesystem, root):
    """Write a Delta and a Paimon table; return the files that an expiry of their first versions removes."""
    delta, paimon = DeltaTable(filesystem, f"{root}/delta"), PaimonTable(filesystem, f"{root}/paimon")
    for number in range(5):
        delta.append([(number, "x")])
        paimon.commit([(number, "x")])
    delta.checkpoint(3)
    delta.hint(3)
    return [f"{root}/delta/_delta_log/{number:020d}.json" for number in (0, 1, 2)], [
        f"{root}/paimon/snapshot/snapshot-1"
    ]


def test_versions_that_expire_while_their_table_is_read_are_no_problem_of_it(register, memory_root):
    filesystem, root = memory_root
    gone = with_five_commits(filesystem, root)

    class Expiring(filesystems.counting("expiring")):
        def cat_file(self, path, **named):
            for files in gone:
                if any(one.endswith(path.lstrip("/")) for one in files):
                    filesystem.rm([one for one in files if filesystem.exists(one)])
            return super().cat_file(path, **named)

    register(Expiring)
    overview = open_lake(f"expiring://{root}").overview()

    assert not any(filesystem.exists(one) for files in gone for one in files)
    assert overview["version"].to_pylist() == [5, 5]
    assert overview["problem"].to_pylist() == [None, None]


def test_a_sparkline_has_a_bar_per_commit():
    assert sparkline([0, 5, None, 10]) == "▁▄·█"
    assert sparkline([]) == ""


def test_many_tables_are_read_by_other_processes_with_the_same_rows_and_log(root, overview, monkeypatch, caplog):
    monkeypatch.setattr(processes, "MIN_TABLES", 1)
    monkeypatch.setattr(processes.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    lake = open_lake(root, at=lakes.NOW)

    with caplog.at_level("DEBUG", "snapshot_explorer"):
        rows = lake.overview("1d")

    assert rows.to_arrow().equals(overview.to_arrow())
    assert not any(table._table for table in lake)
    assert {record.name for record in caplog.records} >= {"snapshot_explorer.storage"}


def test_tables_that_no_other_process_can_read_are_read_in_this_one(root, overview, monkeypatch):
    monkeypatch.setattr(processes, "MIN_TABLES", 1)
    monkeypatch.setattr(processes.sys, "executable", "/bin/false")

    assert open_lake(root, at=lakes.NOW).overview("1d").to_arrow().equals(overview.to_arrow())


def test_tables_are_shown_as_they_are_read(root, overview, monkeypatch):
    monkeypatch.setattr("snapshot_explorer.lake.lake.SHOW_SECONDS", -1)
    shown = []

    open_lake(root, at=lakes.NOW).overview("1d", show=shown.append)

    assert [len(part) for part in shown] == [*range(1, len(overview) + 1)]
    assert shown[0].search == f"1 of {len(overview)} tables read"


def test_a_sum_is_unknown_where_a_commit_does_not_say_how_many_rows_it_changed(tmp_path):
    shutil.copytree(samples.path("shipments"), tmp_path / "shipments")

    (row,) = open_lake(tmp_path, at="2026-11-12").overview("3d").to_dict()

    assert (row["added_rows"], row["removed_rows"]) == (None, None)
    assert row["commits"] == 4


def test_states_have_a_color_and_recent_commits_a_picture_with_the_rhythm(overview):
    page = overview._repr_mimebundle_()["text/html"]
    late = page[page.index("late_delta</td>") :]

    assert page.count('style="--sx-kind:#D55E00">act</td>') == overview["state"].to_pylist().count("act")
    assert page.count("<svg") == min(len(overview), page.count("<tr>"))
    picture = late[late.index("<svg") : late.index("</svg>")]
    assert (
        f"<title>{sparkline(overview.to_dict()[overview['name'].to_pylist().index('delta.db/late_delta')]['recent_rows'])}</title>"
        in picture
    )
    assert 'stroke="#D55E00" stroke-width="6"' in picture  # late: the time since the newest commit is red
    assert "stroke-dasharray" in picture
