"""Data files that are read to check them: recorded metadata and actual content."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFile:
    """A data file as metadata records it."""

    path: str
    size_bytes: int | None
    """Its size; None if not recorded."""
    rows: int | None
    """The rows that it stores, including deleted rows; None if not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """The result of checking a data file."""

    rows: int | None = None
    """Its rows by its footer, or as they were read; None if that is not compared."""
    skip_reason: str | None = None
    """Why it was not read; None if it was."""


FileCheck = Callable[[RecordedFile, bool], CheckedFile]
"""Reads a data file: its footer or, if the second argument is true, all of it.

Raises MissingFileError, StorageError, CorruptTableError or UnsupportedFeatureError.
"""
