"""A version that is lost between others: every answer over a range says so, and blames no other version for it."""

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import fsspec
import pytest

from snapshot_explorer import explore, open_table, samples
from snapshot_explorer.errors import SnapshotNotFoundError
from snapshot_explorer.table import Table
from tests.inner.core import Gap, Listing, alternatives_text, gaps_text
from tests.support.paimon.table_builder import PaimonTable
from tests.support.row_histories import KINDS, Player


@dataclass(frozen=True)
class Gapped:
    """A table of nine versions that each insert a row, without the fifth; its first commit inserts two."""

    table: Table
    before: int
    """The fourth version."""
    after: int
    """The sixth version."""
    missing: str
    """What is missing, in words."""
    either: str
    """The versions that may have made a change of the missing one."""


@pytest.fixture(params=sorted(KINDS))
def gapped(request):
    filesystem, root = fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"
    player = Player(KINDS[request.param](filesystem, root))
    for number in range(9):
        player.insert(["ann", "bob"] if not number else ["cy" if number == 4 else "ann"])
        if number == 5 and request.param == "delta":
            player.table.table.checkpoint()
    before, lost, after = player.model.versions[3:6]
    missing, either = f"version {lost} is missing", f"{lost} or {after}"
    if request.param == "delta":
        filesystem.rm_file(f"{root}/_delta_log/{lost:020}.json")
    elif request.param == "paimon":
        filesystem.rm_file(f"{root}/snapshot/snapshot-{lost}")
    else:
        table = player.table.table
        kept = next(one for one in table.metadata["snapshots"] if one["sequence-number"] == before)
        table.tag("kept", kept["snapshot-id"])
        table.expire(after)
        table.metadata["snapshots"].insert(0, kept)
        table.write_metadata()
        missing, either = (
            f"versions between {before} and {after} are missing",
            f"{after} or one between {before} and {after}",
        )
    return Gapped(open_table(player.model.url), before, after, missing, either)


def noted(gapped, shown):
    """Return whether something that was drawn says what is missing, in a line of its own or after a colon."""
    text = " ".join(shown.split())
    return gapped.missing in text or gapped.missing[0].upper() + gapped.missing[1:] in text


@pytest.mark.parametrize("reads_once", [True, False])
def test_a_bisection_names_the_missing_version_beside_the_first_one_that_can_be_read(gapped, reads_once):
    found = gapped.table.bisect("name = 'cy'", single_pass=reads_once)

    assert (found.version, found.last_good) == (gapped.after, gapped.before)
    name = gapped.table.name
    once = ", if it changes only once" if found.assumes_one_change else ""
    assert found.answer == f"name = 'cy' holds first at version {gapped.either} of {name}: {gapped.missing}{once}"
    assert repr(found).startswith("name = 'cy' holds first at version ")
    assert f"commit of {gapped.after}" in repr(found)


def test_a_bisection_on_metadata_names_it_too(gapped):
    rows = gapped.table.lifetimes().totals()["rows"].to_pylist()
    at = gapped.table.lifetimes().versions.index(gapped.before)

    found = gapped.table.bisect(f"rows > {rows[at]}")

    assert found.answer.endswith(f" holds first at version {gapped.either} of {gapped.table.name}: {gapped.missing}")


def test_a_bisection_elsewhere_is_certain(gapped):
    found = gapped.table.bisect(f"metadata.version >= {gapped.after + 2}")

    assert found.gap is None
    assert f"holds first at version {gapped.after + 2} of {gapped.table.name}\n" in repr(found)


@pytest.mark.parametrize(
    "answer",
    [
        lambda table: table.history(),
        lambda table: table.history().picture(),
        lambda table: table.history(stat=True),
        lambda table: table.history(kind="append"),
        lambda table: table.at("latest").file_changes(since="earliest"),
        lambda table: table.lifetimes(),
        lambda table: table.lifetimes().picture(),
        lambda table: table.profile_over("id"),
        lambda table: table.profile_over("id").frame,
        lambda table: table.profile_over("id", exact=True),
        lambda table: table.anomalies(),
        lambda table: table.blame("id > 2"),
        lambda table: table.health(between=".."),
        lambda table: table.compare("earliest", "latest").showing("commits"),
        lambda table: table.compare("earliest", "latest"),
        lambda table: table.compare("latest", "earliest"),
        lambda table: table.diff_rows("earliest", "latest"),
        lambda table: table.diff_rows("latest", "earliest", preview=True),
        lambda table: table.verify().versions,
    ],
)
def test_every_answer_over_a_range_says_what_is_missing(gapped, answer):
    assert noted(gapped, repr(answer(gapped.table)))


