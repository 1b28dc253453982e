"""Data files that are read to check them: recorded metadata and actual content."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFile:
    """A data file as metadata records it."""

    path: str
    size_bytes: int | None
    """Its size; None if not recorded."""
    rows: int | None
    """The rows that it stores, including deleted rows; None if not recorded."""
    schema_id: int | None = None
    """The schema of its writer, as in FILES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumn:
    """A column of a data file."""

    name: str
    id: int | None
    """The field id by which readers find it; None if they find it by its name, or not at all."""
    size_bytes: int
    """The size of its column chunks in Parquet, or of its streams with their indexes in ORC, as compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """The result of checking a data file."""

    rows: int | None = None
    """Its rows by its footer, or as they were read; None if that is not compared."""
    size_bytes: int = 0
    """Its size, if its columns were read."""
    columns: tuple[StoredColumn, ...] = ()
    """Its columns, if they were read."""
    skip_reason: str | None = None
    """Why it was not read; None if it was."""


FileReading = Literal["footer", "columns", "bytes"]
"""What is read of a data file: its footer; also the sizes of its columns, which in ORC costs a range per stripe; or
everything."""
FileCheck = Callable[[RecordedFile, FileReading], CheckedFile]
"""Reads a data file.

Raises MissingFileError, StorageError, CorruptTableError or UnsupportedFeatureError.
"""
