"""What tests expect of older libraries."""

import re
from contextlib import contextmanager

import pytest

from snapshot_explorer.core import old_libraries
from snapshot_explorer.errors import MissingDependencyError, UnsupportedFeatureError


def is_older(library, version):
    """Return whether the installed version of a library is older."""
    return old_libraries.is_older(old_libraries.installed_version(library), version)


def since_duckdb(version, reason):
    """Return a mark for what only this DuckDB and newer ones do, which is no property of this package."""
    return pytest.mark.skipif(is_older("duckdb", version), reason=f"DuckDB before {version}: {reason}")


@contextmanager
def refused_if(case):
    """Expect a refusal that names the version that helps, if the installed version has the problem of the case."""
    if not case.applies():
        yield
        return
    with pytest.raises((MissingDependencyError, UnsupportedFeatureError), match=re.escape(case.remedy())):
        yield
