"""Catalogs in PostgreSQL: the rows of a lake that DuckDB wrote, copied from its SQLite catalog into a server."""

import os
import pickle
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from snapshot_explorer import find_tables, open_table
from snapshot_explorer.errors import StorageError, TableNotFoundError, UnsupportedFeatureError
from snapshot_explorer.table import parts_of

PARTS = Path(__file__).parents[2] / "data" / "ducklake" / "parts" / "parts.sqlite"
DATA = {"data/": f"{PARTS.parent / 'data'}/"}


@pytest.fixture(scope="module")
def server():
    """Start a server, and return its URL without the database."""
    pytest.importorskip("psycopg")
    folders = os.pathsep.join(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)))  # Debian's
    initdb = shutil.which("initdb") or shutil.which("initdb", path=folders)
    if initdb is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    programs = Path(initdb).parent
    # Not in a folder of pytest: each of its sessions closes these to other users.
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres")
        user = {"user": "postgres"}

    def run(program, *arguments, check=True):
        subprocess.run([programs / program, *arguments], check=check, capture_output=True, **user)

    run("initdb", "-D", folder / "data", "-A", "trust", "-U", "tester")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    run("pg_ctl", "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "-t", "240", "start")
    yield f"postgresql://tester:secret@127.0.0.1:{port}"
    run("pg_ctl", "-D", folder / "data", "-m", "fast", "stop", check=False)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def url(server):
    """Copy the catalog into a schema of a database, and return its URL."""
    import psycopg

    with (
        psycopg.connect(f"{server}/postgres", autocommit=True) as target,
        closing(sqlite3.connect(PARTS)) as source,
    ):
        target.execute("CREATE SCHEMA shop")
        target.execute("SET search_path TO shop")
        for name, statement in source.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            target.execute(statement)
            rows = source.execute(f'SELECT * FROM "{name}"').fetchall()
            for row in rows:
                target.execute(f'INSERT INTO "{name}" VALUES ({", ".join(["%s"] * len(row))})', row)
    return f"{server}/postgres?metadata_schema=shop"


def test_a_table_has_the_rows_of_its_sqlite_catalog(url):
    table, original = open_table(url, table="events", relocate=DATA), open_table(PARTS)

    assert table.versions() == original.versions()
    for version in table.versions():
        rows, expected = (side.at(version).to_arrow().sort_by("id") for side in (table, original))
        assert rows.equals(expected), version
    assert table.row_changes("earliest", "latest").num_rows == original.row_changes("earliest", "latest").num_rows


def test_no_password_is_shown_or_pickled(url):
    table = open_table(url, table="events", relocate=DATA)

    assert table.path == url.replace("tester:secret@", "") + "::main.events"
    version = parts_of(table.current).loaded.version
    content = pickle.dumps(version)
    assert b"secret" not in content
    assert pickle.loads(content).schema == version.schema
    with pytest.raises(
        StorageError, match=r"postgresql://127\.0\.0\.1:\d+/nothing\?\.\.\. could not be read"
    ) as caught:
        open_table(url.replace("/postgres?", "/nothing?"), table="events")
    assert "secret" not in str(caught.value)


def test_what_is_not_there_is_said_so(url):
    with pytest.raises(UnsupportedFeatureError, match="relocate"):
        open_table(url, table="events")
    with pytest.raises(TableNotFoundError, match="is a database, but no DuckLake catalog"):
        open_table(url.replace("shop", "other"), table="events")
    assert find_tables(url).to_dict()[0]["name"] == "main.events"


@pytest.mark.parametrize("hosts", ["127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:1,127.0.0.2:1"])
def test_an_address_that_the_server_library_refuses_or_tries_is_shown_without_its_user(hosts):
    pytest.importorskip("psycopg")
    with pytest.raises(StorageError) as caught:
        open_table(f"postgresql://tester:hunter2@{hosts}/lake", table="events")
    assert f"The catalog postgresql://{hosts}/lake could not be read" in str(caught.value)


def test_an_address_that_is_no_url_is_not_shown():
    with pytest.raises(TableNotFoundError, match=r"^The address of a PostgreSQL catalog is not a URL\.$"):
        open_table("postgresql://tester:hunter2@[::1/lake", table="events")
