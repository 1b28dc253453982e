"""The quick and the full tier: which tests are in which, how long a quick test may take, and what a run left out.

A test is in the full tier if it has a marker that says why. The markers are derived from the fixtures that a test
requests and from its place, by the lists in `tests/conftest.py`.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

QUICK = "not full"
"""The expression of pytest's option -m that pyproject.toml sets."""
ALL = "pip install -e '.[test-all]' && pytest -m ''"
"""What runs all tests."""
FRACTION = 10
"""A property test of the quick tier tries one of so many examples."""
SAME_EXAMPLES = "SNAPSHOT_EXPLORER_SAME_EXAMPLES"
"""The variable with which property tests try the same examples in each run."""
SAME_FRACTION = 3
"""A property test of the full tier tries one of so many examples where they are the same each time."""
_SETTINGS = "_hypothesis_internal_use_settings"
"""Where hypothesis has the settings of a function: it has no public way to change the number of their examples."""
LIMITS = "SNAPSHOT_EXPLORER_QUICK_LIMITS"
"""The variable that turns a quick test or file over the limits into a failure."""
TIMES = "SNAPSHOT_EXPLORER_TEST_TIMES"
"""The variable with the path of a file to which a run appends a line of JSON: the seconds of each file by the clock."""
TEST_SECONDS, FILE_SECONDS = 3, 10
"""The limits, in processor time of an idle machine on which the quick tier takes `TIER_SECONDS`."""
TIER_SECONDS = 210
"""The processor time of the whole quick tier on a machine for which the limits are right."""
UNEVEN = 1.5
"""How much slower than in the mean of a run a machine is now and then, by other work on it."""


def is_quick(config):
    """Return whether a run is of the quick tier."""
    return config.option.markexpr == QUICK


