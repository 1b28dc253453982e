"""The tests of this folder pass alike on a session of every kind.

.ci/run runs a part of them again over Connect and on a cluster. In other runs only test_processes.py has a Connect
server, and test_failures.py a cluster.
"""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support import spark_clusters

IN_CI = "SNAPSHOT_EXPLORER_NO_SKIPS" in os.environ
HERE = Path(__file__).parent
ONCE = ("test_every_test_passes_in_another_kind_of_session", "test_failures", "test_processes")
"""What starts all that it needs by itself, and so need not run in every kind."""
EVERYWHERE = ("test_source", "any_kind", "any_thread")
"""What runs in every kind each time. All of the folder does with SNAPSHOT_EXPLORER_SPARK=connect, or cluster."""


@contextmanager
def running(output, report, mode):
    """Run pytest over this folder in a process of its own, until the block ends at the latest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
    chosen = f"({' or '.join(EVERYWHERE)}) and not ({' or '.join(ONCE)})"
    command += ["-k", chosen, f"--junitxml={report}", str(HERE)]
    env = {**os.environ, "SNAPSHOT_EXPLORER_SPARK": mode}
    with output.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=spark_clusters.ROOT, env=env)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # which lets it end its Spark
        process.wait()


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Processes that run the tests at the same time, their output and their reports, by the kind of session."""
    if reason := spark_clusters.missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("modes")
    with ExitStack() as stack:
        found = {}
        for mode in ("connect", "cluster"):
            output, report = folder / f"{mode}.txt", folder / f"{mode}.xml"
            process = stack.enter_context(running(output, report, mode))
            found[mode] = process, output, report
        yield found


@pytest.mark.sessions
@pytest.mark.skipif(not IN_CI, reason="two minutes, for .ci/run")
@pytest.mark.parametrize("mode", ["connect", "cluster"])
def test_every_test_passes_in_another_kind_of_session(mode, started):
    process, output, report = started[mode]

    process.wait()

    assert process.returncode == 0, output.read_text()[-6000:]
    cases = list(ET.parse(report).iter("testcase"))
    assert [case.get("name") for case in cases if len(case)] == []  # a case that is skipped or failed has a child
    assert len(cases) > 10
