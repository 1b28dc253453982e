"""One instant of a lake whose tables are being written: by the log of the writers, each version was current then."""

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapshot_explorer import open_lake

pytestmark = pytest.mark.usefixtures("real_pauses")
TABLES = 20


def test_the_pinned_versions_were_all_current_at_that_time(environment, tmp_path):
    root, log = tmp_path / "lake", tmp_path / "log"
    root.mkdir()
    script = Path(__file__).with_name("live_lake.py")
    writers = subprocess.Popen(
        [str(environment / "bin" / "python"), str(script), str(root), str(log), "--tables", str(TABLES)]
    )
    try:
        while not log.exists() or len(log.read_text().splitlines()) < 3 * TABLES:
            assert writers.poll() is None, "the writers ended"
            time.sleep(0.1)
        lake = open_lake(root)
        pinned = [lake.at() for _ in range(3)]
        pinned += [lake.at(datetime.now(UTC)), lake.at("1s")]
    finally:
        (root / "enough").touch()
        writers.wait(60)

    commits = {}
    for line in log.read_text().splitlines():
        name, version, began, ended = line.split()
        commits[name, int(version)] = int(began), int(ended)
    assert len(lake) == TABLES
    checked = 0
    for snapshot in pinned:
        nanos = round(snapshot.time.timestamp() * 1e6) * 1000
        for table in snapshot.tables:
            checked += 1
            if table.version is None:
                assert commits[table.name, 0][1] >= nanos - 1_000_000, table
                continue
            began, _ = commits[table.name, table.version]
            # The next commit had not ended before the instant; log times of files are rounded to milliseconds.
            _, next_ended = commits.get((table.name, table.version + 1), (0, nanos))
            assert began <= nanos + 1_000_000, (table, nanos - began)
            assert next_ended >= nanos - 1_000_000, (table, nanos - next_ended)
    assert checked == len(pinned) * TABLES
