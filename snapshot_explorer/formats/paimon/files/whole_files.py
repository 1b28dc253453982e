"""Data files that are read to check them."""

from dataclasses import replace
from functools import partial
from typing import cast

import pyarrow as pa

from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, FileReading, RecordedFile
from snapshot_explorer.formats.files.field_columns import FileField, file_field
from snapshot_explorer.formats.files.whole_files import FileKind, check_file
from snapshot_explorer.formats.paimon.files import blobs
from snapshot_explorer.formats.paimon.files.column_groups import BLOB_FORMAT
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.metadata.schema import Schemas
from snapshot_explorer.formats.paimon.metadata.supported import FORMATS, format_in_name
from snapshot_explorer.storage import Storage


def file_check(storage: Storage, schemas: Schemas) -> FileCheck:
    """Return the function that reads a file with columns, or a blob file, whose entries have checksums."""

    def fields_of(number: int | None, schema: pa.Schema, _: object) -> list[FileField]:
        stored = () if number is None else schemas.by_id([number])[number].fields
        ids = {field.name: field.id for field in stored}
        return [replace(file_field(field), id=ids.get(field.name)) for field in schema]

    def check(file: RecordedFile, reading: FileReading) -> CheckedFile:
        kind = format_in_name(file.path.rpartition("/")[2])
        if kind not in FORMATS:
            return CheckedFile(skip_reason=f"files of the format {kind} are not read")
        if kind != BLOB_FORMAT:
            own_fields = partial(fields_of, file.schema_id)
            return check_file(storage, file, reading, cast("FileKind", kind), fields_of=own_fields)
        if reading == "columns":
            return CheckedFile(skip_reason="blob files have no footer with sizes of columns")
        if file.rows is None or file.size_bytes is None:
            return CheckedFile(skip_reason="its manifest does not record how many rows it has")
        blobs.check(storage, _blob(file.path, file.size_bytes, file.rows), is_whole=reading == "bytes")
        return CheckedFile(rows=file.rows)

    return check


def _blob(path: str, size_bytes: int, rows: int) -> PaimonDataFile:
    return PaimonDataFile(
        path=path,
        format=BLOB_FORMAT,
        schema_id=0,
        rows=rows,
        size_bytes=size_bytes,
        level=0,
        min_sequence=0,
        max_sequence=0,
        deleted_rows=None,
        write_columns=None,
    )
