"""DuckDB's connections: their zone."""

import os
import subprocess
import sys

ZONES = """
from snapshot_explorer.engines import duckdb_sessions as sessions
for cursor in (sessions.locked_cursor, sessions.planning_cursor, sessions.file_cursor):
    print(*cursor().execute("SELECT current_setting('TimeZone')").fetchall()[0])
"""


def test_every_connection_is_in_utc_whatever_the_zone_of_the_machine():
    zone = os.environ | {"TZ": "America/New_York"}

    found = subprocess.run([sys.executable, "-c", ZONES], env=zone, check=True, capture_output=True, text=True)

    assert found.stdout.split() == ["UTC"] * 3
