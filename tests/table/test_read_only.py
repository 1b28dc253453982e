"""The promise that nothing is ever written."""

import contextlib
import hashlib
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable, add, remove


def digest(folder):
    """Return every file below a folder with the digest of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def use_everything(table):
    """Call the whole public interface of a table and of a snapshot of each kind of commit."""
    refs = [*{row["kind"]: row["version"] for row in table.history().to_dict()}.values(), "earliest", "@2100-01-01"]
    refs += [f"tag:{name}" for name in table.tags()["tag"].to_pylist()]
    for thing in (table, table.update(), table.history(), table.history("..", kind="append", text="a"), table.tags()):
        thing._repr_mimebundle_()
    (
        table.branches(),
        table.at("latest").schema,
        history_of(table).cached,
        history_of(table).management.update(staleness_acceptable=True),
    )
    inspections = [
        one for one in history_of(table).table_format.inspections if one.name != "row_tracking"
    ]  # which the samples do not keep
    for inspection in inspections:
        table.inspect(inspection.name)._repr_mimebundle_()
    versions = table.versions()
    comparison = table.compare(versions[0])
    comparing = (comparison, comparison.showing("manifests", "commits", "properties"))
    for thing in (table.lifetimes(), *comparing, table.retention("0d"), table.verify().versions):
        thing._repr_mimebundle_()
    for thing in (table.health(), table.health(between="..")):
        thing._repr_mimebundle_(), thing.to_dict()
    for mode in ("auto", "delta", "changelog", "diff"):
        with contextlib.suppress(
            UnsupportedFeatureError, InvalidArgumentError
        ):  # files rewritten, or no changelog kept
            table.row_changes(versions[0], "latest", mode=mode)
    for ref in refs:
        snapshot = table.at(ref)
        frames = [snapshot.manifests(), snapshot.file_changes(), snapshot.files(), snapshot.files(statistics=True)]
        paths = [row["path"] for row in frames[0].to_dict() if row["list"] != "index"]
        frames += [snapshot.entries(path) for path in paths]
        frames += [table.inspect(one.name, ref) for one in inspections if one.at_version]
        for thing in (snapshot, snapshot.commit, snapshot.schema, *frames, snapshot.plan()):
            thing._repr_mimebundle_()
        for frame in frames:
            frame.to_pandas(), frame.to_json(), frame.to_dict()
        column = snapshot.schema.columns[0].name
        _ = snapshot.properties
        with contextlib.suppress(InvalidArgumentError):  # where the commit wrote no changelog
            snapshot.changelog()
        snapshot.to_arrow(), snapshot.to_pandas([column], f'"{column}" is not null', 3), snapshot.count()


def test_a_delta_table_is_not_written_to_either(readonly, tmp_path):
    table = DeltaTable(None, tmp_path / "table", configuration={"delta.enableChangeDataFeed": "true"})
    table.append([(1, "a"), (2, "b")], name="a.parquet")
    vector = table.vector([0])
    table.commit(remove("a.parquet"), add("a.parquet", rows=2, vector=vector), operation="DELETE")
    table.checkpoint(form="parquet", sidecars=2)
    table.checksum()
    table.append([(3, "c")])
    before = digest(tmp_path)

    use_everything(open_table(f"readonly://{table.root}"))

    assert digest(tmp_path) == before


@pytest.mark.parametrize("name", samples.names())
def test_the_whole_public_interface_works_where_every_write_is_refused(readonly, name, tmp_path):
    folder = Path(samples.path(name))
    before = digest(folder)

    use_everything(open_table(f"readonly://{folder}"))

    assert digest(folder) == before


@pytest.mark.parametrize("name", samples.names())
def test_no_file_is_written_into_the_folder_of_any_table(name, tmp_path):
    folder = Path(samples.path(name))
    before, rows = digest(folder), open_table(str(folder)).history(limit=1)

    for path in (folder / "log.csv", str(folder / "new" / "log.csv"), folder / "metadata" / ".." / "log.csv"):
        for write in (rows.to_csv, rows.to_parquet):
            with pytest.raises(InvalidArgumentError, match=f"log.csv is in the table {folder}, which is read-only"):
                write(path)
    with pytest.raises(InvalidArgumentError, match="s3://lake/log.csv is a URL, but files are written to the local"):
        rows.to_csv("s3://lake/log.csv")
    with pytest.raises(InvalidArgumentError, match="path must be the path of a file, got None"):
        rows.to_parquet(None)
    rows.to_csv(tmp_path / "log.csv")

    assert digest(folder) == before
    assert (tmp_path / "log.csv").exists()
