"""New environments, in which nothing of this one is found."""

import os
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INHERITED = ("PYTHON", "JUPYTER", "IPYTHON", "JAVA", "SPARK", "PYSPARK", "VIRTUAL_ENV")


def _clean():
    return {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}


class Environment:
    """A virtual environment, and a home folder of its own."""

    def __init__(self, folder, pip):
        self.folder, self._pip = folder, pip
        # pip need not be in it: the one that runs here installs into it, which is faster.
        venv.create(folder, with_pip=False, symlinks=True)

    def install(self, *requirements):
        """Install, as from the repository's root. Python compiles what it imports: doing it for all takes longer."""
        install = [*self._pip, "--python", self.folder, "install", "--quiet", "--no-compile"]
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
def pip(tmp_path_factory):
    """The command of a pip that resolves fast: before 24.1 it takes half a minute for what binder/ lists."""
    here = [sys.executable, "-m", "pip"]
    if tuple(map(int, metadata.version("pip").split(".")[:2])) >= (24, 1):
        return here
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([*here, "install", "--quiet", "--no-compile", "--target", folder, "pip>=24.1"], check=True)
    return [sys.executable, folder / "pip"]


@pytest.fixture(scope="session")
def new_environment(pip, tmp_path_factory):
    """Make environments, and delete them in the end: each takes a gigabyte."""
    folders = []

    def make():
        folders.append(tmp_path_factory.mktemp("environment"))
        return Environment(folders[-1], pip)

    yield make
    for folder in folders:
        shutil.rmtree(folder)
