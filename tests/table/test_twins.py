"""`twins`: two metadata trees over the same data files, by the real engines; tables that went apart; copies."""

import shutil
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples, twins
from snapshot_explorer.errors import InvalidArgumentError, TableNotFoundError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable

DATA = Path(__file__).parents[1] / "data"
APPENDED = str(DATA / "twins/appended")
"""A Paimon table with Iceberg metadata, which lacks the last two of its five snapshots."""
KEYED = str(DATA / "twins/keyed")
"""A Paimon table with a primary key. Its Iceberg metadata has only files that were compacted."""


PLAIN = str(DATA / "paimon/dv")


def pairs(result):
    return [(row["version"], row["twin_version"]) for row in result.versions.to_arrow().to_pylist()]


def test_iceberg_metadata_that_paimon_no_longer_writes_is_behind():
    result = twins(APPENDED)

    assert pairs(result) == [(5, None), (4, None), (3, 3), (2, 2), (1, 1)]
    assert (result.matched, result.ahead) == ((3, 3), (2, 0))
    assert (result.shared, result.only_a, result.only_b) == (3, 2, 0)
    assert not result.is_in_step
    paimon = open_table(APPENDED)
    third, fourth, fifth = history_of(paimon).committed_at([3, 4, 5])
    assert (result.since, result.lag) == (fourth, fifth - third)
    assert f"twins({APPENDED!r}).diff()" in repr(result)
    assert result.verdict.startswith("Iceberg is 2 versions")
    assert result.verdict.endswith("Version 3 of Paimon and version 3 of Iceberg name the same data files.")


def test_the_rows_of_twins_can_be_compared_without_reading_the_files_that_both_have():
    found = twins(APPENDED).diff()

    assert sorted(found.before["id"].to_pylist()) == [3, 4]
    assert "not read: 3 files that both" in " ".join(repr(found).split())


def test_only_partitions_in_which_twins_differ_are_read():
    result = twins(samples.path("invoices"))
    plan = result.diff(preview=True)

    assert result.ahead == (2, 0)
    rows = plan.by_partition.to_arrow().to_pylist()
    assert [(dict(row["partition"])["month"], row["shared_files"], row["files_a"], row["proof"]) for row in rows] == [
        ("2026-11", 2, 1, "different"),
        ("2026-12", 0, 1, "different"),
        ("2026-10", 1, 0, "equal"),
    ]
    assert plan.proof.endswith(
        "The rows differ in 2 partitions of 3. Of 3 partitions, 1 is equal: both have the same files in it."
    )


def test_the_call_of_a_diff_of_twins_names_the_formats():
    text = repr(twins(APPENDED).diff())

    assert "format='paimon').at(5)" in text
    assert "format='iceberg').at(3)" in text


def test_iceberg_metadata_of_a_keyed_table_lacks_what_was_not_compacted():
    result = twins(KEYED)

    assert pairs(result) == [(3, None), (2, 3), (2, 2), (1, 1)]
    assert (result.ahead, result.shared, result.only_a) == ((1, 0), 1, 1)
    assert result.verdict.startswith("Iceberg is 1 version")


def test_the_side_that_is_asked_for_first_is_the_first():
    result = twins(open_table(APPENDED, format="iceberg"))

    assert (result.a.format, result.b.format, result.ahead) == ("iceberg", "paimon", (0, 2))
    assert result.verdict.startswith("Iceberg is 2 versions")


def test_the_card_of_a_table_names_the_other_metadata_in_its_folder():
    texts = [" ".join(open_table(path)._repr_mimebundle_()["text/plain"].split()) for path in (APPENDED, PLAIN)]

    assert "iceberg metadata in this folder, read with format='iceberg'; twins(" in texts[0]
    assert " also " not in texts[1]


def test_files_that_only_the_other_metadata_names_are_no_orphans(tmp_path):
    shutil.copytree(APPENDED, tmp_path / "table")

    for name in ("paimon", "iceberg"):
        orphans = open_table(str(tmp_path / "table"), format=name).orphans("0d")
        assert not len(orphans.files)
        assert any("metadata: what that names is not orphaned either" in note for note in orphans.notes)


