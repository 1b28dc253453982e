"""A small catalog for the tests of this folder."""

import pytest

from tests.support.ducklake.catalog_builder import Catalog


@pytest.fixture
def catalog(memory_root):
    """A catalog in SQLite with two commits of one table."""
    catalog = Catalog(*memory_root)
    catalog.commit_rows([(1, "a"), (2, "b")])
    catalog.commit_rows([(3, "c")])
    return catalog
