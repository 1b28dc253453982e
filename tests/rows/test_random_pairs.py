"""The diff of two tables of any formats is what DuckDB finds by brute force on their loaded rows."""

import os

import fsspec
import pytest

from snapshot_explorer import open_table
from tests.support.pair_answers import assert_diff_is_brute_force
from tests.support.pair_tables import random_pair

_PAIRS = int(os.environ.get("SNAPSHOT_EXPLORER_PAIRS", "20"))
_SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "33"))


@pytest.mark.parametrize("start", range(0, _PAIRS, 20))
def test_the_diff_of_two_tables_is_what_brute_force_finds(start):
    filesystem = fsspec.filesystem("memory")
    for number in range(start, min(start + 20, _PAIRS)):
        roots, formats, renames, is_keyed = random_pair(_SEED * 100_000 + number, f"/pairs{number}", filesystem)
        try:
            a, b = (open_table(f"memory://{root}").at("latest") for root in roots)
            assert_diff_is_brute_force(a, b, ["id"] if is_keyed else [], renames)
        except BaseException as error:
            error.add_note(f"pair {number} of {formats}")
            raise
        finally:
            filesystem.rm(f"/pairs{number}", recursive=True)