def test_a_copy_is_compared_by_paths_below_the_folder_and_sizes(tmp_path):
    source = str(DATA / "delta/dv_partitioned")
    shutil.copytree(source, tmp_path / "copy")
    result = twins(source, tmp_path / "copy")

    assert result.are_copies
    assert result.is_in_step
    assert all(a == b for a, b in pairs(result))
    assert "files count as the same by their path below the folder, and their size" in repr(result)


def test_tables_that_both_went_on_say_so(tmp_path):
    for name in ("source", "copy"):
        table = DeltaTable(None, tmp_path / name)
        table.commit(table.data("a.parquet", [(1, "a")]))
        table.commit(table.data(f"{name}.parquet", [(2, "b")]))
    result = twins(tmp_path / "source", tmp_path / "copy")

    assert result.ahead == (1, 1)
    assert "Since then both went on: source has 1 later version, copy has 1." in result.verdict


def test_deletes_of_the_same_files_are_compared():
    versions = open_table(str(DATA / "delta/dv_partitioned"))
    assert twins(versions, versions).deletes in ("none", "same number")


def test_tables_without_a_common_file_have_no_twin_versions():
    result = twins(str(DATA / "delta/types"), str(DATA / "paimon/dv"))

    assert result.matched is None
    assert result.verdict.startswith("No version of Delta Lake names the same data files as one of Paimon.")


def test_a_folder_with_one_metadata_tree_is_refused_with_what_to_do():
    with pytest.raises(
        InvalidArgumentError, match=r"has only Delta Lake metadata, so it has no twin.*twins\('.*', \.\.\.\)"
    ):
        twins(str(DATA / "delta/types"))


def test_another_path_without_a_table_is_refused(tmp_path):
    with pytest.raises(TableNotFoundError):
        twins(APPENDED, tmp_path)


def damaged_copy(folder, cut):
    """Return a table of five versions, and a copy of which the manifests that match are empty."""
    for name in ("a", "b"):
        shutil.copytree(DATA / "paimon" / "evolution_pk", folder / name)
    for manifest in (folder / "b" / "manifest").glob(cut):
        manifest.write_bytes(b"")
    return open_table(folder / "a"), open_table(folder / "b")


def test_a_copy_whose_newest_version_cannot_be_read_is_not_said_to_be_behind(tmp_path):
    a, b = damaged_copy(tmp_path, "manifest-3d61477f-*-0")

    result = twins(a, b)

    assert pairs(result)[-2:] == [(2, 2), (1, 1)]
    assert (result.only_a, result.only_b, result.shared, result.deletes) == (None, None, None, None)
    assert (result.is_in_step, result.ahead, result.since, result.lag) == (None, None, None, None)
    assert result.verdict == (
        "Whether the newest versions of a and b name the same data files is unknown. "
        "Version 2 of a and version 2 of b name the same data files."
    )
    drawn = " ".join(repr(result).split())
    assert "Versions 3 to 5 cannot be read: manifest/manifest-3d61477f-" in drawn
    assert "behind" not in drawn
    assert ".diff()" not in drawn


def test_twins_name_older_versions_that_cannot_be_read(tmp_path):
    shutil.copytree(samples.path("shipments"), tmp_path / "a")
    shutil.copytree(samples.path("shipments"), tmp_path / "b")
    (list_of_first,) = (tmp_path / "b" / "metadata").glob(f"snap-{_first_snapshot(tmp_path / 'b')}-*.avro")
    list_of_first.write_bytes(b"")

    result = twins(open_table(tmp_path / "a"), open_table(tmp_path / "b"))

    assert result.is_in_step
    assert "cannot be read" in " ".join(result.sides[1].notes)


def _first_snapshot(folder):
    return open_table(folder).at("earliest").commit.identifier
