"""`python -m snapshot_explorer` prints a table in a terminal."""

import re
import subprocess
import sys
from pathlib import Path

from snapshot_explorer import samples


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "snapshot_explorer", *arguments], check=False, capture_output=True, text=True
    )


def test_the_card_and_the_newest_commits_are_printed():
    answer = run(samples.path("orders"), "-n", "3")

    assert answer.returncode == 0
    assert re.search(r"^newest version +18$", answer.stdout, re.MULTILINE)
    assert re.search(r"^columns +order_id, buyer, amount", answer.stdout, re.MULTILINE)
    assert "%snapshot" not in answer.stdout
    assert "3 of 18 versions" in answer.stdout


def test_of_a_folder_that_is_no_table_the_tables_below_it_are_printed():
    answer = run(str(Path(samples.path("orders")).parent))

    assert answer.returncode == 0
    assert "Tables below" in answer.stdout
    assert "orders  paimon" in answer.stdout


def test_a_table_that_cannot_be_read_is_an_error_in_one_line():
    answer = run("/not/there", "--format", "delta")

    assert answer.returncode == 2
    assert answer.stderr.startswith("No delta table at /not/there")
    assert answer.stderr.count("\n") == 1
