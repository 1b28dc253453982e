"""`python -m snapshot_explorer` prints a table in a terminal."""

import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from snapshot_explorer import __version__, samples
from snapshot_explorer.__main__ import main
from tests.support.delta.table_builder import DeltaTable, add

COMMAND = [sys.executable, "-m", "snapshot_explorer"]


def run(*arguments, **variables):
    return subprocess.run(
        [*COMMAND, *arguments], check=False, capture_output=True, text=True, env=os.environ | variables
    )


def test_the_card_and_the_newest_commits_are_printed():
    answer = run(samples.path("orders"), "-n", "3")

    assert answer.returncode == 0
    assert re.search(r"^newest version +18$", answer.stdout, re.MULTILINE)
    assert re.search(r"^columns +order_id, buyer, amount", answer.stdout, re.MULTILINE)
    assert "%snapshot" not in answer.stdout
    assert "3 of 18 versions" in answer.stdout


def test_the_tables_below_a_folder_that_is_not_a_table_are_printed():
    answer = run(str(Path(samples.path("orders")).parent))

    assert answer.returncode == 0
    assert "Tables below" in answer.stdout
    assert "orders  paimon" in answer.stdout


def test_a_table_that_cannot_be_read_is_an_error_in_one_line():
    answer = run("/not/there", "--format", "delta")

    assert answer.returncode == 2
    assert answer.stderr.startswith("No delta table at /not/there")
    assert answer.stderr.count("\n") == 1


def test_text_is_as_wide_as_the_terminal_and_in_its_letters(tmp_path):
    table = DeltaTable(None, tmp_path, fields=(("stra\u00dfe", "string"), ("size", "long")))
    table.commit(add("a", rows=1), add("b", rows=1))

    answer = run(str(tmp_path), COLUMNS="60", PYTHONIOENCODING="ascii")

    assert answer.returncode == 0
    assert "columns         stra\\xdfe, size" in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 60
    assert "not shown: " in answer.stdout


def test_a_reader_that_stops_reading_ends_it_without_a_traceback():
    source, target = os.pipe()
    os.close(source)

    answer = subprocess.run(
        [*COMMAND, samples.path("orders")], check=False, stdout=target, stderr=subprocess.PIPE, text=True
    )
    os.close(target)

    assert (answer.returncode, answer.stderr) == (1, "")


@pytest.fixture
def heeds_interrupts():
    """Let new processes heed SIGINT. A shell makes what it runs in the background ignore it, and they inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a process")
@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_ends_it_while_a_server_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/orders"
        with subprocess.Popen([*COMMAND, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = server.accept()
            process.send_signal(signal.SIGINT)
            try:
                _, said = process.communicate(timeout=60)
            finally:
                process.kill()
                connection.close()

    assert (process.returncode, said) == (130, "")


def test_an_interrupt_ends_it_while_it_loads(monkeypatch):
    class Interrupts:
        def find_spec(self, name, *_):
            if name == "snapshot_explorer.discovery":
                raise KeyboardInterrupt

    for name in ("snapshot_explorer.discovery", "snapshot_explorer.__main__"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])

    with pytest.raises(SystemExit, match="130"):
        runpy.run_module("snapshot_explorer", run_name="__main__")


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])

    assert capsys.readouterr().out == f"snapshot-explorer {__version__}\n"
