"""`PlainFiles`: files of Parquet, ORC, Avro, CSV or Arrow that no table owns, which a row diff reads like a version."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from snapshot_explorer.analysis.given.arrow_types import with_plain_types
from snapshot_explorer.analysis.given.file_names import KNOWN_ENDINGS, kind_of
from snapshot_explorer.arrow import parquet_footers
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.positions import batches_without_columns
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import (
    CorruptTableError,
    InvalidArgumentError,
    MissingFileError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.core.records import ReadPlan, Split
from snapshot_explorer.engines.conditions import unknown_column
from snapshot_explorer.engines.duckdb_ast import find_column
from snapshot_explorer.formats import TableVersion, is_recognized
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS
from snapshot_explorer.formats.corrupt_files import named_in_errors
from snapshot_explorer.formats.files.orc_file import OrcFile
from snapshot_explorer.formats.files.parquet_file import ParquetFile
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.hidden import hidden_options, hidden_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from snapshot_explorer.analysis.given.file_names import Kind
    from snapshot_explorer.core.records import Predicate

    Opened = tuple[Callable[[Sequence[str]], Iterator[pa.RecordBatch]], pa.Schema]

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The value of a null partition in the name of a folder (Hive: hive.exec.default.partition.name)."""
_MAX_DEPTH = 32
"""Folders within each other."""
_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFile:
    """A file to read."""

    path: str
    kind: Kind
    size_bytes: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """The columns in the names of its folders, such as `day=2026-11-01`."""

    @property
    def identity(self) -> str:
        """The path."""
        return self.path


