"""The rows that commits changed: by Spark's changelog, and as the difference of the rows of two versions."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.table import parts_of
from tests.inner.iceberg import row_codes
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[2] / "data"
CHANGES = sorted((DATA / "expected" / "iceberg_changes").glob("*/*.json"))
CHANGING = ("v2_cow", "v2_mor_partitioned", "v2_equality_deletes", "v3_dv", "v3_row_lineage")


@pytest.mark.parametrize("path", CHANGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_changes_are_those_of_sparks_changelog(path):
    expected = json.loads(path.read_text(encoding="utf-8"))
    table = open_table(DATA / "iceberg" / path.parent.name)

    found = table.row_changes(expected["first"], expected["last"], expected["columns"])

    assert found.column_names == ["rowkind", *expected["columns"]]
    assert canonical_rows(found.drop_columns(["rowkind"])) == expected["rows"]


@pytest.mark.parametrize("mode", ["delta", "diff"])
@pytest.mark.parametrize("name", CHANGING)
def test_the_rows_of_a_version_and_the_changes_after_it_are_those_of_a_later_one(name, mode):
    table = open_table(DATA / "iceberg" / name)
    versions = table.versions()
    counted = {version: Counter(map(json.dumps, canonical_rows(table.at(version).to_arrow()))) for version in versions}

    for first, last in [*pairwise(versions), (versions[0], versions[-1])]:
        changes = canonical_rows(table.row_changes(first, last, mode=mode))
        rows = Counter(counted[first])
        for kind, *row in changes:
            rows[json.dumps(row)] += 1 if kind in ("+I", "+U") else -1
        assert {row: count for row, count in rows.items() if count} == counted[last]
        if mode == "diff":
            both = (counted[last] - counted[first]).total() + (counted[first] - counted[last]).total()
            assert len(changes) == both


def test_row_ids_tell_updates_from_deletes_and_inserts():
    table = open_table(DATA / "iceberg" / "v3_row_lineage")
    versions = table.versions()

    found = table.row_changes(versions[0], versions[-1], mode="delta")

    kinds = found["rowkind"].to_pylist()
    places = [place for place, kind in enumerate(kinds) if kind == "-U"]
    assert places
    assert all(kinds[place + 1] == "+U" for place in places)


def test_a_condition_leaves_out_rows_and_kinds():
    table = open_table(DATA / "iceberg" / "v2_cow")
    versions = table.versions()
    every = table.row_changes(versions[0], versions[-1]).to_pylist()

    found = table.row_changes(versions[0], versions[-1], where="rowkind = '-D' AND id < 5").to_pylist()

    assert found == [row for row in every if row["rowkind"] == "-D" and row["id"] < 5]
    assert found


def test_iceberg_keeps_no_changelog():
    table = open_table(DATA / "iceberg" / "v2_cow")

    with pytest.raises(InvalidArgumentError, match="Iceberg tables have no changelog"):
        table.row_changes("earliest", "latest", mode="changelog")
    with pytest.raises(InvalidArgumentError, match="Iceberg tables have no changelog"):
        table.at("latest").changelog()


NESTED = pa.struct([("a", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.float64()))])


def test_equal_rows_have_equal_numbers_and_others_have_not():
    nan = float("nan")
    rows = [
        {"a": [1, 2], "m": [("x", 0.0), ("y", nan)]},
        {"a": [1, 2], "m": [("y", nan), ("x", 0.0)]},
        {"a": [1, 2], "m": [("x", -0.0), ("y", nan)]},
        {"a": [1], "m": [("x", 0.0), ("y", nan)]},
        {"a": [], "m": []},
        {"a": None, "m": []},
        {"a": [], "m": None},
        {"a": [None], "m": []},
        {"a": None, "m": None},
        None,
        None,
    ]

    codes = row_codes([pa.array(rows, NESTED)], len(rows)).tolist()

    assert codes[0] == codes[1]
    assert codes[9] == codes[10]
    assert len(set(codes)) == len(rows) - 2
    sliced = row_codes([pa.array(rows, NESTED).slice(3, 6)], 6).tolist()
    assert len(set(sliced)) == 6


@pytest.mark.parametrize("name", ["v3_dv", "v2_mor_partitioned", "v2_equality_deletes"])
def test_of_a_file_in_two_versions_only_the_rows_between_their_deletes_are_read(name):
    table = open_table(DATA / "iceberg" / name)
    compared = 0
    for first, last in pairwise(table.versions()):
        a, b = parts_of(table.at(first)).loaded.version, parts_of(table.at(last)).loaded.version
        before, after = ({v.row_identity.without_vector(split): split for split in v.plan().splits} for v in (a, b))
        for key in before.keys() & after.keys():
            old, new = (
                [row for batch in v.read(one[key], ["_pos"]) for row in batch.to_pylist()]
                for v, one in ((a, before), (b, after))
            )
            gone = a.row_identity.rows_deleted(before[key], after[key])
            found = [] if gone is None else [row for batch in a.read(gone, ["_pos"]) for row in batch.to_pylist()]
            assert found == [row for row in old if row not in new]
            compared += bool(found)
    assert compared
