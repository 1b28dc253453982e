"""A seeded sample of what `old_metadata_search` does whole: a damaged metadata file of old versions, and every call."""

import os
import random

import pytest

from tests.support import fault_search, old_metadata_search
from tests.support.faults import registered

CASES = 8
"""Cases of each table: about a second of processor."""
SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "13"))
"""`python -m tests.support.old_metadata_search --seed N` looks for more."""


FORMATS = [kind for kind in fault_search.FORMATS if kind != "ducklake"]
"""The formats with metadata in files."""


def _tables():
    """Return a table of each format, by chance, of those with several versions."""
    names = [name for name in fault_search.tables() if not name.endswith(("/empty", "only_backup_properties"))]
    chance = random.Random(SEED)
    return [chance.choice([name for name in names if name.startswith(f"{kind}/")]) for kind in FORMATS]


@pytest.mark.parametrize("table", _tables())
def test_one_damaged_file_of_old_versions_is_named_and_changes_no_other_answer(table):
    _, findings = old_metadata_search.run([table], sample=CASES, seed=SEED)

    assert not list(map(str, findings))


@pytest.mark.parametrize("kind", FORMATS)
def test_metadata_files_of_every_format_are_damaged(kind):
    name = next(name for name in fault_search.tables() if name.startswith(f"{kind}/") and not name.endswith("/empty"))
    with registered():
        history = old_metadata_search.DamagedHistory(name, fault_search.tables()[name])

    assert {damage.kind for damage in history.damages()} == set(old_metadata_search.KINDS)