def test_an_answer_over_a_range_without_the_gap_does_not_mention_it(gapped):
    table, between = gapped.table, f"{gapped.after}..latest"

    answers = [
        table.history(between),
        table.history(limit=3),
        table.at("latest").file_changes(since=gapped.after),
        table.profile_over("id", between),
        table.blame("id > 2", between=between),
        table.health(between=between),
        table.anomalies(between=f"{gapped.after + 1}..latest"),
        table.compare(gapped.after, "latest"),
        table.diff_rows(gapped.after, "latest"),
    ]

    assert not any(noted(gapped, repr(answer)) for answer in answers)


def test_lines_of_a_blame_after_a_gap_have_no_commit_and_say_which_version_it_may_be(gapped):
    lines = gapped.table.blame("name = 'cy'").to_arrow().to_pylist()

    assert [(line["version"], line["change"]) for line in lines] == [(gapped.after, f"insert at {gapped.either}")]
    assert [lines[0][name] for name in ("committed_at", "kind", "operation", "user")] == [None] * 4


def test_a_jump_over_a_gap_has_no_commit_and_says_that_another_version_may_have_made_it(memory_root):
    from tests.support.delta.table_builder import DeltaTable

    table = DeltaTable(*memory_root)
    for number in range(12):
        table.append([(number, "ann")] * (50 if number == 8 else 1))
    table.checkpoint(10)
    table.remove_file("_delta_log/00000000000000000009.json")

    found = open_table(table.url).anomalies([]).to_arrow().to_pylist()

    jump = next(row for row in found if row["measure"] == "rows")
    assert (jump["version"], jump["kind"], jump["operation"]) == (10, None, None)
    assert jump["rule"].endswith("; version 9 is missing, and may have changed it")


def test_gaps_are_named_as_runs():
    listing = Listing(versions=(1, 5, 6, 9, 12, 13), identity=())

    assert gaps_text(listing.gaps(listing.versions)) == "versions 2 to 4, 7, 8, 10 and 11 are missing"
    assert (
        gaps_text(listing.gaps((1, 9))) == "versions 2 to 4, 7 and 8 are missing, and versions 5 and 6 cannot be read"
    )
    assert listing.gaps((5, 6)) == listing.gaps(()) == ()
    assert alternatives_text(listing.gaps((1, 9)), [9]) == "2 to 9"
    assert alternatives_text(listing.gaps((6, 9)), [9]) == "7 to 9"
    assert alternatives_text([Gap(before=3, after=5, missing=((4, 4),))], [5]) == "4 or 5"
    assert alternatives_text([Gap(before=3, after=5, missing=((4, 4),))], [5, 9]) == "4, 5 or 9"


def test_many_gaps_are_counted():
    listing = Listing(versions=tuple(range(0, 40, 2)), identity=())

    assert gaps_text(listing.gaps(listing.versions)).endswith(", 13, 15 and 11 more are missing")
    assert alternatives_text(listing.gaps(listing.versions), [38]) == "1 to 38"


@pytest.mark.parametrize(
    ("name", "lost"), [("orders", "snapshot/snapshot-8"), ("payments", f"_delta_log/{3:020}.json")]
)
def test_retention_and_the_explorer_say_what_is_missing(tmp_path, name, lost):
    folder = Path(shutil.copytree(samples.path(name), tmp_path / name))
    (folder / lost).unlink()
    table = open_table(str(folder))
    is_paimon = name == "orders"
    missing = "version 8 is missing" if is_paimon else "version 3 is missing"

    assert missing.capitalize() in repr(table.retention(keep_last=12 if is_paimon else None))
    explorer = explore(table).wait(30)
    note = f"{missing.capitalize()}: later totals include what changed there."
    try:
        assert missing in explorer._repr_mimebundle_()["text/plain"]
        assert explorer.commits["notes"] == [note]
        assert note in str(explorer)
    finally:
        explorer.close()


def test_a_lost_version_is_missing_and_has_not_expired(gapped):
    table, lost = gapped.table, gapped.before + 1

    for ask in (lambda: table.at(lost), lambda: open_table(table.path).at(lost), lambda: table.at(f"{lost}~1")):
        with pytest.raises(SnapshotNotFoundError) as error:
            ask()
        words = "is missing: its file is gone, though versions before it exist."
        expected = "does not exist" if table.format == "iceberg" else words
        assert str(error.value).startswith(f"Version {lost} {expected}")
        assert "has expired" not in str(error.value)


def test_versions_before_a_gap_are_suggested_and_older_ones_have_expired(memory_root):
    filesystem, root = memory_root
    paimon = PaimonTable(filesystem, root)
    for _ in range(8):
        paimon.commit()
    paimon.tag("kept", 2)
    paimon.expire(4)
    paimon.remove("snapshot/snapshot-6")

    for version, words in ((1, "has expired"), (3, "has expired"), (6, "is missing: its file"), (9, "does not exist")):
        table = open_table(f"memory://{root}")
        table.versions()
        with pytest.raises(SnapshotNotFoundError, match=f"^Version {version} {words}"):
            table.at(version)
