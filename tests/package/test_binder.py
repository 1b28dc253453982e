"""What Binder builds from `binder/` works: installed anew, as its builder does it."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

import snapshot_explorer

ROOT = Path(__file__).parents[2]
BINDER = ROOT / "binder"


RUN = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
notebook.cells.append(nbformat.v4.new_code_cell("import snapshot_explorer; print(snapshot_explorer.__file__)"))
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(notebook.cells[-1].outputs[0].text)
"""
INSTALLED = """
import json
from importlib import metadata
print(json.dumps([(found.name, found.version) for found in metadata.distributions()]))
"""


@pytest.fixture(scope="module")
def binder(new_environment):
    made = new_environment()
    made.install("-r", "binder/requirements.txt")
    return made


def lines(name):
    return (BINDER / name).read_text(encoding="utf-8").splitlines()


def test_the_constraints_are_names_and_versions_and_nothing_else():
    constraints = lines("constraints.txt")

    assert [line for line in constraints if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][a-z0-9.]*", line)] == []
    assert constraints == sorted(constraints, key=lambda line: line.split("=="))


def test_the_constraints_name_all_that_is_installed(binder, tmp_path):
    installed = json.loads(binder.python(INSTALLED, tmp_path))
    pinned = {f"{re.sub('[-_.]+', '-', name).lower()}=={version}" for name, version in installed}

    assert sorted(pinned - set(lines("constraints.txt"))) == [f"snapshot-explorer=={snapshot_explorer.__version__}"]


def test_python_is_the_oldest_that_the_package_takes():
    floor = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]

    assert lines("runtime.txt") == [f"python-{floor.removeprefix('>=')}"]


def test_java_is_the_one_that_the_tests_run_with():
    assert [f"need java {package}" for package in lines("apt.txt")] == re.findall(
        "^need java .*$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_what_runs_after_the_build_reads_every_sample_and_trusts_every_notebook(binder):
    wrote = binder.run(str(BINDER / "postBuild"), cwd=ROOT, path=os.defpath)

    assert re.findall(r"^(\w+): version \d+, \d+ rows$", wrote, re.MULTILINE) == [*snapshot_explorer.samples.names()]
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"Signing notebook: notebooks/{notebook.name}" in wrote


def test_the_quickstart_runs(binder, tmp_path):
    notebook = ROOT / "notebooks" / "01_quickstart.ipynb"

    wrote = binder.run("python", "-I", "-c", RUN, str(notebook), cwd=tmp_path)

    assert Path(wrote.strip()).is_relative_to(binder.folder)
