"""Damaged catalogs: cells with other values, and files in the place of others. Every public call answers or refuses.

SNAPSHOT_EXPLORER_SEED says what is random.
"""

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from snapshot_explorer import find_tables, open_table, samples
from snapshot_explorer.errors import SnapshotExplorerError

DATA = Path(__file__).parents[2] / "data" / "ducklake"
LAKES = {
    "parts.sqlite": (DATA / "parts", "events"),
    "festival.ducklake": (Path(samples.__file__).parent / "festival", "tickets"),
}
SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "1"))
MUTATIONS = int(os.environ.get("SNAPSHOT_EXPLORER_MUTATIONS", "12"))
VALUES = (None, -1, 0, 1, 3, 2**62, 2**63 - 1, "", "x", "../x", "1.5", "nan", "a\x00b", b"\xff\xfe", 1e300)


def mutated(folder, catalog, chance):
    """Change a cell of a catalog, or put a file in the place of another, and say what was done."""
    files = sorted(folder.rglob("*.parquet"))
    if chance.random() < 0.15:
        one, other = chance.sample(files, 2)
        shutil.copy(one, other)
        return f"{one.name} in the place of {other.name}"
    with closing(sqlite3.connect(folder / catalog)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice([name for name in names if database.execute(f'SELECT 1 FROM "{name}"').fetchone()])
        column = chance.choice([row[1] for row in database.execute(f'PRAGMA table_info("{table}")')])
        rows = [row for (row,) in database.execute(f'SELECT rowid FROM "{table}"')]
        others = [value for (value,) in database.execute(f'SELECT "{column}" FROM "{table}"')]
        row, value = chance.choice(rows), chance.choice([*VALUES, *others])
        # An UPDATE that breaks a constraint changes nothing: the lake is not damaged then.
        database.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, row))
        database.commit()
    return f"{table}.{column} = {value!r} in row {row}"


def calls(path, name):
    """Return the public calls on a table by name; each opens it anew."""

    def opened():
        return open_table(path, table=name)

    def changed():
        versions = opened().versions()
        return opened().row_changes(versions[0], versions[-1])

    return {
        "find_tables": lambda: find_tables(path).to_dict(),
        "history": lambda: opened().history(limit=None).to_dict(),
        "files": lambda: opened().current.files().to_dict(),
        "entries": lambda: [opened().at(version).manifests().to_dict() for version in opened().versions()],
        "lifetimes": lambda: len(opened().lifetimes().versions),
        "plan": lambda: opened().current.plan(where="id > 5").to_dict(),
        "rows": lambda: [opened().at(version).to_arrow() for version in opened().versions()],
        "changes": changed,
        "retention": lambda: opened().retention(keep="1s").freed.num_rows,
        "orphans": lambda: opened().orphans().files.num_rows,
        "inspect": lambda: [opened().inspect(word).to_dict() for word in ("snapshots", "options", "tables")],
        "properties": lambda: opened().current.properties,
    }


@pytest.mark.parametrize("catalog", LAKES)
def test_calls_on_damaged_catalogs_answer_or_refuse(catalog, tmp_path):
    source, name = LAKES[catalog]
    failures = []
    for number in range(MUTATIONS):
        chance = random.Random(f"{SEED} {catalog} {number}")
        folder = shutil.copytree(source, tmp_path / str(number))
        done = mutated(folder, catalog, chance)
        for call, function in calls(folder / catalog, name).items():
            try:
                function()
            except SnapshotExplorerError:
                pass
            except Exception as error:  # noqa: BLE001 - what must not happen
                failures.append(f"seed {SEED}, {number}: {done}: {call}: {type(error).__name__}: {error}")
        shutil.rmtree(folder)

    assert failures == []
