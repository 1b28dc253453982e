"""A toy format that implements only what the interface requires. Each version is one parquet file."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Column, FieldIds, Listing, ReadPlan, Split, TableSchema
from snapshot_explorer.errors import (
    InvalidArgumentError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.formats import TableFormat, TableVersion

FOLDER = "toy"
FIRST_TIME = datetime(2026, 11, 1, tzinfo=UTC)


def write_version(root, number, rows):
    """Write a version of a toy table."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / f"{number}.parquet")


class Toy(TableFormat):
    """A table whose versions are the files `toy/N.parquet`, an hour apart."""

    name = "toy"
    title = "Toy"
    metadata_folders = frozenset((FOLDER,))

    def __init__(self, storage, *, branch=None):
        if branch is not None:
            raise TableNotFoundError(f"{storage.root} has no branch {branch!r}: toy tables have no branches.")
        self._storage = storage

    @property
    def storage(self):
        return self._storage

    @classmethod
    def recognizes(cls, storage, folders):
        return FOLDER in folders

    def listing(self, start=None):
        sizes = self._sizes()
        versions = tuple(sorted(number for number in sizes if start is None or number >= start))
        return Listing(versions=versions, identity=tuple(sizes.items()))

    def version(self, number):
        sizes = self._sizes()
        if number is not None and number not in sizes:
            raise SnapshotNotFoundError(f"Version {number} does not exist.")
        return ToyVersion(self._storage, number, 0 if number is None else sizes[number])

    def committed_at(self, versions):
        return [FIRST_TIME + timedelta(hours=version) for version in versions]

    def commits(self, versions):
        times = self.committed_at(versions)
        rows = [
            {"version": version, "committed_at": time, "kind": "overwrite", "operation": "write", "tags": []}
            for version, time in zip(versions, times, strict=True)
        ]
        return _frame(rows, frames.COMMITS)

    def changes(self, versions, *, changelog=True):
        sizes = self._sizes()
        rows = []
        for version in versions:
            before = [("remove", version - 1)] if version - 1 in sizes else []
            for change, number in (*before, ("add", version)):
                file = self.version(number).files().drop_columns(["added_version"]).to_pylist()[0]
                rows.append({"version": version, "change": change, "list": "delta", **file})
        return _frame(rows, frames.CHANGES)

    def row_changes(self, first, last, mode):
        raise UnsupportedFeatureError("Toy tables record no changes of rows. Use diff_rows().")

    def _sizes(self):
        files = {entry.name: entry.size_bytes for entry in self._storage.list(FOLDER)}
        return {int(name.removesuffix(".parquet")): size for name, size in files.items() if name.endswith(".parquet")}


class ToyVersion(TableVersion):
    """The rows of one file."""

    def __init__(self, storage, number, size):
        self._storage = storage
        self._number = number
        self._size = size

    @property
    def number(self):
        return self._number

    @property
    def storage(self):
        return self._storage

    @property
    def schema(self):
        columns = tuple(
            Column(id=None, name=field.name, type=str(field.type), nullable=field.nullable, comment=None)
            for field in self.arrow_schema
        )
        return TableSchema(id=None, columns=columns, partition_keys=(), primary_keys=())

    @property
    def arrow_schema(self):
        return self._rows().schema.remove_metadata()

    @property
    def field_ids(self):
        return {field.name: FieldIds(id=field.name) for field in self.arrow_schema}

    @property
    def properties(self):
        return {}

    def manifests(self):
        return frames.MANIFESTS.empty_table()

    def entries(self, manifest):
        raise InvalidArgumentError(f"Toy tables have no manifest {manifest}.")

    def files(self, predicate=None, *, statistics=False):
        row = {
            "path": self._path,
            "partition": [],
            "rows": self._rows().num_rows,
            "size_bytes": self._size,
            "data_change": True,
            "added_version": self._number,
        }
        return _frame([row], frames.FILES)

    def plan(self, predicate=None):
        rows = self._rows().num_rows
        split = Split(
            files=(self._path,),
            raw=True,
            partition={},
            bucket=None,
            rows=rows,
            size_bytes=self._size,
            detail=ToyDetail(self._path),
        )
        return ReadPlan(splits=(split,), skipped=frames.SKIPPED.empty_table)

    def read(self, split, columns, predicate=None):
        yield from self._rows().select(columns).to_batches()

    def changelog(self):
        raise InvalidArgumentError("Toy tables have no changelog.")

    @property
    def _path(self):
        return f"{FOLDER}/{self._number}.parquet"

    def _rows(self):
        return pq.read_table(pa.BufferReader(self._storage.read(self._path)))


@dataclass(frozen=True)
class ToyDetail:
    """The file of a split."""

    path: str

    @property
    def identity(self):
        return self.path


def _frame(rows, schema):
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)
