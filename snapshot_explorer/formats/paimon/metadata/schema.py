"""Paimon schemas: field ids, types, keys and options, from the JSON of a schema file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import orjson

from snapshot_explorer.core.errors import CorruptTableError, StorageError, TableNotFoundError
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.core.records import Column, TableSchema
from snapshot_explorer.core.single_flight import SingleFlight
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.data_types import (
    PaimonField,
    parse_fields,
    type_text,
)
from snapshot_explorer.formats.paimon.metadata.layout import Layout, number_of
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonSchema:
    """One schema file."""

    id: int
    fields: tuple[PaimonField, ...]
    partition_keys: tuple[str, ...]
    """Names of the partition columns, outermost first."""
    primary_keys: tuple[str, ...]
    """Names of the primary key columns, partition columns included."""
    options: Mapping[str, str]
    """The table's options, with the defaults of its schema version."""
    comment: str | None

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The key inside a bucket: the primary key without the partition columns, in primary key order."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    def field(self, name: str) -> PaimonField:
        """Return the column of that name."""
        for column in self.fields:
            if column.name == name:
                return column
        raise CorruptTableError(
            f"schema/schema-{self.id} has no column {name!r}, which the table's metadata references."
        )


def parse_schema(content: bytes, path: str, *, limits: Limits = DEFAULT) -> PaimonSchema:
    """Return the schema in a schema file.

    Source: paimon docs, "Schema"; defaults of older versions from paimon TableSchema.fromJson.
    """
    try:
        raw = json_text.document(content, path, limits)
        json_text.check_types(raw, path)
        version = _number(raw, "version", 1)
        options = {str(name): str(value) for name, value in (raw.get("options") or {}).items()}
        if version <= 1:
            options.setdefault("bucket", "1")
        if version <= 2:  # noqa: PLR2004 - the version after which the default became parquet
            options.setdefault("file.format", "orc")
        keys = _names(raw, "primaryKeys")
        columns = parse_fields(raw["fields"])
        if len({column.name for column in columns}) < len(columns):
            raise ValueError("two columns have one name")  # noqa: TRY301 - wrapped with the file's name below
        return PaimonSchema(
            id=_number(raw, "id"),
            fields=tuple(_not_null(column, keys) for column in columns),
            partition_keys=_names(raw, "partitionKeys"),
            primary_keys=keys,
            options=options,
            comment=_comment(raw),
        )
    except (
        orjson.JSONDecodeError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise CorruptTableError(
            f"{path} is not a readable Paimon schema ({type(error).__name__}: {error}). "
            "It may have been cut short; compare it with a copy of the table."
        ) from error


def _number(raw: Mapping[str, object], name: str, default: int | None = None) -> int:
    value = raw[name] if default is None else raw.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise TypeError(f"its {name} is {value!r}")
    return value


def _names(raw: Mapping[str, object], name: str) -> tuple[str, ...]:
    columns = raw.get(name)
    names = () if columns is None else columns
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"its {name} are not a list of names")
    return tuple(names)


def _comment(raw: Mapping[str, object]) -> str | None:
    comment = raw.get("comment")
    if comment is not None and not isinstance(comment, str):
        raise TypeError("its comment is not text")
    return comment


def _not_null(column: PaimonField, primary_keys: Iterable[str]) -> PaimonField:
    """Return the column as NOT NULL if it is in the primary key, whatever the file declares."""
    if column.name not in primary_keys:
        return column
    return replace(column, type=replace(column.type, nullable=False))


def table_schema(schema: PaimonSchema) -> TableSchema:
    """Return the schema as the record that all formats share."""
    return TableSchema(
        id=schema.id,
        columns=tuple(
            Column(
                id=column.id,
                name=column.name,
                type=type_text(column.type),
                nullable=column.type.nullable,
                comment=column.description,
            )
            for column in schema.fields
        ),
        partition_keys=schema.partition_keys,
        primary_keys=schema.primary_keys,
        is_merged=bool(schema.primary_keys),
    )


_KEPT = 1_000
_TYPES = ("table", "materialized-table")


def checked_schema(schema: PaimonSchema, number: int, path: str) -> PaimonSchema:
    """Return a schema if its id is the number in its file name."""
    if schema.id != number:
        raise CorruptTableError(
            f"{path} contains schema {schema.id}. It was copied or damaged; compare it with a copy."
        )
    return schema