class PlainFiles(TableVersion):
    """The rows of files with one set of columns."""

    def __init__(
        self, storage: Storage, files: Sequence[PlainFile], like: pa.Schema | None, *, is_one: bool = False
    ) -> None:
        """Bind to files.

        Args:
            is_one: Whether the file was named, not its folder.
            like: The types of the columns that the rows are compared with: text in CSV files and in names of folders is
                read as values of these types.
        """
        super().__init__(storage, None)
        self._files = tuple(files)
        self._is_one = is_one
        self._like = like or pa.schema([])

    @property
    def root(self) -> str:
        """The file or the folder for display, without secrets."""
        return f"{self._storage.root}/{self._files[0].path}" if self._is_one else self._storage.root

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns of the files, then those in the names of their folders.

        Reads the footer of each file, of CSV its first block, and of Avro all rows, which have the types.
        """
        schemas = self._storage.each(self._schema, self._files)
        first = schemas[0]
        for file, schema in zip(self._files, schemas, strict=True):
            if set(schema.names) != set(first.names):
                raise InvalidArgumentError(
                    f"The files have different columns: {', '.join(first.names)} in {self._files[0].path}, "
                    f"{', '.join(schema.names)} in {file.path}. Name a folder whose files have the same columns."
                )
        try:
            return pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise UnsupportedFeatureError(f"A column has types in these files without a common one: {error}") from error

    def _schema(self, file: PlainFile) -> pa.Schema:
        with self._opened(file) as (_, schema):
            plain = with_plain_types(schema.empty_table()).schema
        repeated = next((name for name, times in Counter(plain.names).items() if times > 1), None)
        both = next((name for name in file.partition if name in plain.names), None)
        if repeated is not None or both is not None:
            where = f"twice in {file.path}" if both is None else f"in {file.path} and in the name of its folder"
            raise InvalidArgumentError(f"The column {repeated or both!r} is {where}.")
        return pa.schema([*plain, *(pa.field(name, self._text_type(name)) for name in file.partition)])

    def _text_type(self, name: str) -> pa.DataType:
        """Return the type as which a text is read."""
        known = self._like.names.count(name) == 1
        dtype = self._like.field(name).type if known else pa.string()
        return pa.string() if pa.types.is_nested(dtype) or pa.types.is_binary(dtype) else dtype

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        return frames.FILES.empty_table()

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        return ReadPlan(splits=tuple(map(self._split, self._files)), skipped=frames.SKIPPED.empty_table)

    def _split(self, file: PlainFile) -> Split:
        return Split(
            files=(file.path,),
            raw=False,
            partition=file.partition,
            rows=None,
            size_bytes=file.size_bytes or 0,
            detail=file,
        )

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        file: PlainFile = split.detail  # type: ignore[assignment]
        schema = pa.schema([self.arrow_schema.field(name) for name in columns])
        with self._opened(file) as (batches, _):
            for batch in batches([name for name in columns if name not in file.partition]):
                rows = with_plain_types(pa.Table.from_batches([batch]))
                arrays = [
                    _repeated(file, name, dtype, len(rows)) if name in file.partition else rows.column(name).cast(dtype)
                    for name, dtype in zip(schema.names, schema.types, strict=True)
                ]
                if columns:
                    yield from pa.Table.from_arrays(arrays, schema=schema).to_batches()
                else:
                    yield from batches_without_columns(len(rows))

    @contextmanager
    def _opened(self, file: PlainFile) -> Iterator[Opened]:
        """Open a file: a function from the names of columns to its rows in batches, and its schema."""

        def missing() -> Exception:
            return MissingFileError(f"{file.path} does not exist.")

        with (
            named_in_errors(file.path, file.kind, missing),
            self._storage.open(file.path, size_bytes=file.size_bytes) as source,
        ):
            readers = {
                "parquet": self._parquet,
                "orc": self._orc,
                "avro": self._avro,
                "csv": self._csv,
                "arrow": self._arrow,
            }
            yield readers[file.kind](source, file)

    def _parquet(self, source: pa.NativeFile, _: PlainFile) -> Opened:
        # INT96 in microseconds, which have every time that Spark writes.
        reader = parquet_footers.open_file(source, page_checksum_verification=True, coerce_int96_timestamp_unit="us")
        file, groups, rows = ParquetFile(reader, source), range(reader.num_row_groups), reader.metadata.num_rows
        return (lambda names: file.batches(names, groups, rows)), reader.schema_arrow

    def _orc(self, source: pa.NativeFile, _: PlainFile) -> Opened:
        file = OrcFile(source)
        # Times are in nanoseconds there, in which not every time of a column in microseconds fits.
        fields = [
            item.with_type(self._like.field(item.name).type) if self._is_coarser(item) else item for item in file.schema
        ]
        return (lambda names: (batch.select(names) for batch in file.batches(names, names))), pa.schema(fields)

    def _is_coarser(self, item: pa.Field) -> bool:
        """Return whether a column of times is compared with one in microseconds or more."""
        dtype: Any = self._like.field(item.name).type if self._like.names.count(item.name) == 1 else item.type
        is_pair = pa.types.is_timestamp(dtype) and pa.types.is_timestamp(item.type)
        return bool(is_pair and dtype.unit != "ns" and dtype.tz == item.type.tz)

    def _avro(self, source: pa.NativeFile, file: PlainFile) -> Opened:
        import fastavro  # noqa: PLC0415 - loaded at first use

        try:
            reader: Any = fastavro.reader(source)
            names = [item["name"] for item in reader.writer_schema["fields"]]
            records = list(reader)
        except FOREIGN_ERRORS as error:
            raise CorruptBytesError(f"a block is damaged ({type(error).__name__}: {error})") from error
        columns = [self._avro_column(file, name, [record[name] for record in records]) for name in names]
        rows = pa.Table.from_arrays(columns, names=names)
        return (lambda chosen: rows.select(chosen).to_batches(_BATCH_ROWS)), rows.schema

    def _avro_column(self, file: PlainFile, name: str, values: list[Any]) -> pa.Array:
        dtypes = [self._like.field(name).type] if self._like.names.count(name) == 1 else []
        for dtype in (*dtypes, None):
            try:
                return pa.array(values, dtype)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                continue
        raise UnsupportedFeatureError(f"The column {name!r} of {file.path} has values of several types.")

    def _csv(self, source: pa.NativeFile, file: PlainFile) -> Opened:
        from pyarrow import csv  # noqa: PLC0415 - loaded at first use

        content = pa.CompressedInputStream(source, "gzip") if file.path.endswith(".gz") else source
        types = {name: self._text_type(name) for name in self._like.names}
        options = csv.ConvertOptions(
            column_types=types,
            # An empty text is quoted. Every other text is itself: NA may be Namibia.
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        try:
            reader = csv.open_csv(content, convert_options=options)
        except pa.ArrowInvalid as error:
            raise _csv_error(file, error) from error

        def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            try:
                for batch in reader:
                    yield batch.select(names)
            except pa.ArrowInvalid as error:
                raise _csv_error(file, error) from error

        return batches, reader.schema

    def _arrow(self, source: pa.NativeFile, _: PlainFile) -> Opened:
        try:
            reader = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            stream = pa.ipc.open_stream(source)
            return (lambda names: (batch.select(names) for batch in stream)), stream.schema
        numbers = range(reader.num_record_batches)
        return (lambda names: (reader.get_batch(number).select(names) for number in numbers)), reader.schema


def _csv_error(file: PlainFile, error: Exception) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{file.path} cannot be read as CSV with the columns of the table: {error}. Its first line must have the names "
        "of columns; values are as pandas and DuckDB write them."
    )


def _repeated(file: PlainFile, name: str, dtype: pa.DataType, rows: int) -> pa.Array:
    """Return the value in the name of a folder for each row."""
    text = file.partition[name]
    try:
        value = pa.array([text], pa.string()).cast(dtype)[0]
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"The folder {name}={text} of {file.path} is no {dtype}: {error}") from error
    return pa.repeat(value, rows)


def open_files(
    path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None, like: pa.Schema | None
) -> PlainFiles:
    """Return the rows of a file, or of all files below a folder. Lists the folder.

    Names that begin with `_` or `.` are left out, as Spark does. Folders such as `day=2026-11-01` are columns.

    Raises:
        TableNotFoundError: There is no such file.
        InvalidArgumentError: It is a table, or has files of other kinds.
    """
    folder, name = _split(os.fspath(hidden_url(path)))
    kind = kind_of(name)
    if kind is not None:
        parent = Storage(hidden_url(folder), hidden_options(storage_options))
        sizes: Mapping[str, int | None] = {}
        with suppress(CorruptTableError):  # no name of a file here, such as one with another system's backslashes
            sizes = parent.sizes([name])
        if name in sizes:
            file = PlainFile(path=name, kind=kind, size_bytes=sizes[name])
            return PlainFiles(parent, [file], like, is_one=True)
    storage = Storage(hidden_url(path), hidden_options(storage_options))
    files = _files_below(storage)
    if not files:
        raise TableNotFoundError(
            f"There is nothing to compare with at {storage.root}: it does not exist, or is a folder without files. "
            f"Name a file, or a folder of files, that end in {', '.join(KNOWN_ENDINGS)}."
        )
    return PlainFiles(storage, files, like)


def read_plain_file(
    storage: Storage, path: str, size_bytes: int | None, columns: Sequence[str], like: pa.Schema
) -> Iterator[pa.Table]:
    """Yield some columns of the rows of one file. The case of their names does not matter.

    Args:
        like: As for `open_files`.

    Raises:
        UnsupportedFeatureError: The file is of another kind.
        UnknownColumnError: It lacks a column.
        CorruptTableError: It is damaged.
    """
    kind = kind_of(path)
    if kind is None:
        raise UnsupportedFeatureError(f"{path} is no file of {', '.join(KNOWN_ENDINGS)}.")
    rows = PlainFiles(storage, [PlainFile(path=path, kind=kind, size_bytes=size_bytes)], like)
    known = rows.arrow_schema.names
    lacking = next((name for name in columns if find_column(name, rows.arrow_schema) is None), None)
    if lacking is not None:
        raise unknown_column(lacking, known, where=f" in {path}")
    folded = {name.lower() for name in columns}
    names = [name for name in known if name.lower() in folded]
    for split in rows.plan().splits:
        for batch in rows.read(split, names):
            yield pa.Table.from_batches([batch])


def _split(path: str) -> tuple[str, str]:
    """Return the folder of a path or a URL, and the name in it."""
    if "://" in path:
        folder, _, name = path.rstrip("/").rpartition("/")
    else:
        folder, name = os.path.split(path.rstrip("/" + os.sep))
    return folder or os.curdir, name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    path: str = ""
    partition: Mapping[str, str | None] = field(default_factory=dict)

    def below(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


def _files_below(storage: Storage) -> list[PlainFile]:
    """Return the files below a folder, by path. One listing per folder, concurrently for the folders of a level."""
    files: list[PlainFile] = []
    level = [_Folder()]
    for _ in range(_MAX_DEPTH):
        following = []
        for folder, entries in zip(level, storage.list_many([folder.path for folder in level]), strict=True):
            _refuse_table(storage.below(folder.path), [entry.name for entry in entries if entry.is_folder])
            for entry in entries:
                path = folder.below(entry.name)
                if entry.name.startswith(("_", ".")):
                    continue
                if entry.is_folder:
                    following.append(_Folder(path=path, partition={**folder.partition, **_columns_in(entry.name)}))
                else:
                    kind = _kind_of(storage, path)
                    files.append(
                        PlainFile(path=path, kind=kind, size_bytes=entry.size_bytes, partition=folder.partition)
                    )
        level = following
        if not level:
            return sorted(files, key=lambda file: file.path)
    raise InvalidArgumentError(f"{storage.root} has more than {_MAX_DEPTH} folders within each other.")


def _refuse_table(storage: Storage, folders: Sequence[str]) -> None:
    """Raise if a folder, which has these folders, is a table."""
    if folders and is_recognized(storage, frozenset(folders)):
        raise InvalidArgumentError(
            f"{storage.root} is a table, and some files in it may not be live. Open it and compare one of its versions."
        )


def _columns_in(name: str) -> dict[str, str | None]:
    """Return the column in the name of a folder such as `day=2026-11-01`; nothing for other names."""
    column, is_column, value = name.partition("=")
    return {unquote(column): None if value == _NULL_PARTITION else unquote(value)} if is_column else {}


def _kind_of(storage: Storage, path: str) -> Kind:
    kind = kind_of(path)
    if kind is None:
        raise InvalidArgumentError(
            f"The file {path} in {storage.root} cannot be compared. Name a folder of files that end in "
            f"{', '.join(KNOWN_ENDINGS)}."
        )
    return kind
