"""Lifetimes with statistics: what the metadata says of each file, against reading every version."""

from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import samples
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.formats import TableFormat, detect
from snapshot_explorer.history.lifetimes import read_statistics
from snapshot_explorer.storage import Storage

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted([*(DATA / "paimon").iterdir(), *(DATA / "delta").iterdir()])
TABLES += [Path(samples.__file__).parent / name for name in samples.names()]


class Plain:
    """A format that cannot read statistics with its changes."""

    def __init__(self, table_format):
        self._format = table_format
        for name in dir(TableFormat):
            if not name.startswith("_") and name != "changes_with_statistics":
                setattr(self, name, getattr(table_format, name))

    def changes_with_statistics(self, versions, columns, at):
        return None


def opened(path):
    storage = Storage(str(path))
    return detect(storage)(storage)


def live(found, position):
    """Return by path and deletion vector the statistics of the files that are live at a position."""
    stays = found.lifetimes.intervals
    rows = stays.rows
    paths = stays.paths(rows).to_pylist()
    ranges = zip(rows["first"].to_pylist(), rows["last"].to_pylist(), strict=True)
    places = [place for place, (first, last) in enumerate(ranges) if first <= position < last]
    parts = {part: getattr(found.bounds, part).to_pylist() for part in ("lower", "upper", "null_count")}
    return {paths[place]: {part: values[place] for part, values in parts.items()} for place in places}


@pytest.mark.parametrize("ability", ["with changes", "without"])
@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_statistics_of_stays_bound_those_of_the_newest_version(path, ability):
    table_format = opened(path)
    try:
        newest = table_format.version(table_format.listing(0).latest)
        files = newest.files(statistics=True)
    except SnapshotExplorerError:
        return  # a table that is refused, or has no version
    if "lower" not in files.column_names:
        return
    columns = [field.name for field in files.schema.field("lower").type]
    reading = table_format if ability == "with changes" else Plain(table_format)

    found = read_statistics(reading, columns, newest.number)

    reported = live(found, len(found.lifetimes.versions) - 1)
    assert sorted(reported) == sorted(files["path"].to_pylist())
    for row in files.select(["path", "lower", "upper", "null_count"]).to_pylist():
        if row["lower"] is None:
            continue  # a format that reads no statistics
        mine = reported[row["path"]]
        for name in columns:
            assert mine["null_count"][name] in (None, row["null_count"][name])
            least, greatest = mine["lower"][name], mine["upper"][name]
            if None not in (least, row["lower"][name]):
                assert not least > row["lower"][name]
            if None not in (greatest, row["upper"][name]):
                assert not greatest < row["upper"][name]


def test_statistics_are_known_of_files_that_are_gone():
    table_format = opened(samples.path("payments"))

    found = read_statistics(table_format, ["payment_id"], 21)

    assert found.bounds.lower["payment_id"].null_count == 0
    assert isinstance(found.bounds.rows, pa.Int64Array)
    assert len(found.bounds.rows) == len(found.lifetimes)
