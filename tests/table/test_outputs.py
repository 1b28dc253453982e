"""Files that are written never land in a table, however the path is spelled, and are written whole or not at all."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from snapshot_explorer import open_lake, open_table, report, samples
from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from tests.inner.results import output_file
from tests.inner.terminal import main
from tests.support.paimon.table_builder import PaimonTable
from tests.table.test_read_only import digest

NAMES = samples.names()
FILES = {
    "events": "snapshot/snapshot-3",
    "invoices": "metadata/v2.metadata.json",
    "orders": "schema/schema-0",
    "payments": "_delta_log/00000000000000000005.json",
    "rides": ".hoodie/hoodie.properties",
    "shipments": "metadata/version-hint.text",
}
"""A file of the metadata of each sample."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A folder with a copy of every sample, which no test changes."""
    folder = tmp_path_factory.mktemp("lake")
    for name in NAMES:
        shutil.copytree(samples.path(name), folder / name)
    before = digest(folder)
    yield folder
    assert digest(folder) == before


@pytest.fixture(scope="module")
def outputs(lake):
    """Every call that writes a file, by name: a function of its path."""
    table = open_table(lake / "orders")
    history, diff, pinned = table.history(limit=1), table.diff_rows(2, 3), open_lake(lake).at("2026-11-20")
    return {
        "Frame.to_csv": history.to_csv,
        "Frame.to_json": history.to_json,
        "Frame.to_parquet": history.to_parquet,
        "RowDiff.to_csv": diff.to_csv,
        "RowDiff.to_json": diff.to_json,
        "RowDiff.to_parquet": diff.to_parquet,
        "LakeSnapshot.to_json": pinned.to_json,
        "report": lambda path: report(path, history, overwrite=True),
        "Table.report": lambda path: report(path, table, overwrite=True),
        "lifetimes": lambda path: open_table(table.path).lifetimes(cache_dir=path),
    }


def spellings(lake, name, tmp_path):
    """Yield paths in a table: of its metadata, of a new file, and through links, `..` and the current folder."""
    table, file = lake / name, FILES[name]
    (tmp_path / "link").symlink_to(table)
    (tmp_path / "lake").symlink_to(lake)
    (tmp_path / "metadata").symlink_to((table / file).parent)
    (tmp_path / "night.json").symlink_to(table / file)
    (tmp_path / "chain.json").symlink_to(tmp_path / "lake" / name / "new.json")
    (tmp_path / "sub").mkdir()
    yield table / file
    yield str(table / "night.json")
    yield table / "a" / "b" / "night.json"
    yield tmp_path / "link" / file
    yield tmp_path / "lake" / name / "night.json"
    yield tmp_path / "metadata" / "night.json"
    yield tmp_path / "night.json"
    yield tmp_path / "chain.json"
    yield tmp_path / "sub" / ".." / "link" / "night.json"
    yield f"{tmp_path}/sub/../link/./{file}"
    yield os.path.relpath(table / file)
    yield f"file://{table}/{file}"
    yield f"file:{table}/night.json"


@pytest.mark.parametrize("name", NAMES)
def test_no_call_writes_into_a_table_however_its_path_is_spelled(lake, outputs, name, tmp_path):
    for path in spellings(lake, name, tmp_path):
        for call, write in outputs.items():
            with pytest.raises(InvalidArgumentError, match="read-only|is a URL|exists"):
                pytest.fail(f"{call} returned {write(path)} for {path}")


@pytest.mark.parametrize("name", NAMES)
def test_no_command_writes_into_a_table(lake, name, tmp_path, capsys):
    for path in (lake / name / FILES[name], lake / name / "night.html"):
        for command in (["report", str(lake / "orders"), str(path), "--overwrite"], ["report", str(lake), str(path)]):
            assert main(command) == 2
        for flag in ("--markdown", "--junit"):
            assert main(["check", str(lake / "orders"), flag, str(path)]) == 2
        assert capsys.readouterr().err.count("read-only") == 4


