"""The schema files of a branch: the newest one, and those that versions and data files were written with."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from snapshot_explorer.errors import CorruptTableError, StorageError, TableNotFoundError, UnsupportedFeatureError
from snapshot_explorer.formats.paimon.metadata.layout import Layout, number_of
from snapshot_explorer.formats.paimon.metadata.schema import Schema, parse_schema
from snapshot_explorer.storage import Storage

_KEPT = 1_000
_TYPES = ("table", "materialized-table")


class Schemas:
    """Reads schema files and keeps them. Thread-safe."""

    def __init__(self, storage: Storage, layout: Layout) -> None:
        """Bind to a branch. Reads nothing."""
        self._storage = storage
        self._layout = layout
        self._lock = threading.Lock()
        self._known: OrderedDict[int, Schema] = OrderedDict()
        self._hidden: frozenset[str] = frozenset()

    def without(self, options: frozenset[str]) -> "Schemas":
        """Return the same schemas, of which the newest lacks these options. Reads nothing."""
        found = Schemas(self._storage, self._layout)
        found._known, found._lock, found._hidden = self._known, self._lock, options
        return found

    def newest(self) -> Schema:
        """Return the newest schema, whose options are in force at every version. One listing, one small file.

        Raises:
            TableNotFoundError: There is no schema file.
            StorageError: The listing shows less than has been read.
            UnsupportedFeatureError: The table is of a kind that is not read, such as `format-table`.

        Source: paimon docs, "Schema"; paimon SchemaManager.latest.
        """
        entries = self._storage.list(self._layout.folder("schema"))
        numbers = [number for entry in entries if (number := number_of(entry.name, "schema")) is not None]
        if not numbers:
            raise TableNotFoundError(
                f"{self._storage.root} has no schema file in {self._layout.folder('schema')}/, so it is no readable "
                "Paimon table. Check the path; if the folder was copied, copy it whole."
            )
        with self._lock:
            read = max(self._known, default=0)
        if read > max(numbers):
            raise StorageError(
                f"The listing of {self._layout.folder('schema')} in {self._storage.root} ends at schema "
                f"{max(numbers)}, but schema {read} has been read: the storage answered with less than it has. "
                "Try again."
            )
        schema = self.by_id([max(numbers)])[max(numbers)]
        if not self._hidden.isdisjoint(schema.options):
            kept = {name: value for name, value in schema.options.items() if name not in self._hidden}
            schema = replace(schema, options=kept)
        kind = schema.options.get("type", "table")
        if kind not in _TYPES:
            raise UnsupportedFeatureError(
                f"{self._storage.root} is a {kind}, which Paimon's own readers treat apart; it is not read. "
                "Read are tables of the types table and materialized-table."
            )
        return schema

    def by_id(self, ids: Iterable[int]) -> Mapping[int, Schema]:
        """Return schemas by their numbers. A small file for each that was not read before, all at once.

        Raises:
            CorruptTableError: A schema file is missing or unreadable; the message names it.
        """
        wanted = sorted(set(ids))
        with self._lock:
            found = {number: self._known[number] for number in wanted if number in self._known}
        missing = [number for number in wanted if number not in found]
        paths = [self._layout.numbered("schema", number) for number in missing]
        for number, path, content in zip(missing, paths, self._storage.read_present(paths), strict=True):
            if content is None:
                raise CorruptTableError(
                    f"{path} is missing, which the table's metadata names. Without it files of schema {number} "
                    "cannot be read; restore it, or choose a version that does not need it."
                )
            found[number] = self._checked(parse_schema(content, path, limits=self._storage.limits), number, path)
        with self._lock:
            self._known |= {number: found[number] for number in missing}
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found

    def forget(self) -> None:
        """Drop what is kept."""
        with self._lock:
            self._known.clear()

    @staticmethod
    def _checked(schema: Schema, number: int, path: str) -> Schema:
        if schema.id != number:
            raise CorruptTableError(
                f"{path} says that it is schema {schema.id}. It was copied or damaged; compare it with a copy."
            )
        return schema
