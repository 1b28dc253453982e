"""`show_versions()`: what a bug report needs, and nothing that is secret."""

import json
import platform
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import snapshot_explorer as sx
from snapshot_explorer.core import environment

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def names(requirements):
    return [re.match(r"[\w-]+", one)[0] for one in requirements]


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java that answers as Java 17 does."""
    home = tmp_path / "java-of-somebody"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))


def test_it_draws_a_line_for_each_version(java):
    drawn = dict(line.split(maxsplit=1) for line in repr(sx.show_versions()).splitlines())

    assert drawn["snapshot-explorer"] == sx.__version__
    assert drawn["python"].startswith(platform.python_version())
    assert drawn["pandas"] == metadata.version("pandas")
    assert drawn["java"] == "17.0.15"


def test_it_is_json():
    found = sx.show_versions()

    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_what_is_not_there_has_no_version(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "OPTIONAL", ("a-package-that-is-not-there",))

    found = sx.show_versions()

    assert (found.to_dict()["java"], found.to_dict()["a-package-that-is-not-there"]) == (None, None)
    assert re.search("^java +-$", repr(found), re.MULTILINE)


def test_it_shows_no_path_and_no_variable(java, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-of-a-key")

    shown = repr(sx.show_versions())

    for secret in ("canary", "java-of-somebody", str(Path.home())):
        assert secret not in shown


def test_its_lists_are_those_of_the_package():
    extras = PROJECT["optional-dependencies"]

    assert list(environment.DEPENDENCIES) == names(PROJECT["dependencies"])
    optional = {
        name for extra in ("catalogs", "paimon-catalogs", "sketches", "spark", "all") for name in names(extras[extra])
    }
    assert optional - {"snapshot-explorer"} <= set(environment.OPTIONAL)
