"""Whether a session of Spark runs Python workers that have this package."""

import os
import sys
from pathlib import Path

from tests.inner.engines_spark import foreign_python


def test_workers_of_another_environment_are_reported(tmp_path, monkeypatch):
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    assert foreign_python("local[2]", "python3") == str(other)
    assert foreign_python("local", "/nowhere/python3") == "/nowhere/python3"


def test_workers_of_this_environment_and_of_a_cluster_are_not():
    assert foreign_python("local[*]", sys.executable) is None
    assert foreign_python("local[*]", str(Path(sys.executable).with_name("python3"))) is None
    assert foreign_python("spark://head:7077", "/nowhere/python3") is None
