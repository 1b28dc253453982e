"""Hudi tables under a live writer: a Spark job writes, compacts, cleans and archives while we read."""

import itertools
import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError, SnapshotNotFoundError, StorageError, TableNotFoundError
from tests.oracles.conftest import without_spark

pytestmark = pytest.mark.usefixtures("real_pauses")
ROOT = Path(__file__).parents[2]
ENOUGH = 5
"""Versions that are read at least before the writer may end."""


@pytest.fixture
def writer(environment, tmp_path):
    """Return the folder of a table that a process is writing, and the process."""
    command = [str(environment / "hudi/bin/python"), "-m", "tests.oracles.live_hudi", str(tmp_path)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=without_spark())
        yield tmp_path, process
        process.kill()
        process.wait()


def rows(snapshot):
    return sorted(snapshot.to_arrow(["id"])["id"].to_pylist())


def read(table, draw, answers, errors):
    """Read the newest version and an older one, and ask for what is kept between calls."""
    table.update()
    versions = table.versions()
    for version in {versions[-1], draw.choice(versions)}:
        try:
            answers.append((version, rows(table.at(version))))
        except (SnapshotNotFoundError, StorageError) as error:
            errors.append((version, str(error)))
    for question in (table.history, table.lifetimes, table.verify, lambda: table.compare(versions[0], "latest")):
        try:
            question()
        except (SnapshotNotFoundError, StorageError) as error:
            errors.append((versions[-1], str(error)))


def test_every_answer_is_a_version_that_existed_or_says_what_vanished(writer):
    folder, process = writer
    answers, errors, draw, table = [], [], random.Random(1), None
    for turn in itertools.count():
        if process.poll() is not None:
            break
        try:
            if table is None or turn % 5 == 0:
                table = open_table(folder / "table")
            read(table, draw, answers, errors)
        except (TableNotFoundError, IndexError):  # not written yet
            time.sleep(0.2)
        if len({version for version, _ in answers}) > ENOUGH:
            (folder / "enough").touch()

    assert (folder / "ended").exists(), (folder / "log").read_text()[-3000:]
    model = dict(json.loads(line) for line in (folder / "model").read_text().splitlines())
    wrong = [(version, ids) for version, ids in answers if ids != model[version]]
    assert not wrong
    # Only old versions vanish, whose files the cleaner removed.
    assert all(str(folder) in message or "clean" in message for _, message in errors), errors
    final = open_table(folder / "table")
    assert rows(final.current) == model[final.current.version]
    kinds = {row["kind"] for row in final.history().to_arrow().to_pylist()}
    assert {"update", "delete", "compact"} <= kinds
    with pytest.raises(SnapshotExplorerError):
        final.at(final.versions()[0]).to_arrow()
