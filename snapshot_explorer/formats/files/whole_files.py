"""Data files that are read to check them, with the readers of rows: by their footers, or all of their columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from snapshot_explorer.arrow import orc_tail, parquet_footers
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import CorruptTableError, MissingFileError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.avro.container import MAGIC, read_container
from snapshot_explorer.formats.corrupt_files import check_read, named_in_errors
from snapshot_explorer.formats.file_checks import CheckedFile, FileReading, RecordedFile, StoredColumn
from snapshot_explorer.formats.files.field_columns import FileField, file_field
from snapshot_explorer.formats.files.orc_file import OrcFile
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.storage import Storage

FileKind = Literal["parquet", "orc", "avro"]
FieldsOf = Callable[[pa.Schema, bool], Sequence[FileField]]
"""Returns the columns of a Parquet or ORC file: the second argument is true for ORC."""
_PARQUET, _ENCRYPTED = b"PAR1", b"PARE"
_ORC = b"ORC"
_TAIL = 256
"""The maximum number of bytes of an ORC file's postscript, at its end, which contains the format's name."""
_ENDINGS: dict[str, FileKind] = {".parquet": "parquet", ".parq": "parquet", ".orc": "orc", ".avro": "avro"}


def check_file(
    storage: Storage,
    file: RecordedFile,
    reading: FileReading,
    kind: FileKind | None = None,
    *,
    fields_of: FieldsOf = lambda schema, _: list(map(file_field, schema)),
) -> CheckedFile:
    """Read the footer of a data file, or all of it. Checksums of pages are compared.

    Args:
        kind: Its format; None to detect it by its bytes and its name.
        fields_of: Returns the columns of the file with the ids by which readers find them.
    """
    try:
        return _check_data_file(storage, file, reading, kind, fields_of)
    except CorruptTableError:
        if storage.is_local or file.size_bytes is None:
            raise
        # Some files are read although their size differs from the recorded size, which was used to find their end.
        return _check_data_file(storage, replace(file, size_bytes=None), reading, kind, fields_of)


def without_footer(files: str, reading: FileReading) -> CheckedFile:
    """Return the result for a file that has no footer, so that only the reading `bytes` applies to it."""
    reason = f"{files} files have no footer"
    advice = Hint("table.verify", {"level": "bytes"})
    return CheckedFile(skip_reason=Message(reason, "; ", advice, " reads them") if reading == "footer" else reason)


def _check_data_file(
    storage: Storage, file: RecordedFile, reading: FileReading, kind: FileKind | None, fields_of: FieldsOf
) -> CheckedFile:
    name = kind or "a data file"
    with (
        named_in_errors(file.path, name, lambda: MissingFileError(f"{file.path} does not exist.")),
        storage.open(file.path, size_bytes=file.size_bytes) as source,
    ):
        chosen = kind or _kind_of(source, file.path)
        if chosen == "avro" and reading != "bytes":
            return without_footer("Avro", reading)
        if reading == "columns":
            return _columns_of(source, fields_of, is_orc=chosen == "orc")
        if chosen == "parquet":
            return CheckedFile(rows=_parquet_rows(source, file.path, is_whole=reading == "bytes"))
        if chosen == "orc":
            return CheckedFile(rows=_orc_rows(source, is_whole=reading == "bytes"))
        return CheckedFile(rows=_avro_rows(storage, source, file.path))


def _kind_of(source: pa.NativeFile, path: str) -> FileKind:
    """Return the format of a file by its last or first bytes; of a damaged one by its name, or parquet."""
    size = source.size()
    source.seek(max(0, size - _TAIL))
    tail = source.read(_TAIL)
    source.seek(0)
    if tail.endswith((_PARQUET, _ENCRYPTED)):
        return "parquet"
    if _ORC in tail[-len(_ORC) - 1 :]:
        return "orc"
    head = source.read(len(_PARQUET))
    source.seek(0)
    if head in (_PARQUET, _ENCRYPTED):
        return "parquet"
    if head == MAGIC:
        return "avro"
    if head.startswith(_ORC):
        return "orc"
    return next((kind for ending, kind in _ENDINGS.items() if path.lower().endswith(ending)), "parquet")


def _columns_of(source: pa.NativeFile, fields_of: FieldsOf, *, is_orc: bool) -> CheckedFile:
    if is_orc:
        schema, sizes = OrcFile(source).schema, orc_tail.column_sizes(source)
    else:
        reader = parquet_footers.open_file(source)
        schema, sizes = reader.schema_arrow, parquet_footers.column_sizes(reader)
    size_bytes = int(source.size())
    if len(sizes) != len(schema) or min(sizes, default=0) < 0 or sum(sizes) > size_bytes:
        raise CorruptBytesError("the sizes of its columns contradict its schema or its size")
    return CheckedFile(
        size_bytes=size_bytes,
        columns=tuple(
            StoredColumn(name=field.name, id=field.id, size_bytes=size)
            for field, size in zip(fields_of(schema, is_orc), sizes, strict=True)
        ),
    )


def _parquet_rows(source: pa.NativeFile, path: str, *, is_whole: bool) -> int:
    file = open_parquet(source)
    recorded = int(file.reader.metadata.num_rows)
    names = list(dict.fromkeys(file.reader.schema_arrow.names))
    if not is_whole or not names:
        return recorded
    return _read(file.batches(names, range(file.reader.num_row_groups), recorded), recorded, path)


def _orc_rows(source: pa.NativeFile, *, is_whole: bool) -> int:
    file = OrcFile(source)
    names = list(file.schema.names)
    if not is_whole or not names:
        return file.rows
    return sum(int(batch.num_rows) for batch in file.batches(names, names))


def _avro_rows(storage: Storage, source: pa.NativeFile, path: str) -> int:
    from snapshot_explorer.formats.avro import rows as avro_rows  # noqa: PLC0415 - for fastavro

    container = read_container(source.read(), path, {}, limits=storage.limits)
    try:
        return sum(1 for _ in avro_rows.records(container))
    except avro_rows.FOREIGN_ERRORS as error:
        raise avro_rows.damaged_block(error) from error


def _read(batches: Iterator[pa.RecordBatch], recorded: int, path: str) -> int:
    rows = sum(int(batch.num_rows) for batch in batches)
    check_read(f"The data file {path}", rows, recorded)
    return rows
