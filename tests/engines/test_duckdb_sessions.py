"""DuckDB's connections: their zone, and what they can reach."""

import os
import subprocess
import sys

import pytest

from snapshot_explorer.engines import duckdb_sessions
from tests.inner.core import DUCKDB_ALLOWED_PATHS

ZONES = """
from snapshot_explorer.engines import duckdb_sessions as sessions
for cursor in (sessions.locked_cursor, sessions.planning_cursor, sessions.file_cursor, sessions.query_cursor):
    with cursor() as connection:
        print(*connection.execute("SELECT current_setting('TimeZone')").fetchall()[0])
"""


def test_every_connection_is_in_utc_whatever_the_zone_of_the_machine():
    zone = os.environ | {"TZ": "America/New_York"}

    found = subprocess.run([sys.executable, "-c", ZONES], env=zone, check=True, capture_output=True, text=True)

    assert found.stdout.split() == ["UTC"] * 4


@pytest.mark.skipif(DUCKDB_ALLOWED_PATHS.applies(), reason=DUCKDB_ALLOWED_PATHS.problem)
def test_a_query_reads_its_files_and_no_others_also_in_an_instance_that_is_open(tmp_path):
    mine, other = str(tmp_path / "mine.csv"), str(tmp_path / "other.csv")
    for path in (mine, other):
        (tmp_path / path).write_text("a\n1\n")

    for allowed, denied in ((mine, other), (other, mine), (mine, other)):
        with duckdb_sessions.query_cursor([allowed]) as cursor:
            cursor.execute(f"CREATE TEMP VIEW mine AS FROM read_csv('{allowed}')")
            assert cursor.execute("FROM mine").fetchall() == [(1,)]
            with pytest.raises(Exception, match="Permission"):
                cursor.execute(f"FROM read_csv('{denied}')")
            with pytest.raises(Exception, match="locked"):
                cursor.execute(f"SET allowed_paths = ['{denied}']")
