"""What commits did to the rows of a table, as a sentence and as bars."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.core.frames import COMMITS
from tests.inner.view import GRAY, KIND_COLORS, MINUS, commit_bars, commit_bars_of, row_change_text, timeline
from tests.support.png import picture_points


def commit(  # noqa: PLR0913 - the counts of a commit
    inserted=None, updated=None, deleted=None, rewritten=None, *, source=None, added=None, removed=None, files=1
):
    return {
        "kind": "update",
        "rows_inserted": inserted,
        "rows_updated": updated,
        "rows_deleted": deleted,
        "rows_rewritten": rewritten,
        "rows_source": source,
        "added_rows": added,
        "removed_rows": removed,
        "added_files": files,
        "removed_files": 1,
    }


DELETE = commit(0, 0, 10, 690, source="writer", added=690, removed=700)
COMPACTION = commit(0, 0, 0, 100_000, source="metadata", added=100_000, removed=100_000, files=3) | {"kind": "compact"}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (DELETE, "-10 rows (690 rewritten in 1 file)"),
        (commit(5, 0, 0, 0), "+5 rows"),
        (commit(1, 0, 0, 0), "+1 row"),
        (commit(0, 1, 0, 0), "1 row updated"),
        (commit(0, 2_000, 0, 3, files=2), "2,000 rows updated (3 rewritten in 2 files)"),
        (commit(7, 3, 2, 690, files=2), "+7 -2 rows, 3 updated (690 rewritten)"),
        (commit(1, 0, 1, 0), "+1 -1 rows"),
        (COMPACTION, "no row changed (100,000 rewritten in 3 files)"),
        (commit(0, 0, 0, 0), "no row changed"),
        (commit(0, 0, 4), "-4 rows"),
        (commit(source="net", added=690, removed=700), "-10 rows net (at most 690 rewritten)"),
        (commit(source="net", added=0, removed=0), "0 rows net"),
        (
            commit(source="contradicted", added=1, removed=2),
            "rows not counted: the writer's counts and the files disagree",
        ),
        (commit(added=53, removed=41), "rows not counted (53 written)"),
        (commit(), "rows not counted"),
    ],
)
def test_a_commit_is_said_in_rows_of_the_table(row, text):
    assert row_change_text(row) == text.replace("-", MINUS)


def commits(*rows):
    plain_facts = {
        "tags": [],
        "details": "{}",
        "added_bytes": 1,
        "removed_bytes": 0,
        "total_rows": 9,
        "readable": "yes",
    }
    return pa.Table.from_pylist([plain_facts | row | {"version": at} for at, row in enumerate(rows)], COMMITS)


def test_bars_are_rows_of_the_table_and_not_of_its_files():
    bars = commit_bars_of(commits(DELETE, commit(7, 3, 2, 690, added=700, removed=695)), "rows")

    assert (bars.up.tolist(), bars.down.tolist()) == ([0, 10], [10, 5])
    assert not bars.unknown.any()


def test_files_keep_their_own_bars():
    bars = commit_bars_of(commits(DELETE), "files")

    assert (bars.up.tolist(), bars.down.tolist()) == ([1], [1])


def test_rows_that_are_not_counted_have_their_net_change_or_rows_in_files_and_a_mark():
    bars = commit_bars_of(commits(commit(source="net", added=690, removed=700), commit(added=5, removed=4)), "rows")

    assert (bars.up.tolist(), bars.down.tolist()) == ([0, 5], [10, 4])
    assert bars.unknown.all()


def test_a_compaction_is_quiet_unless_it_changes_rows():
    deleting = commit(0, 0, 3, 0, source="metadata", added=0, removed=3) | {"kind": "compact"}

    assert commit_bars_of(commits(COMPACTION, deleting, DELETE), "rows").quiet.tolist() == [True, False, False]


def test_a_rewrite_is_thin_and_gray_and_sets_no_scale():
    rows = commits(DELETE, COMPACTION)
    bars = {bar.name: bar for bar in timeline(rows, y="rows", title="History").figure.data if bar.type == "bar"}
    points = picture_points(commit_bars(rows, "rows", None, None))
    thin, wide = (np.argwhere(points == int(color[1:], 16)) for color in (GRAY, KIND_COLORS["update"]))
    thin = thin[thin[:, 0] < 240]  # above the line of totals
    columns = np.bincount(thin[thin[:, 1] > 120][:, 1])

    assert bars["~ compact"].width < 0.5
    assert bars["~ compact"].marker.color == GRAY
    assert max(abs(y) for bar in bars.values() for y in bar.y) == 10
    assert (columns > 100).sum() == 6
    assert wide[:, 1].max() - wide[:, 1].min() > 100


def test_the_log_shows_rows_of_the_table():
    shown = repr(open_table(samples.path("payments")).history())

    assert f"{MINUS}11 rows" in shown
    assert f"+2 {MINUS}1 rows, 3 updated" in shown
    assert "no row changed (114 rewritten in 1 file)" in shown


def test_rows_are_read_where_metadata_does_not_count_them_and_then_known():
    table = open_table(samples.path("orders"))
    before = table.history(limit=2).to_dict()

    counted = table.history(limit=2, exact=True).to_dict()

    names = ("rows_inserted", "rows_updated", "rows_deleted", "rows_source")
    assert [tuple(row[name] for name in names) for row in before] == [(None,) * 4] * 2
    assert [tuple(row[name] for name in names) for row in counted] == [(0, 0, 0, "rows"), (0, 0, 6, "rows")]
    assert table.history(limit=2).to_dict() == counted


def test_the_first_version_of_a_table_inserts_all_of_its_rows():
    table = open_table(samples.path("orders"))

    assert table.history("1..1", exact=True).to_dict()[0]["rows_inserted"] == table.at(1).count()


def test_commits_whose_rows_cannot_be_read_stay_uncounted_with_the_reason():
    table = open_table(Path(__file__).parents[1] / "data" / "paimon" / "expired")
    counted = table.history(exact=True)

    assert [row["version"] for row in counted.to_dict() if row["rows_inserted"] is None] == [8, 7, 6, 5, 4, 3, 2]
    assert "The rows of 7 commits cannot be counted, such as those of version 8: Version 7 has expired" in repr(counted)
