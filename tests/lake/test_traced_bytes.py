"""A lake's trace against every byte of random tables of all formats: data, logs, manifests, catalogs, lost files."""

import json
import os
import random
import shutil
import struct

import fastavro
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem

from snapshot_explorer import open_lake
from tests.support.delta.table_builder import DeltaTable, cdc, remove
from tests.support.ducklake.catalog_builder import Catalog
from tests.support.hudi.table_builder import HudiTable, records
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

LAKES = int(os.environ.get("SNAPSHOT_EXPLORER_TRACED_LAKES", "8"))
"""How many random lakes are traced; each has six tables."""
FILES = LocalFileSystem(auto_mkdir=True)
IDS = [70_010_000 + number for number in range(14)]
STEPS = ("append", "append", "append", "replace", "compact", "hold", "mark", "lose", "forget", "vacuum")


def name_of(number):
    return f"customer-{number % 100:02d}"


class Life:
    """A table, and random steps of its history."""

    def __init__(self, root, chance):
        self.root, self.chance, self.rows = root, chance, {}
        self.commits = 0
        self.begin()

    def take(self, step):
        if step == "append" or not self.rows:
            self.write(self.some(), [])
        elif step in ("replace", "compact"):
            gone = self.chance.sample(sorted(self.rows), self.chance.randrange(1, len(self.rows) + 1))
            kept = [row for file in gone for row in self.rows.pop(file)]
            self.write(kept if step == "compact" else self.some(), gone, compacts=step == "compact")
        elif step == "lose":
            file = self.chance.choice(sorted(path for path in self.root.rglob("data-*.parquet")))
            shutil.copyfile(file, file.with_name(f"lost-{self.commits}-{file.name}"))
        else:
            getattr(self, step)()

    def write(self, rows, gone, *, compacts=False):
        self.commits += 1
        self.commit(rows, gone, compacts=compacts)
        self.rows[self.commits] = rows

    def some(self):
        chosen = [self.chance.choice(IDS) for _ in range(self.chance.randrange(1, 5))]
        return [(number, name_of(number)) for number in chosen]

    def hold(self):
        """Have something hold what is there."""

    def mark(self):
        """Delete rows by a file of its own, or log changes."""

    def forget(self):
        """Remove earlier versions."""

    def vacuum(self):
        """Delete data files that the newest version does not have."""
        for path in [path for path in self.root.rglob("data-*.parquet") if self.number_of(path) not in self.rows]:
            path.unlink()

    def number_of(self, path):
        return int(path.name.removeprefix("data-").partition(".")[0].partition("_")[0])


class PaimonLife(Life):
    """With statistics, tags, a branch and expired snapshots; in every other table with partitions."""

    def begin(self):
        partitioned, self.first = self.chance.random() < 0.3, 1
        self.table = PaimonTable(FILES, str(self.root), statistics=True, by_name=partitioned)

    def commit(self, rows, gone, *, compacts):
        kind = "COMPACT" if compacts else "OVERWRITE" if gone else "APPEND"
        rows = [(number, rows[0][1]) for number, _ in rows] if self.table.by_name else rows
        self.table.commit(rows, removed=[f"data-{number}.parquet" for number in gone], kind=kind)

    def hold(self):
        self.table.tag(f"v{self.commits}", self.chance.randrange(self.first, self.table.snapshots + 1))

    def forget(self):
        self.first = self.chance.randrange(self.first, self.table.snapshots + 1)
        self.table.expire(self.first)


class DeltaLife(Life):
    """With statistics, change data, deletion vectors and checkpoints."""

    def begin(self):
        self.table = DeltaTable(None, self.root, fields=[("id", "long"), ("name", "string")])

    def commit(self, rows, gone, *, compacts):
        changes = not compacts
        bounds = {
            key: dict(zip(("id", "name"), edge(rows), strict=True))
            for key, edge in (("minValues", least), ("maxValues", most))
        }
        stats = json.dumps({"numRecords": len(rows), "nullCount": {"id": 0, "name": 0}} | bounds)
        actions = [self.table.data(f"data-{self.commits}.parquet", rows, data_change=changes, stats=stats)]
        actions += [remove(f"data-{number}.parquet", data_change=changes) for number in gone]
        if changes and self.chance.random() < 0.3:
            path = f"_change_data/cdc-{self.commits}.parquet"
            shutil.copyfile(self.root / f"data-{self.commits}.parquet", self._made(path))
            actions.append(cdc(path, size=self._made(path).stat().st_size))
        self.table.commit(*actions)

    def _made(self, path):
        (self.root / path).parent.mkdir(exist_ok=True)
        return self.root / path

    def hold(self):
        self.table.checkpoint()

    def forget(self):
        self.table.checkpoint()
        for path in self.root.glob("_delta_log/*.json"):
            if int(path.stem) < self.table.version:
                path.unlink()


