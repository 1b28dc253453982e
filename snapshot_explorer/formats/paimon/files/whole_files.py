"""Data files that are read to check them."""

from typing import cast

from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, RecordedFile
from snapshot_explorer.formats.files.whole_files import FileKind, check_file
from snapshot_explorer.formats.paimon.files import blobs
from snapshot_explorer.formats.paimon.files.column_groups import BLOB_FORMAT
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.metadata.supported import FORMATS, format_in_name
from snapshot_explorer.storage import Storage


def file_check(storage: Storage) -> FileCheck:
    """Return the function that reads a file with columns, or a blob file, whose entries have checksums."""

    def check(file: RecordedFile, is_whole: bool) -> CheckedFile:  # noqa: FBT001 - as FileCheck
        kind = format_in_name(file.path.rpartition("/")[2])
        if kind not in FORMATS:
            return CheckedFile(skip_reason=f"files of the format {kind} are not read")
        if kind != BLOB_FORMAT:
            return check_file(storage, file, is_whole=is_whole, kind=cast("FileKind", kind))
        if file.rows is None or file.size_bytes is None:
            return CheckedFile(skip_reason="its manifest does not record how many rows it has")
        blobs.check(storage, _blob(file.path, file.size_bytes, file.rows), is_whole=is_whole)
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
