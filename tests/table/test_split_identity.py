"""Splits of different versions that share an identity hold the same rows."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.table import parts_of
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted(folder for kind in ("paimon", "delta", "iceberg") for folder in (DATA / kind).iterdir())


def planned(table):
    """Yield versions and the files or merged groups of files that their rows are read from."""
    for number in table.versions():
        try:
            version = parts_of(table.at(number)).loaded.version
            splits = version.plan().splits
        except SnapshotExplorerError:
            continue  # a feature that is not read, or metadata that is gone
        for split in splits:
            for part in version.split_by_file(split):
                yield version, part


def rows(version, part):
    names = version.arrow_schema.names
    batches = list(version.read(part, names))
    return canonical_rows(pa.Table.from_batches(batches)) if batches else []


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_splits_of_one_identity_hold_the_same_rows(path):
    first: dict[object, object] = {}
    try:
        table = open_table(str(path))
    except SnapshotExplorerError:
        return

    for version, part in planned(table):
        known = first.setdefault(part.identity, (version, part))
        if known[0] is version:
            continue
        try:
            assert rows(*known) == rows(version, part)
        except SnapshotExplorerError:
            continue  # a data file that is gone


def test_a_file_that_both_versions_have_is_shared_and_a_deletion_vector_tells_it_apart():
    table = open_table(str(DATA / "delta" / "dv_partitioned"))
    versions = table.versions()
    identities = [
        {part.identity for split in version.plan().splits for part in version.split_by_file(split)}
        for version in (parts_of(table.at(number)).loaded.version for number in versions)
    ]

    shared = [len(a & b) for a, b in pairwise(identities)]
    changed = [len(a ^ b) for a, b in pairwise(identities)]

    assert any(shared)
    assert any(changed)


def test_another_schema_is_another_identity():
    table = open_table(str(DATA / "paimon" / "evolution_append"))
    first, last = (parts_of(table.at(number)).loaded.version for number in (table.versions()[0], table.versions()[-1]))

    theirs = {part.identity for split in first.plan().splits for part in first.split_by_file(split)}
    ours = {part.identity for split in last.plan().splits for part in last.split_by_file(split)}

    assert first.schema != last.schema
    assert not theirs & ours
