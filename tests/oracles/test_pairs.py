"""The diff of tables of any two formats, written by the real engines, is what brute force on their rows finds.

For more pairs, write tables with `python -m tests.oracles.pair_tables FOLDER/FORMAT FORMAT SEED FAMILIES` for each
format, and set SNAPSHOT_EXPLORER_PAIR_TABLES to FOLDER and SNAPSHOT_EXPLORER_PAIRS to their number.
"""

import itertools
import json
import os
import random
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from pyarrow import feather

import snapshot_explorer as sx
from snapshot_explorer import open_table
from tests.support.pair_answers import as_texts, assert_diff_is_brute_force

# Two of each pair of formats.
PAIRS = int(os.environ.get("SNAPSHOT_EXPLORER_PAIRS", "32"))
SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "1"))
FORMATS = ("delta", "iceberg", "paimon", "hudi")
EMPTY_STRUCT = re.compile(r"\[\w+, NULL(, \w+, NULL)*\]")


def canonical(name):
    """Return what a column is called in all tables of a family."""
    return name.split("_")[0]


def without_empty_structs(rows):
    """Return rows with null for a struct whose fields are all null, as Paimon's reader does: apache/paimon 4785."""
    return Counter(
        tuple(None if EMPTY_STRUCT.fullmatch(text or "") else text for text in row) for row in rows.elements()
    )


def snapshots_of(families):
    """Return the snapshots of the tables of each family, by its number and whether `id` is unique in them."""
    found = {}
    for table in families:
        opened, family = open_table(table["path"]), (table["family"], table["is_keyed"])
        found.setdefault(family, []).append([opened.at(version) for version in opened.versions()])
    return found


def chosen_pairs(families, dice, count):
    """Yield pairs of snapshots of one family, of each pair of formats as many, and whether `id` is unique."""
    turns = itertools.cycle(itertools.product(range(len(FORMATS)), repeat=2))
    for a, b in itertools.islice(turns, count):
        family = dice.choice(sorted(families))
        yield dice.choice(families[family][a]), dice.choice(families[family][b]), family[1]


def options(dice, names, *, is_keyed):
    """Return arguments of `diff`."""
    key = dice.choice((["id"], ["id", "grp"], ["id"], [])) if is_keyed else []
    found = {"key": key}
    if dice.random() < 0.4:
        found["where"] = dice.choice(("grp = 1", "id < 8", "id >= 3 AND grp <> 2", "grp IS NOT NULL", "id > 1000"))
    if key and dice.random() < 0.4:
        found["tolerance"] = dice.choice((1, 0.5, Decimal("0.02"), {"grp": 1} if "grp" not in key else 2))
    if key and dice.random() < 0.2:
        found["relative_tolerance"] = 0.5
    found["ignore_case"], found["trim"] = dice.random() < 0.3, dice.random() < 0.3
    if dice.random() < 0.3:
        found["exclude"] = [dice.choice([name for name in names if name not in ("id", "grp")])]
    if dice.random() < 0.2:
        found["memory_limit"] = 0
    return found


@pytest.fixture(scope="session")
def families(request):
    folder = os.environ.get("SNAPSHOT_EXPLORER_PAIR_TABLES")
    written = (lambda name: Path(folder, name)) if folder else request.getfixturevalue("connector_wrote")
    return [table for name in FORMATS for table in json.loads((written(name) / "pairs.json").read_text())]


def test_the_loaded_rows_are_those_that_spark_reads(families):
    for table in families:
        read = feather.read_table(table["rows"])
        rows = as_texts(open_table(table["path"]).current.to_arrow(), read.column_names)
        expected = as_texts(read, read.column_names)
        if table["format"] == "paimon":
            rows, expected = without_empty_structs(rows), without_empty_structs(expected)

        assert rows == expected, table


def test_the_diff_of_any_two_tables_is_what_brute_force_finds(families):
    dice = random.Random(SEED)
    for a, b, is_keyed in chosen_pairs(snapshots_of(families), dice, PAIRS):
        names_a = {canonical(name): name for name in a.arrow_schema.names}
        names = [name for name in b.arrow_schema.names if canonical(name) in names_a]
        renames = {names_a[canonical(name)]: name for name in names if names_a[canonical(name)] != name}
        chosen = options(dice, names, is_keyed=is_keyed)
        try:
            assert_diff_is_brute_force(a, b, renames=renames, **chosen)
        except BaseException as error:
            error.add_note(f"{a!r}\n{b!r}\n{renames} {chosen}")
            raise


def test_tables_that_connectors_converted_migrated_or_cloned_are_proven_equal_without_reading_rows(connector_wrote):
    pairs = json.loads((connector_wrote("iceberg") / "twins.json").read_text())
    for pair in pairs:
        a, b = (
            open_table(side["path"], format=side["format"]).at(side.get("version", "latest"))
            for side in (pair["a"], pair["b"])
        )
        plan = sx.diff(a, b, key=[], preview=True)

        assert plan.proof.startswith("The rows are equal: both have the same"), pair["made"]
        assert (plan.a.files, plan.b.files) == (0, 0)
        assert sx.diff(a, b, key=[]).is_empty
        assert_diff_is_brute_force(a, b, [], {})
    assert len(pairs) == 7