class IcebergLife(Life):
    """With bounds, tags, position deletes and expired snapshots."""

    def begin(self):
        self.table = BoundedIceberg(FILES, str(self.root), location=str(self.root))

    def commit(self, rows, gone, *, compacts):
        kind = "replace" if compacts else "overwrite" if gone else "append"
        self.snapshot = self.table.commit(rows, removed=[f"data-{number}.parquet" for number in gone], operation=kind)
        self.numbers = getattr(self, "numbers", {}) | {self.table.commits: self.commits}

    def write(self, rows, gone, *, compacts=False):
        self.commits = self.table.commits  # files are counted together with delete files
        super().write(rows, gone, compacts=compacts)

    def hold(self):
        self.table.tag(f"v{self.commits}", self.snapshot)

    def forget(self):
        if list(self.table.metadata["refs"]) == ["main"]:
            self.table.expire(self.table.sequence)

    def mark(self):
        file = self.chance.choice(sorted(self.rows))
        self.snapshot = self.table.delete(f"data-{file}.parquet", [0])


class BoundedIceberg(IcebergTable):
    """Records the bounds of data files."""

    def data_file(self, name, rows):
        def bounds(row):
            return [{"key": 1, "value": struct.pack("<q", row[0])}, {"key": 2, "value": row[1].encode()}]

        return super().data_file(name, rows) | {"lower_bounds": bounds(least(rows)), "upper_bounds": bounds(most(rows))}


class HudiLife(Life):
    """With log files, which update rows."""

    def begin(self):
        self.root.mkdir(parents=True)
        self.table = HudiTable(FILES, str(self.root), properties={"hoodie.table.type": "MERGE_ON_READ"}.items())

    def commit(self, rows, gone, *, compacts):
        operation = "CLUSTER" if compacts else "INSERT_OVERWRITE" if gone else "INSERT"
        action = "replacecommit" if gone else "deltacommit"
        rows = list(dict(rows).items())
        self.table.insert(rows, replaced=[f"data-{number}" for number in gone], operation=operation, action=action)

    def write(self, rows, gone, *, compacts=False):
        self.commits = self.table.number
        super().write(rows, gone, compacts=compacts)

    def mark(self):
        group, row = self.chance.choice(sorted(self.rows)), self.chance.choice(self.some())
        number = self.table.number + 1
        self.table.log(f"data-{group}", [records(number, [row])])


class DuckLakeLife(Life):
    """With statistics in the catalog."""

    def begin(self):
        self.root.mkdir(parents=True)
        self.table = Catalog(FILES, str(self.root))

    def commit(self, rows, gone, *, compacts):
        words = ("rewrite_delete",) if compacts else ("inserted_into_table", *(("deleted_from_table",) if gone else ()))
        self.table.commit_rows(rows, removed=gone, words=words, first_row_id=1 if compacts else None)


KINDS = (PaimonLife, DeltaLife, IcebergLife, HudiLife, DuckLakeLife)


def least(rows):
    return min(row[0] for row in rows), min(row[1] for row in rows)


def most(rows):
    return max(row[0] for row in rows), max(row[1] for row in rows)


def values_in(value):
    """Yield the texts and bytes in a value."""
    if isinstance(value, dict):
        yield from values_in([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from values_in(item)
    else:
        yield value if isinstance(value, bytes) else str(value).encode()


def contents(path):
    """Yield all bytes of a file, as they are and decoded."""
    yield path.read_bytes()
    if path.suffix == ".parquet":
        for row in pq.ParquetFile(path).read().to_pylist():
            yield from values_in(row)
    elif path.read_bytes()[:4] == b"Obj\x01":
        with path.open("rb") as file:
            for record in fastavro.reader(file):
                yield from values_in(record)


def has_value(root, value):
    """Return whether a file below a folder has the value, in any form, but for lists of manifests."""
    needles = [str(value).encode(), *([struct.pack("<q", value)] if isinstance(value, int) else [])]
    files = [path for path in root.rglob("*") if path.is_file() and "manifest-list" not in path.name]
    return any(needle in content for path in files for content in contents(path) for needle in needles)


def traced(seed, lake):
    """Write six tables; yield of each its folder, the outcome, the outcome that its bytes say, and what is open."""
    chance = random.Random(f"traced bytes {seed}")
    for number in range(6):
        life = KINDS[(seed + number) % len(KINDS)](lake / f"{number}", chance)
        for step in chance.choices(STEPS, k=chance.randrange(1, 9)):
            life.take(step)
    number = chance.choice(IDS)
    value, where = chance.choice([(number, f"id = {number}"), (name_of(number), f"name = '{name_of(number)}'")])
    for folder in sorted(lake.iterdir()):
        catalog = folder / "lake.sqlite"
        (row,) = open_lake(catalog if catalog.exists() else folder).trace(where).tables.to_arrow().to_pylist()
        yield folder, row["outcome"], "found" if has_value(folder, value) else "absent", row["open_questions"]


@pytest.mark.parametrize("seed", range(LAKES))
def test_no_value_in_any_byte_is_missed_and_none_is_claimed_without_one(tmp_path, seed):
    for folder, outcome, expected, open_questions in traced(seed, tmp_path):
        if open_questions is None:
            assert outcome == expected, folder
        else:
            assert outcome in ("unknown", expected), (folder, open_questions)