def test_a_folder_of_a_table_that_is_a_link_is_in_the_table(lake, outputs, tmp_path):
    """Partitions and metadata may be on another disk: by their own path, and through the table."""
    table, elsewhere = tmp_path / "payments", tmp_path / "elsewhere"
    shutil.copytree(lake / "payments", table)
    elsewhere.mkdir()
    for folder in ("_delta_log", "part"):
        (table / "part").mkdir(exist_ok=True)
        shutil.move(table / folder, elsewhere / folder)
        (table / folder).symlink_to(elsewhere / folder)
    data = next(table.glob("*.parquet"))
    shutil.move(data, elsewhere / data.name)
    before = digest(elsewhere)

    for path in (
        table / "part" / "night.json",
        table / "_delta_log" / "00000000000000000005.json",
        elsewhere / "_delta_log" / "00000000000000000005.json",
        elsewhere / "_delta_log" / "night.json",
        elsewhere / data.name,
    ):
        for call, write in outputs.items():
            if call != "lifetimes" or path.parent != elsewhere:  # it writes no file of that name
                with pytest.raises(InvalidArgumentError, match="read-only"):
                    write(path)

    assert digest(elsewhere) == before


def test_metadata_apart_from_the_table_is_not_written_into(lake, outputs, tmp_path):
    for name, file in FILES.items():
        folder = tmp_path / name
        shutil.copytree((lake / name / file).parent, folder)
        for path in (folder / Path(file).name, folder / "night.json"):
            for call, write in outputs.items():
                with pytest.raises(InvalidArgumentError, match="metadata of a table|is in the table"):
                    write(folder if call == "lifetimes" else path)


def test_a_table_that_is_too_young_or_unreadable_is_not_written_into(outputs, tmp_path):
    import fsspec

    PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "young"))
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    (tmp_path / "broken" / "metadata").mkdir(parents=True)
    (tmp_path / "broken" / "metadata" / "version-hint.text").write_text("not a number")

    for name in ("young", "empty", "broken"):
        for write in outputs.values():
            with pytest.raises(InvalidArgumentError, match=f"{name}.* read-only"):
                write(tmp_path / name / "night.json")


def test_a_folder_beside_or_above_tables_is_written_into(lake, outputs, tmp_path, monkeypatch):
    (tmp_path / "metadata").mkdir()  # a name alone makes no table
    (tmp_path / "schema").mkdir()
    shutil.copytree(lake / "orders", tmp_path / "orders")
    monkeypatch.chdir(tmp_path / "orders")
    before = digest(tmp_path / "orders")

    for number, (call, write) in enumerate(outputs.items()):
        for path in (
            f"../{number}.out",
            tmp_path / "metadata" / f"{number}.out",
            tmp_path / "schema" / f"{number} é.out",
        ):
            if call == "lifetimes":
                Path(path).mkdir()
            write(path)
            assert Path(path).exists()

    assert digest(tmp_path / "orders") == before


def test_no_temporary_file_is_written_into_a_table(lake, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(lake / "orders"))

    with pytest.raises(InvalidArgumentError, match="is in the table .*orders.* TMPDIR names another one"):
        samples.path("orders")


def write_half(path, error):
    with output_file(path) as file:
        file.write(b"half")
        raise error


def test_an_output_that_fails_or_is_interrupted_leaves_what_was_there(tmp_path):
    target = tmp_path / "night.json"
    target.write_text("before")
    target.chmod(0o640)

    for error in (KeyboardInterrupt, MemoryError, OSError, SnapshotExplorerError, GeneratorExit):
        with pytest.raises(error):
            write_half(target, error)
    assert [item.name for item in tmp_path.iterdir()] == ["night.json"]
    assert target.read_text() == "before"

    with output_file(target) as file:
        file.write(b"after")
        assert target.read_text() == "before"
    assert [item.name for item in tmp_path.iterdir()] == ["night.json"]
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("after", 0o640)


def test_links_pipes_and_protected_files_stay_what_they_are(outputs, tmp_path):
    write, (real, link, hard) = (
        outputs["Frame.to_csv"],
        (tmp_path / name for name in ("real.csv", "link.csv", "hard.csv")),
    )
    real.write_text("before")
    link.symlink_to(real)
    hard.hardlink_to(real)

    write(link)
    write("/dev/null")

    assert link.is_symlink()
    assert real.read_text().startswith('"')
    assert hard.read_text() == "before"  # the other name of a file may be that of a table's file
    assert Path("/dev/null").is_char_device()


def test_an_output_into_a_missing_folder_says_so(outputs, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "gone" / "x.csv")

    for path in (tmp_path / "gone" / "x.csv", tmp_path / "link.csv"):
        with pytest.raises(InvalidArgumentError, match="does not exist. Create it first"):
            outputs["Frame.to_csv"](path)
    with pytest.raises(InvalidArgumentError, match="s3://lake/x.csv is a URL") as caught:
        outputs["Frame.to_csv"]("s3://key:secret@lake/x.csv")
    assert "secret" not in str(caught.value)
