"""New environments, in which nothing of this one is found."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INHERITED = ("PYTHON", "JUPYTER", "IPYTHON", "JAVA", "SPARK", "PYSPARK", "VIRTUAL_ENV")


def _clean():
    return {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}


class Environment:
    """A virtual environment, and a home folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        # pip need not be in it: uv, which is installed here, installs into it, in half the time.
        venv.create(folder, with_pip=False, symlinks=True)

    def install(self, *requirements):
        """Install, as from the repository's root."""
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", self.folder]
        subprocess.run([*install, *requirements], cwd=ROOT, env=_clean(), check=True)

    def run(self, *command, cwd, path=""):
        """Return what a command of the environment writes; besides it only the programs of `path` are found."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        found = os.pathsep.join([str(self.folder / "bin"), *([path] if path else [])])
        done = subprocess.run(
            [shutil.which(command[0], path=found) or command[0], *command[1:]],
            cwd=cwd,
            env={**_clean(), "HOME": str(home), "PATH": found},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code, cwd):
        """Return what a program writes that finds neither this repository nor Java."""
        return self.run("python", "-I", "-c", code, cwd=cwd)


@pytest.fixture(scope="session")
def new_environment(tmp_path_factory):
    """Make environments, and delete them in the end: each takes a gigabyte."""
    folders = []

    def make():
        folders.append(tmp_path_factory.mktemp("environment"))
        return Environment(folders[-1])

    yield make
    for folder in folders:
        shutil.rmtree(folder)
