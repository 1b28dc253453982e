"""Which refused features the tests of a run raised."""

import re
from string import Formatter

import pytest

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats import features as shared
from snapshot_explorer.formats.delta import features as delta
from snapshot_explorer.formats.ducklake import features as ducklake
from snapshot_explorer.formats.hudi import features as hudi
from snapshot_explorer.formats.iceberg import features as iceberg
from snapshot_explorer.formats.paimon import features as paimon
from tests.support.tiers import is_quick

FORMATS = {
    "paimon": paimon.FEATURES,
    "delta": delta.FEATURES,
    "iceberg": iceberg.FEATURES,
    "hudi": hudi.FEATURES,
    "ducklake": ducklake.FEATURES,
}
DECLARED = tuple(dict.fromkeys(feature for features in FORMATS.values() for feature in features))
REFUSED = [feature for feature in DECLARED if feature.status == "refused"]

RAISED_BELOW = {
    shared.OTHER_STORAGES: "storage refuses it, for every format, and storage contains nothing about a format",
    delta.CLEANED_VERSIONS: "the version is not found: SnapshotNotFoundError names the first version that exists",
}
"""Features that are refused with another message than theirs, and why."""

UNTESTED = {
    **RAISED_BELOW,
    paimon.REMOVED_INDEXES: "no writer makes such index manifests: only streaming readers expect them",
    paimon.CHANGELOG_OF_LEVEL_0: "no test has such a changelog yet",
    paimon.DIFFERENCE_OF_BUCKET_COUNTS: "no test rescales buckets between two versions yet",
    iceberg.LARGE_DELETION_VECTORS: "no test has such a large deletion vector yet",
    paimon.OTHER_THETA_SKETCHES: "the test is in the full tier: it needs the package datasketches",
}
"""Refused features that no test of the quick tier raises, and why."""


def fields(feature):
    """Return the names of the fields in a feature's message."""
    return {name for _, name, _, _ in Formatter().parse(feature.message) if name}


def _pattern(message):
    return re.compile(
        "".join(re.escape(text) + (".*" if name else "") for text, name, _, _ in Formatter().parse(message)), re.DOTALL
    )


PATTERNS = {feature: _pattern(feature.message) for feature in REFUSED if feature.message}


class RefusalRecorder:
    """Records the refusals of a run, over all its workers, and fails a run of all tests in which one is missing."""

    def __init__(self):
        self.messages = set()

    def pytest_configure(self):
        """Record the message of each error that refuses a feature."""
        original = UnsupportedFeatureError.__init__

        def recording(error, *args, **kwargs):
            original(error, *args, **kwargs)
            self.messages.add(str(error))

        UnsupportedFeatureError.__init__ = recording

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Add the messages of a worker."""
        self.messages.update(getattr(node, "workeroutput", {}).get("refusals", ()))

    def missing(self):
        """Return the refused features that no test raised, and for which `UNTESTED` has no reason."""
        return [
            feature
            for feature, pattern in PATTERNS.items()
            if feature not in UNTESTED and not any(map(pattern.search, self.messages))
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        """Return the messages of a worker; of a run of all tests, fail if a refusal is missing."""
        config = session.config
        if hasattr(config, "workeroutput"):
            config.workeroutput["refusals"] = sorted(self.messages)
        elif is_of_all_tests(config) and not session.testsfailed and self.missing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter, config):
        """Name the refusals that are missing in a run of all tests."""
        if is_of_all_tests(config):
            for feature in self.missing():
                terminalreporter.write_line(f"No test raised the refusal of {feature.name}: {feature.message}")


def is_of_all_tests(config):
    """Return whether a run was given no paths, and leaves out no tests but those of the full tier."""
    option = config.option
    is_part = option.markexpr and not is_quick(config)
    is_selection = option.keyword or is_part or option.collectonly or option.maxfail
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not is_selection