def processor_seconds():
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Tiers:
    """Derives the markers of tests, and reports what a run of the quick tier left out and what took too long in it.

    `started` has the markers of fixtures by their names, `places` those of tests by how their ids begin: the longest
    beginning counts, and None stands for the quick tier. `packages` has those of tests by how a parameter of theirs
    ends. Of a function in the places of `sampled` the quick tier has the first of its cases, and then one of so many.
    """

    def __init__(self, *, started, places, packages, sampled):
        self._started, self._packages, self._sampled = started, packages, sampled
        self._places = places
        self._place_of, self._sample_of = _Beginnings(places), _Beginnings(sampled)
        self._left_out, self._files_left_out, self._fewer_examples = Counter(), set(), 0
        self._test_seconds, self._file_seconds, self._file_times = {}, Counter(), Counter()

    def pytest_ignore_collect(self, collection_path, config):
        """Leave out of the quick tier the files that need more packages: they may not even be imported."""
        path = collection_path.relative_to(config.rootpath).as_posix()
        is_left_out = is_quick(config) and self._places.get(path) == "extras" and not self._has_quick_place(path)
        if is_left_out:
            self._files_left_out.add(path)
        return is_left_out or None

    def _has_quick_place(self, path):
        return any(place.startswith(path) and marker is None for place, marker in self._places.items())

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        """Add the markers, before pytest chooses by them."""
        seen = Counter()
        for item in items:
            for marker in sorted(self._markers(item, seen)):
                item.add_marker(marker)
                item.add_marker("full")
        if is_quick(config):
            self._fewer_examples = _try_fewer_examples(items, FRACTION)
        elif os.environ.get(SAME_EXAMPLES):
            _try_fewer_examples(items, SAME_FRACTION)

    def _markers(self, item, seen):
        markers = {self._started[name] for name in getattr(item, "fixturenames", ()) if name in self._started}
        texts = [value for value in _parameters(item) if isinstance(value, str)]
        markers |= {self._packages[name] for name in self._packages if any(text.endswith(name) for text in texts)}
        place = self._place_of.longest(item.nodeid)
        if place and self._places[place]:
            markers.add(self._places[place])
        sample = self._sample_of.longest(item.nodeid)
        is_listed = place and self._places[place] is None and len(place) > len(sample or "")
        if sample and not markers and not is_listed:
            function = item.nodeid.partition("[")[0]
            seen[function] += 1
            if seen[function] % self._sampled[sample] != 1:
                markers.add("slow")
        return markers

    def pytest_deselected(self, items):
        """Count the tests of the full tier that a run leaves out, by a marker that says why."""
        derived = (*self._started.values(), *self._places.values(), *self._packages.values(), "slow")
        reasons = sorted({*derived} - {None})
        for item in items:
            if item.get_closest_marker("full"):
                self._left_out[next(name for name in reasons if item.get_closest_marker(name))] += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Measure the processor time of a test with its fixtures."""
        start, began = processor_seconds(), time.perf_counter()
        result = yield
        seconds = processor_seconds() - start
        self._file_seconds[item.nodeid.partition("::")[0]] += seconds
        self._file_times[item.nodeid.partition("::")[0]] += time.perf_counter() - began
        # The last cell of a notebook counts its whole kernel, which ends then. Its file has a limit, too.
        if seconds > TEST_SECONDS and not item.nodeid.startswith("notebooks/"):
            self._test_seconds[item.nodeid] = seconds
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Add what a worker measured and left out: each collects the same tests, and runs others."""
        sent = getattr(node, "workeroutput", {}).get("tiers")
        if sent is not None:
            self._left_out, self._files_left_out = Counter(sent["left out"]), set(sent["files left out"])
            self._fewer_examples = sent["fewer examples"]
            self._test_seconds |= sent["tests"]
            self._file_seconds.update(sent["files"])
            self._file_times.update(sent["times"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        """Return what a worker measured; fail where that is requested and a quick test or file took too long."""
        config = session.config
        if hasattr(config, "workeroutput"):
            config.workeroutput["tiers"] = {
                "left out": dict(self._left_out),
                "files left out": sorted(self._files_left_out),
                "fewer examples": self._fewer_examples,
                "tests": self._test_seconds,
                "files": dict(self._file_seconds),
                "times": dict(self._file_times),
            }
            return
        if path := os.environ.get(TIMES):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps({name: round(seconds, 1) for name, seconds in self._file_times.items()}) + "\n")
        if os.environ.get(LIMITS) and is_quick(config) and self._too_long():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _too_long(self):
        """Return the quick tests and files that took longer than they may, with their seconds on an idle machine.

        How slow the machine was is how long the whole tier took: every test counts, so no moment decides.
        """
        slowness = max(1, self._file_seconds.total() / TIER_SECONDS)
        longest = [(self._file_seconds, FILE_SECONDS), (self._test_seconds, TEST_SECONDS)]
        return {
            name: seconds / slowness
            for taken, limit in longest
            for name, seconds in taken.items()
            if seconds / slowness > limit * UNEVEN
        }

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter, config):
        """Write what took too long in the quick tier, and what the full one adds."""
        if not is_quick(config):
            return
        if os.environ.get(LIMITS):
            for name, seconds in sorted(self._too_long().items()):
                terminalreporter.write_line(
                    f"{name} took {seconds:.1f} s of an idle processor: make it cheaper, or put it into the full tier "
                    "by a line of tests/conftest.py"
                )
        if self._left_out:
            reasons = ", ".join(f"{number:,} {name}" for name, number in self._left_out.most_common())
            files = f", {len(self._files_left_out)} files that need more packages," if self._files_left_out else ""
            terminalreporter.write_line(
                f"Quick tier. The full one adds {self._left_out.total():,} tests ({reasons}){files} and more examples "
                f"of {self._fewer_examples} property tests. To run it: {ALL}"
            )


def _parameters(item):
    """Return the values of a test's parameters."""
    return item.callspec.params.values() if hasattr(item, "callspec") else ()


class _Beginnings:
    """Finds the longest of the beginnings that a test's id has."""

    def __init__(self, beginnings):
        self._beginnings, self._of_file = sorted(beginnings, key=len, reverse=True), {}

    def longest(self, nodeid):
        """Return it; None if the id has none of them."""
        file = nodeid.partition("::")[0]
        if file not in self._of_file:  # few of hundreds, and a run has twenty thousand ids
            self._of_file[file] = [name for name in self._beginnings if file.startswith(name.partition("::")[0])]
        return next((name for name in self._of_file[file] if nodeid.startswith(name)), None)


def _try_fewer_examples(items, fraction):
    """Have property tests try one of so many examples; return how many functions these tests call."""
    functions = {id(item.obj): item.obj for item in items if getattr(item.obj, "is_hypothesis_test", False)}
    for function in functions.values():
        chosen = getattr(function, _SETTINGS)
        setattr(function, _SETTINGS, hypothesis.settings(chosen, max_examples=max(1, chosen.max_examples // fraction)))
    return len(functions)