class Schemas:
    """Reads and caches schema files, each once however many threads need it. Thread-safe."""

    def __init__(self, storage: Storage, layout: Layout, *, is_pinned: bool = False) -> None:
        """Bind to a branch. Reads nothing.

        Args:
            is_pinned: Whether the newest schema is read once, at first use, so that a writer cannot change it.
        """
        self._storage = storage
        self._layout = layout
        self._known = SingleFlight(_KEPT)
        self._is_pinned = is_pinned
        self._newest = SingleFlight()
        self._listed: int | None = None

    def pinned(self, listed: int | None = None) -> "Schemas":
        """Return the same schemas, with the newest one read only once. Reads nothing.

        Args:
            listed: The id of the newest schema, if the schemas were listed.
        """
        if self._is_pinned:
            return self
        result = Schemas(self._storage, self._layout, is_pinned=True)
        result._known, result._listed = self._known, listed
        return result

    def newest(self, existing: int = 0) -> PaimonSchema:
        """Return the newest schema, whose options apply to every version. One listing, one small file; once if pinned.

        Args:
            existing: The id of a schema that exists, such as a snapshot's. A listing that ends before it is incomplete.

        Raises:
            StorageError: The listing is incomplete.

        Source: paimon docs, "Schema"; paimon SchemaManager.latest.
        """
        read = partial(self._read_newest, existing)
        return self._newest.get("newest", read) if self._is_pinned else read()

    @property
    def known_newest(self) -> PaimonSchema | None:
        """Return the newest schema if it is pinned and was read; otherwise None. Reads nothing."""
        newest: PaimonSchema | None = self._newest.peek("newest")
        return newest

    @property
    def newest_id(self) -> int | None:
        """Return the id of the newest schema if it is pinned and was read or listed; otherwise None. Reads nothing."""
        newest = self.known_newest
        return self._listed if newest is None else newest.id

    def _read_newest(self, existing: int) -> PaimonSchema:
        existing = max([existing, *self._known.keys()])
        listed = self._listed
        number = listed if listed is not None and listed >= existing else self._newest_number()
        if existing > number:
            raise StorageError(
                f"The listing of {self._layout.folder('schema')} in {self._storage.root} ends at schema {number}, but "
                f"schema {existing} exists: the listing is incomplete. Try again."
            )
        schema = self.by_id([number])[number]
        table_type = schema.options.get("type", "table")
        if table_type not in _TYPES:
            raise refusal(features.TABLE_TYPES, root=self._storage.root, type=table_type)
        return schema

    def with_newest(self, number: int) -> tuple[PaimonSchema, PaimonSchema]:
        """Return a schema by id, and the newest one. The requests of both are concurrent."""
        if (newest := self.known_newest) is not None:
            return self.by_id([number])[number], newest
        return self._storage.together(lambda: self.by_id([number])[number], partial(self.newest, number))

    def is_read(self, number: int) -> bool:
        """Return whether a schema was read."""
        return self._known.peek(number) is not None

    def _newest_number(self) -> int:
        number = self.listed_newest()
        if number is None:
            raise TableNotFoundError(
                f"{self._storage.root} has no schema file in {self._layout.folder('schema')}/, so it is not a readable "
                "Paimon table. Check the path; if the folder was copied, copy it whole."
            )
        return number

    def listed_newest(self) -> int | None:
        """Return the id of the newest schema; None if there are none. One listing."""
        return max(self._ids(), default=None)

    def by_id(self, ids: Iterable[int]) -> Mapping[int, PaimonSchema]:
        """Return schemas by id. Reads a small file for each that is not cached, all concurrently."""
        numbers = sorted(set(ids))
        result = {number: known for number in numbers if (known := self._known.peek(number)) is not None}
        missing = [number for number in numbers if number not in result]
        return result | dict(zip(missing, self._storage.each(self._read_once, missing), strict=True))

    def _read_once(self, number: int) -> PaimonSchema:
        return self._known.get(number, partial(self._read, number))

    def _read(self, number: int) -> PaimonSchema:
        path = self._layout.numbered("schema", number)
        content = self._storage.read_present([path])[0]
        if content is None:
            raise CorruptTableError(
                f"The table's metadata references {path}, which is missing. Files of schema {number} cannot be "
                "read without it; restore it, or choose a version that does not need it."
            )
        return checked_schema(parse_schema(content, path, limits=self._storage.limits), number, path)

    def common_with(self, other: "Schemas") -> PaimonSchema | None:
        """Return the newest schema that another branch also has, or None. Two listings, small files.

        A new branch gets copies of the schemas that exist then.

        Source: paimon FileSystemBranchManager.createBranch.
        """
        ids = set(self._ids()).intersection(other._ids())  # noqa: SLF001 - of this class
        own, others = self.by_id(ids), other.by_id(ids)
        return next((own[number] for number in sorted(ids, reverse=True) if own[number] == others[number]), None)

    def _ids(self) -> list[int]:
        entries = self._storage.list(self._layout.folder("schema"))
        return [number for entry in entries if (number := number_of(entry.name, "schema")) is not None]

    def forget(self) -> None:
        """Clear the cache."""
        self._known.forget_all()
