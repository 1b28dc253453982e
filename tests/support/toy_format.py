"""A toy format that implements only what the interface requires. Each version is one parquet file."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer.core import frames
from snapshot_explorer.errors import SnapshotNotFoundError
from snapshot_explorer.formats import TableFormat, TableVersion
from tests.inner.core import Listing, ReadPlan, Split
from tests.inner.formats import MetadataLayout

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
    metadata_layout = MetadataLayout(folders=frozenset((FOLDER,)))

    @classmethod
    def recognizes(cls, storage, folders):
        return FOLDER in folders

    def listing(self, start=None):
        sizes = self._sizes()
        versions = tuple(sorted(number for number in sizes if start is None or number >= start))
        return Listing(versions=versions, identity=tuple(sizes.items()))

    def version(self, number):
        if number is not None and number not in self._sizes():
            raise SnapshotNotFoundError(f"Version {number} does not exist.")
        return ToyVersion(self.storage, number)

    def commits(self, versions, *, columns=None):
        rows = [
            {
                "version": version,
                "committed_at": FIRST_TIME + timedelta(hours=version),
                "kind": "overwrite",
                "operation": "write",
                "tags": [],
            }
            for version in versions
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

    def _sizes(self):
        files = {entry.name: entry.size_bytes for entry in self.storage.list(FOLDER)}
        return {int(name.removesuffix(".parquet")): size for name, size in files.items() if name.endswith(".parquet")}


class ToyVersion(TableVersion):
    """The rows of one file."""

    @property
    def arrow_schema(self):
        return self._file()[1].schema.remove_metadata()

    def files(self, predicate=None, *, statistics=False):
        content, rows = self._file()
        row = {
            "path": f"{FOLDER}/{self.number}.parquet",
            "partition": [],
            "rows": rows.num_rows,
            "size_bytes": len(content),
            "data_change": True,
            "added_version": self.number,
        }
        return _frame([row], frames.FILES)

    def plan(self, predicate=None):
        (file,) = self.files().to_pylist()
        split = Split(
            files=(file["path"],),
            raw=True,
            partition={},
            rows=file["rows"],
            size_bytes=file["size_bytes"],
            detail=ToyFile(identity=file["path"]),
        )
        return ReadPlan(splits=(split,), skipped=frames.SKIPPED.empty_table)

    def read(self, split, columns, predicate=None):
        yield from self._file()[1].select(columns).to_batches()

    def _file(self):
        content = self.storage.read(f"{FOLDER}/{self.number}.parquet")
        return content, pq.read_table(pa.BufferReader(content))


@dataclass(frozen=True)
class ToyFile:
    """The file of a split."""

    identity: str


def _frame(rows, schema):
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)
