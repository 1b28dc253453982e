"""Tables that Apache Paimon writes here and now, against what Paimon itself reads from them at every version.

Of the older release a run writes every fourth table. SNAPSHOT_EXPLORER_SEED says which, and what is random: a failure
names the seed that it came from.
"""

import json
import os
import random
import re

import pytest

from snapshot_explorer.errors import SnapshotExplorerError, UnsupportedFeatureError
from tests.support import logical_counts
from tests.support.canonical import canonical_rows
from tests.support.oracles.comparing import assert_every_version, assert_rows, open_written
from tests.support.oracles.conditions import conditions, matching
from tests.support.oracles.paimon_histories import TABLES

SEED = os.environ.get("SNAPSHOT_EXPLORER_SEED", "2")
OLDER = [name for name, table in TABLES.items() if "0.9" in table.releases][random.Random(SEED).randrange(4) :: 4]
WRITTEN = {"1.4": [name for name, table in TABLES.items() if "1.4" in table.releases], "0.9": OLDER}
"""The tables of each release."""
CASES = [
    pytest.param(name, release, id=f"{name}-{release}-seed-{SEED}")
    for release, names in WRITTEN.items()
    for name in names
]
of_every_table = pytest.mark.parametrize(("name", "release"), CASES)


@pytest.fixture
def written(oracle):
    """A callable: the folder with the tables that a release wrote."""
    return lambda release: oracle("paimon_write.py", release, SEED, *(OLDER if release == "0.9" else ()))


@pytest.mark.parametrize("release", ["1.4", "0.9"])
def test_the_histories_were_written(written, release):
    skipped = json.loads((written(release) / "skipped.json").read_text())

    whole = [step for steps in skipped.values() for step in steps if step.startswith("the whole history")]

    assert not whole
    assert sum(map(len, skipped.values())) < 2 * len(skipped)


@of_every_table
def test_rows_are_what_paimon_reads_at_every_version(written, name, release):
    assert_every_version(written(release), name, unordered=TABLES[name].unordered)


@of_every_table
def test_the_rows_of_commits_are_those_that_differ(written, name, release):
    logical_counts.check(open_written(written(release), name))


@of_every_table
def test_incremental_rows_are_what_paimon_reads(written, name, release):
    folder = written(release)
    table = open_written(folder, name)
    for case in json.loads((folder / "changes" / f"{name}.json").read_text()):
        (first, last), mode = case["between"], case["mode"]
        if case["outcome"] == "error":
            with pytest.raises(SnapshotExplorerError):
                table.row_changes(first, last, mode=mode)
            continue
        rows = changes(table, case, TABLES[name].changes_refused)
        if rows is not None:
            assert_rows(rows, {"version": f"{first} to {last}, {mode}", **case}, unordered=TABLES[name].unordered)


def changes(table, case, refused):
    """The incremental rows of a table; None where they are refused, as it is known."""
    try:
        return table.row_changes(*case["between"], mode=case["mode"])
    except UnsupportedFeatureError as error:
        if refused and re.search(refused, str(error)):
            return None
        raise


@of_every_table
def test_a_condition_skips_no_row(written, name, release):
    table, dice = open_written(written(release), name), random.Random(f"{SEED} {name}")
    snapshot = table.at(dice.choice(table.versions()))
    try:
        rows = snapshot.to_arrow()
    except SnapshotExplorerError:
        return
    for condition in conditions(rows, dice):
        kept = rows.take(matching(rows, condition))

        found = snapshot.to_arrow(where=condition)

        assert canonical_rows(found) == canonical_rows(kept), condition
        assert snapshot.count(condition) == len(kept), condition
