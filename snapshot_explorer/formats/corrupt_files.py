"""Errors for files that cannot be decoded or are not as recorded, and the advice for a missing one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import (
    CorruptTableError,
    LimitError,
    MissingFileError,
    SnapshotExplorerError,
    UnsupportedFeatureError,
)
from snapshot_explorer.core.hints import Hint, Message, without_period
from snapshot_explorer.core.old_libraries import PYARROW_VARIANTS
from snapshot_explorer.formats.features import (
    DISTANT_TIMES_IN_FILES,
    ENCRYPTED_FILES,
    LEAVE_OUT,
    OPTIONAL_MAP_KEYS,
    UNKNOWN_PARQUET_TYPES,
    UNKNOWN_ZONES_IN_FILES,
    refusal,
)

_UNKNOWN_GROUPS = ("LogicalType that is not recognized", "cannot be applied to group node")
"""Parts of the message of pyarrow for a column of the type VARIANT, by version."""
_TOO_DEEP = "too deeply nested"
"""A part of the message of pyarrow for a file with more than 100 levels of columns."""
LOADABLE = Message(Hint("table.verify"), " lists the versions that can be loaded")
"""Advice for a missing file: only a listing shows whether newer or older versions need it."""


@contextmanager
def named_in_errors(path: str, file_format: str, missing: Callable[[], Exception]) -> Iterator[None]:
    """Translate the errors of readers into errors that name the data file.

    Args:
        missing: Returns the error for a file that does not exist.
    """
    try:
        yield
    except MissingFileError as error:
        raise missing() from error
    except SnapshotExplorerError:
        raise
    except (pa.ArrowException, CorruptBytesError, OSError, ValueError, LookupError, OverflowError) as error:
        raise _unreadable(path, file_format, error) from error


def _unreadable(path: str, file_format: str, error: Exception) -> Exception:
    """Return our error for a reader's error about a data file."""
    resources.check(error, f"The data file {path} could not be read")
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "crypt" in text.lower():
        return refusal(ENCRYPTED_FILES, path=path)
    if _TOO_DEEP in text:
        return LimitError(
            f"The data file {path} has columns within each other to more levels than pyarrow reads: {text}. The "
            "table's history and list of files are available."
        )
    if "out of range" in text.lower() and "timestamp" in text.lower():
        return refusal(DISTANT_TIMES_IN_FILES, path=path, file_format=file_format, reason=text)
    if "Time zone file" in text:
        return refusal(UNKNOWN_ZONES_IN_FILES, path=path, reason=text)
    if PYARROW_VARIANTS.applies() and any(words in text for words in _UNKNOWN_GROUPS):
        return refusal(UNKNOWN_PARQUET_TYPES, path=path, reason=f"{text}. {PYARROW_VARIANTS.remedy()}")
    if "LogicalType that is not recognized" in text:
        return refusal(UNKNOWN_PARQUET_TYPES, path=path, reason=text)
    if "Map keys must be annotated as required" in text:
        return refusal(OPTIONAL_MAP_KEYS, path=path)
    return CorruptTableError(
        f"The data file {path} cannot be read as {file_format}: {text}. It may have been cut short or "
        "overwritten; compare it with a copy of the table."
    )


@contextmanager
def column_named_in_errors(
    name: str, dtype: str, file: str, *, readers: str = "", distant_times: bool = False, advice: str = ""
) -> Iterator[None]:
    """Translate errors of conversions to the type of a column into errors that name the column, the type and the file.

    Args:
        file: The file, as in "the data file x.parquet".
        readers: Other readers that may read the column, as in "Iceberg's own readers".
        distant_times: Whether errors about times out of range remain, for `named_in_errors`.
        advice: A sentence for a damaged file.
    """
    shown = f"The column {name!r} of {file} cannot be read as {dtype}"
    try:
        yield
    except CorruptTableError:
        raise
    except UnsupportedFeatureError as error:
        rest = f", or read it with {readers}." if readers else "."
        reason = without_period(error.message)
        raise UnsupportedFeatureError(
            Message(f"{shown}: ", reason, ". Leave the column out with ", LEAVE_OUT, rest)
        ) from error
    except (pa.ArrowException, KeyError, ValueError, OverflowError) as error:
        resources.check(error, f"{file[:1].upper()}{file[1:]} could not be read")
        if distant_times and "out of range" in str(error):
            raise
        raise CorruptTableError(f"{shown}: {error}.{advice and ' '}{advice}") from error


def check_size(path: str, size_bytes: int, recorded: int | None, *, by: str) -> None:
    """Check the size of a file that is read against the size that the metadata records.

    Args:
        size_bytes: The actual size of the file.
        recorded: The size in the metadata; None if not recorded.
    """
    if recorded is not None and size_bytes != recorded:
        raise CorruptTableError(
            f"{path} has {size_bytes} bytes, but {by} records {recorded}: it was cut short or replaced. Compare it "
            "with a copy of the table, or choose another version."
        )


def check_rows(name: str, rows: int, recorded: int, *, by: str) -> None:
    """Check the number of rows of a file that is read against the number that the metadata records."""
    if rows != recorded:
        raise CorruptTableError(
            f"{name} has {rows} rows, but {by} records {recorded}. It may have been overwritten; compare it with a "
            "copy of the table."
        )


def check_read(name: str, rows: int, expected: int) -> None:
    """Check that the reader of a file returned all of its rows, or all of some row groups."""
    if rows != expected:
        raise CorruptTableError(
            f"{name} returned {rows} rows, but {expected} are expected. It is damaged; compare it with a copy of the "
            "table."
        )


def absent_file_error(name: str, error: Exception | None = None) -> CorruptTableError:
    """Return the error for a file that does not exist, although the metadata that was read names it.

    Args:
        error: The error of the storage, if the name does not include the path.
    """
    detail = f" ({str(error).rstrip('.')})" if error else ""
    return CorruptTableError(
        Message(
            f"{name} does not exist{detail}. The version may have expired while it was read, or the file was removed "
            "by hand. ",
            LOADABLE,
            ".",
        )
    )


def unreadable_error(name: str, error: Exception) -> CorruptTableError:
    """Return the error for a file, or a part of one, that cannot be decoded."""
    resources.check(error, f"{name} could not be read")
    return CorruptTableError(
        f"{name} cannot be read: {error}. It may have been cut short or overwritten; compare it with a copy of the "
        "table."
    )
