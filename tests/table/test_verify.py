"""`Table.verify`: files that are missing, cut, damaged or not as recorded, and what was not looked at."""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.analysis.retention import verification
from snapshot_explorer.errors import InvalidArgumentError
from tests.support.delta.table_builder import DeltaTable, add, remove
from tests.support.iceberg.table_builder import IcebergTable

DATA = Path(__file__).parents[1] / "data"
WHOLE = (
    "delta/dv_partitioned",
    "iceberg/v3_dv",
    "iceberg/branches_tags",
    "paimon/append_orc",
    "paimon/dv",
    "hudi/v9_cow_basic",
)


@pytest.fixture
def table(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(table.data("a.parquet", [(1, "a"), (2, "b")]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(1, "x" * 10_000)]))
    return table


def states(verification):
    return {row["path"]: row["state"] for row in verification.files.to_arrow().to_pylist()}


@pytest.mark.parametrize("level", ["existence", "footers", "bytes"])
@pytest.mark.parametrize("name", WHOLE)
def test_tables_of_the_real_engines_have_no_problem(name, level):
    verification = open_table(str(DATA / name)).verify(level)

    assert verification.is_ok
    assert set(states(verification).values()) == {"ok"}
    assert verification.verdict.startswith("All ")


def test_a_missing_file_of_any_version_is_found(table, tmp_path):
    (tmp_path / "a.parquet").unlink()
    verification = open_table(table.root).verify()

    assert states(verification) == {"a.parquet": "missing", "b.parquet": "ok"}
    assert verification.verdict == "1 of 2 data files has a problem."
    assert not verification.is_ok
    assert "does not exist" in repr(verification)


def test_files_of_versions_that_have_expired_are_not_missed(memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root)
    table.commit([(1, "a")])
    table.commit([(2, "b")], removed=["data-1.parquet"], operation="overwrite")
    table.commit([(3, "c")])
    table.write_metadata()
    opened = open_table(f"memory://{root}")
    assert set(states(opened.verify())) == {"data/data-1.parquet", "data/data-2.parquet", "data/data-3.parquet"}

    table.expire(2)
    table.write_metadata()
    filesystem.rm_file(f"{root}/data/data-1.parquet")
    assert states(opened.verify("bytes")) == {"data/data-2.parquet": "ok", "data/data-3.parquet": "ok"}
    assert opened.verify().is_ok


def test_a_file_of_another_size_is_found_without_opening_it(table, tmp_path):
    (tmp_path / "b.parquet").write_bytes(b"PAR1")

    assert states(open_table(table.root).verify())["b.parquet"] == "resized"


def test_a_damaged_footer_is_found_by_footers(table, tmp_path):
    content = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(content[:-4] + b"XXXX")
    opened = open_table(table.root)

    assert opened.verify().is_ok
    assert states(opened.verify("footers")) == {"a.parquet": "ok", "b.parquet": "unreadable"}


def test_damaged_rows_are_found_by_bytes(table, tmp_path):
    path = tmp_path / "b.parquet"
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(bytes(content))
    opened = open_table(table.root)

    assert opened.verify("footers").is_ok
    assert states(opened.verify("bytes"))["b.parquet"] == "unreadable"


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("delta/dv_partitioned", "deletion_vector_*"),
        ("iceberg/v2_equality_deletes", "data/*-eq.parquet"),
        ("iceberg/v3_dv", "data/**/*.puffin"),
        ("paimon/dv", "index/index-*"),
    ],
)
def test_damaged_deletes_are_found_by_bytes(tmp_path, name, files):
    root = shutil.copytree(DATA / name, tmp_path / "t")
    for path in root.glob(files):
        content = path.read_bytes()
        path.write_bytes(content[:8] + bytes(255 - byte for byte in content[8:-8]) + content[-8:])
    opened = open_table(str(root))

    assert opened.verify().is_ok
    assert "unreadable" in states(opened.verify("bytes")).values()


def test_a_damaged_delete_file_is_a_problem_of_each_data_file_that_needs_it(memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root)
    for number in range(3):
        table.commit([(number, "a"), (number + 10, "b")])
    table.delete_ids([0])
    table.commit([(20, "c")])
    path = f"{root}/data/deletes-4.parquet"
    filesystem.pipe_file(path, b"PAR1" + bytes(filesystem.size(path) - 8) + b"PAR1")

    found = states(open_table(f"memory://{root}").verify("bytes"))

    assert Counter(found.values()) == {"ok": 1, "unreadable": 3}


def test_other_rows_than_recorded_are_found(table, tmp_path):
    size = (tmp_path / "a.parquet").stat().st_size
    table.commit(add("a.parquet", size=size, rows=7))
    verification = open_table(table.root).verify("footers")

    assert states(verification)["a.parquet"] == "rows differ"
    assert "it has 2 rows, and the metadata records 7" in repr(verification)


def test_files_that_cannot_be_opened_are_not_called_ok():
    verification = open_table(str(DATA / "paimon" / "append_avro")).verify("footers")

    assert set(states(verification).values()) == {None}
    assert verification.verdict.startswith("No problem was found, but 5 of 5 data files could not be checked.")
    assert not verification.is_ok
    assert "not checked" in repr(verification)


def test_a_resumed_verification_opens_only_what_was_not_in_order(table, tmp_path):
    opened = open_table(table.root)
    good = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(good[:-4] + b"XXXX")
    first = opened.verify("footers")
    (tmp_path / "b.parquet").write_bytes(good)
    size = (tmp_path / "a.parquet").stat().st_size
    (tmp_path / "a.parquet").write_bytes(b"x" * size)  # not opened again
    second = opened.verify("footers", resume=first)

    assert states(second) == {"a.parquet": "ok", "b.parquet": "ok"}
    assert states(opened.verify("bytes", resume=first))["a.parquet"] == "unreadable"


def test_versions_whose_files_are_unknown_are_named():
    verification = open_table(str(DATA / "paimon" / "expired")).verify()

    assert not verification.is_ok
    assert "their files are unknown" in repr(verification)


def test_an_unknown_level_is_refused(table):
    with pytest.raises(InvalidArgumentError, match="level must be one of existence, footers, bytes, got 'rows'"):
        open_table(table.root).verify("rows")


def test_a_table_without_versions_has_nothing_to_verify():
    verification = open_table(str(DATA / "paimon" / "empty")).verify("bytes")

    assert verification.files.to_arrow().num_rows == 0
    assert isinstance(verification.files.to_arrow(), pa.Table)


def test_an_interrupted_verification_goes_on_where_it_stopped(table, monkeypatch):
    opened, read, state_of = open_table(table.root), [], verification.file_state

    def state_until_the_second(check, file, reading):
        read.append(file.path)
        if len(read) == 2:
            raise KeyboardInterrupt
        return state_of(check, file, reading)

    monkeypatch.setattr(verification, "THREADS", 1)
    monkeypatch.setattr(verification, "file_state", state_until_the_second)
    with pytest.raises(KeyboardInterrupt):
        opened.verify("bytes")

    assert opened.verify("bytes", resume=True).is_ok
    assert read == ["a.parquet", "b.parquet", "b.parquet"]
