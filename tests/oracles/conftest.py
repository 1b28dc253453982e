"""Runs scripts beside this file in the environment of .ci/oracles; without it, the tests that ask are skipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.oracles import delta_chosen
from tests.support.oracles.lakes import INNER

ROOT = Path(__file__).parents[2]
VARIABLE = "SNAPSHOT_EXPLORER_ORACLES"
MISSING = f"set {VARIABLE} to the folder that .ci/oracles makes: .ci/oracles && {VARIABLE}=$PWD/.venv-oracles"
TIMEOUT_SECONDS = 1800


@pytest.fixture(scope="session")
def environment():
    """The folder that .ci/oracles makes."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(MISSING)
    return Path(folder)


@pytest.fixture(scope="session")
def oracle(environment, tmp_path_factory, request):
    """A callable `oracle(script, *arguments, inner="")`: the folder into which a script of this folder has written.

    The script is given the folder, which is empty, and the arguments. It runs once in a session, however many tests
    and workers ask. A script that fails fails each test that asks, with what it printed. `inner` names an environment
    within that of .ci/oracles.
    """
    import fcntl  # where .ci/oracles runs there is one

    base = tmp_path_factory.getbasetemp()
    base = base.parent if hasattr(request.config, "workerinput") else base

    def written(script, *arguments, inner=""):
        python = environment / inner / "bin" / "python"
        name = "-".join(["oracle", Path(script).stem, *map(str, arguments)])
        folder, log = base / name, base / f"{name}.log"
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not log.exists():
                folder.mkdir()
                log.write_text(failure(python, script, folder, *arguments))
        if log.read_text():
            pytest.fail(log.read_text(), pytrace=False)
        return folder

    return written


@pytest.fixture(scope="session", autouse=True)
def planner():
    """Name the Python of this process, which plans what engines run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANNER", sys.executable)
        yield


@pytest.fixture(scope="session")
def connector_wrote(oracle):
    """Return the folder in which a format's connector wrote all that tests compare with: one Spark for all."""

    def folder(name):
        names = delta_chosen.NAMES if name == "delta" else ()
        return oracle("connector_tables.py", name, delta_chosen.SEED, *names, inner=INNER.get(name, ""))

    return folder


def without_spark():
    """Return this process's environment without the Spark that tests on Spark name in it."""
    others = ("SPARK_", "PYSPARK_", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(others)}


def failure(python, script, *arguments):
    """Run a script of this folder; return what it printed if it failed, and nothing else."""
    command = [str(python), "-m", f"tests.oracles.{Path(script).stem}", *map(str, arguments)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            env=without_spark(),
            cwd=ROOT,
        )
    except subprocess.TimeoutExpired as error:
        return f"{script} ran for more than {TIMEOUT_SECONDS} seconds:\n{error.stdout}\n{error.stderr}"
    return f"{script} {arguments} failed:\n{done.stdout}\n{done.stderr}" if done.returncode else ""
