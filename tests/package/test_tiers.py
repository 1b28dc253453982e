"""Which tests the quick tier leaves out, what it says of them, and that it stays quick."""

import json
import re
from pathlib import Path

import pytest

from tests import conftest
from tests.scripts import seeded_faults
from tests.support import tiers

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[2]
PROJECT = """
import pytest
from tests.support.tiers import Tiers

def pytest_configure(config):
    config.addinivalue_line("markers", "full: in the full tier")
    for name in ("extras", "slow", "stores"):
        config.addinivalue_line("markers", f"{name}: a reason")
    places = {
        "test_them.py::test_slow": "slow",
        "test_them.py::test_slow_but_one": None,
        "test_them.py::test_alike[4]": None,
        "test_with_a_package.py": "extras",
    }
    sampled = {"test_them.py::test_alike": 3, "test_them.py::test_like_those": 3}
    tiers = Tiers(started={"server": "stores"}, places=places, packages={"s3fs": "extras"}, sampled=sampled)
    config.pluginmanager.register(tiers)

@pytest.fixture
def server():
    yield

@pytest.fixture
def client(server):
    yield
"""
TESTS = """
import pytest
from hypothesis import given, settings, strategies as st

seen = []

def test_plain(): pass
def test_with_a_server(client): pass
def test_slow(): pass
def test_slow_but_one(): pass

@pytest.mark.parametrize("number", range(7))
def test_alike(number): assert number in (0, 3, 4)

@pytest.mark.parametrize("number", range(2))
def test_like_those(number): assert number == 0

@pytest.mark.parametrize("reader", ["s3", "s3 by s3fs"])
def test_reader(reader): assert reader == "s3"

@settings(max_examples=100, database=None)
@given(st.integers())
def test_property(number): seen.append(number)

def test_examples(): assert len(seen) == 10
"""


@pytest.fixture
def project(pytester):
    """A project with tests in both tiers."""
    pytester.makeconftest(PROJECT)
    pytester.makepyfile(test_them=TESTS, test_with_a_package="import a_package\n\ndef test_it(): pass")
    return pytester


def test_the_quick_tier_leaves_out_by_fixture_and_by_place_and_says_so(project):
    result = project.runpytest("-m", tiers.QUICK)

    result.assert_outcomes(passed=9, deselected=8)
    line = "Quick tier. The full one adds 8 tests (6 slow, 1 stores, 1 extras), 1 files that need more packages, *"
    result.stdout.fnmatch_lines([line])


def test_all_tests_run_without_the_expression(project):
    result = project.runpytest(
        "test_them.py", "--deselect", "test_them.py::test_examples", "-k", "not alike and not those and not by"
    )

    result.assert_outcomes(passed=6, deselected=11)
    assert "Quick tier" not in result.stdout.str()


def test_with_workers_what_is_left_out_is_counted_once(project):
    result = project.runpytest("-m", tiers.QUICK, "-n", "2", "--dist", "loadfile")

    result.assert_outcomes(passed=9)
    result.stdout.fnmatch_lines(["Quick tier. The full one adds 8 tests (6 slow, 1 stores, 1 extras), 1 files *"])


@pytest.mark.parametrize(("variable", "examples"), [("", 100), ("1", 100 // tiers.SAME_FRACTION)])
def test_the_full_tier_tries_fewer_examples_only_where_they_are_the_same_each_time(
    project, monkeypatch, variable, examples
):
    monkeypatch.setenv(tiers.SAME_EXAMPLES, variable)
    with (project.path / "test_them.py").open("a") as file:
        file.write(f"\ndef test_how_many(): assert len(seen) == {examples}\n")

    result = project.runpytest("test_them.py", "-k", "property or how_many")

    result.assert_outcomes(passed=2, deselected=16)


@pytest.mark.parametrize("limit", ["TEST_SECONDS", "FILE_SECONDS"])
def test_a_quick_test_or_file_over_the_limit_fails_the_run_where_that_is_requested(project, monkeypatch, limit):
    monkeypatch.setattr(tiers, limit, -1)
    monkeypatch.delenv(tiers.LIMITS, raising=False)
    assert project.runpytest("-m", tiers.QUICK).ret == 0

    monkeypatch.setenv(tiers.LIMITS, "1")
    result = project.runpytest("-m", tiers.QUICK)

    assert result.ret == 1
    result.stdout.fnmatch_lines(["test_them.py* took * s of an idle processor: make it cheaper, or *"])


def has_tests(place):
    path, _, name = place.partition("::")
    pattern = re.compile(f"^def {name.partition('[')[0]}", re.MULTILINE)
    return any(not name or pattern.search(file.read_text("utf-8")) for file in ROOT.glob(f"{path}*"))


def test_the_seconds_of_each_file_are_written_where_that_is_requested(project, monkeypatch, tmp_path):
    monkeypatch.setenv(tiers.TIMES, str(tmp_path / "times"))
    monkeypatch.delenv(tiers.LIMITS, raising=False)

    project.runpytest("-m", tiers.QUICK)

    (line,) = (tmp_path / "times").read_text("utf-8").splitlines()
    assert json.loads(line).keys() == {"test_them.py"}


def test_every_place_in_the_lists_has_tests():
    assert [place for place in (*conftest.PLACES, *conftest.SAMPLED) if not has_tests(place)] == []


def test_the_code_of_every_seeded_fault_is_once_in_its_module():
    package = ROOT / "snapshot_explorer"

    assert len(seeded_faults.FAULTS) == 60
    for fault in seeded_faults.FAULTS:
        assert (package / fault.path).read_text("utf-8").count(fault.before) == 1, fault.what
