"""`LoadedVersion`: a version of a table and the metadata of it that was read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.core.single_flight import SingleFlight

if TYPE_CHECKING:
    import pyarrow as pa

    from snapshot_explorer.core.records import Listing, TableSchema
    from snapshot_explorer.formats import TableVersion


@dataclass(eq=False, slots=True, kw_only=True)
class LoadedVersion:
    """A version of a table, and the metadata of it that was read. A `Snapshot` shows one."""

    path: str
    """The location of the table, without secrets."""
    version: TableVersion
    listing: Listing | None = None
    """The listing that it was loaded from, if it was the newest version."""
    cache: SingleFlight = field(default_factory=SingleFlight)
    """The metadata that was read."""
    schema_key: str = "schema"
    """The key of the schema in `cache`."""
    _in_own_schema: LoadedVersion | None = None

    def __str__(self) -> str:
        return f"Snapshot(path={self.path!r}, version={self.version.number})"

    def in_own_schema(self) -> LoadedVersion:
        """Return the version in the schema of its commit; the same object unless it has a newer schema. No request.

        Both share the metadata that was read.
        """
        version = self.version.in_own_schema()
        if version is self.version:
            return self
        if self._in_own_schema is None:
            self._in_own_schema = replace(self, version=version, schema_key="own schema", _in_own_schema=None)
        return self._in_own_schema

    def uncache(self) -> None:
        """Drop the metadata that was read. From now on it is read at each use."""
        self.cache.keep_nothing()

    def live_files(self) -> int | None:
        """Return the number of live data files; None if what `manifests` reads does not contain it."""
        files = self.cached_files()
        if files is not None:
            return len(files)
        count: int | None = self.cache.get("live files", self.version.file_count)
        return count

    def cached_files(self) -> pa.Table | None:
        """Return the FILES that were read; None if they were not. No request."""
        files: pa.Table | None = self.cache.peek("files")
        return files

    def cached_schema(self) -> TableSchema | None:
        """Return the cached schema; None if it was not read. No request; never blocks."""
        schema: TableSchema | None = self.cache.peek(self.schema_key)
        return schema

    def cached_format_version(self) -> str | None:
        """Return the format version and features; None if the schema was not read, or there are none. No request."""
        return None if self.cached_schema() is None else self.version.format_version

    def cached_partition_values(self, name: str) -> list[str | None]:
        """Return the values of a partition column, sorted, nulls last; empty unless `files` was read. No request."""
        rows, schema = self.cached_files(), self.cached_schema()
        if rows is None or schema is None or name not in schema.partition_keys:
            return []
        values = pc.unique(values_of(rows["partition"], name))
        return list(values.take(pc.sort_indices(values)).to_pylist())
