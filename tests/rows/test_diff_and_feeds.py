"""What a writer recorded of its changes, netted, is what the diff of the versions says."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[1] / "data"


def multiset(rows):
    return Counter(map(repr, canonical_rows(rows)))


def netted(table, a, b):
    """Return the recorded changes as rows that went and rows that came."""
    columns = table.at(b).arrow_schema.names
    changes = table.row_changes(a, b, columns, mode="changelog")
    came, went = (
        multiset(changes.filter(pc.is_in(changes["rowkind"], kinds)).select(columns))
        for kinds in (pa.array(["+I", "+U"]), pa.array(["-D", "-U"]))
    )
    return went - came, came - went


def recorded(table):
    """Return the versions whose changes were recorded whole: of Paimon with a lookup changelog, compacted ones."""
    kinds = table.history().to_arrow().select(["version", "kind"]).to_pylist()
    return sorted(row["version"] for row in kinds if table.format == "delta" or row["kind"] == "compact")


@pytest.mark.parametrize("name", ["delta/change_feed", "delta/mapping_vectors_feed", "paimon/inspected"])
def test_the_recorded_changes_net_to_the_diff(name):
    table = open_table(str(DATA / name))
    compared = 0
    for a, b in list(combinations(recorded(table), 2))[:25]:
        try:
            before, after = netted(table, a, b)
        except SnapshotExplorerError:
            continue  # nothing was recorded for these versions
        diff = table.diff_rows(a, b, key=[])
        compared += 1

        assert multiset(diff.before) == before
        assert multiset(diff.after) == after

    assert compared > 3
