"""Damaged tables: every public call answers or refuses. A sample of what `mutate` does for as long as it is told."""

import subprocess
import sys
from pathlib import Path

TABLES = 7


def test_calls_on_mutated_tables_answer_or_refuse():
    # In a process of its own: its forks would get the locks of threads that other tests have left, but not the threads.
    command = [sys.executable, "-m", "tests.robustness.mutate", "--count", str(TABLES), "--workers", "1"]

    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{TABLES} mutated tables" in done.stdout
