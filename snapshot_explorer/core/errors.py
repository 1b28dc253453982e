"""Every error that this package raises on purpose.

```
SnapshotExplorerError
├── TableNotFoundError      (FileNotFoundError)    no table at the path, or no such branch
├── SnapshotNotFoundError   (LookupError)          no version matches the ref, or it has expired
├── PositionError           (LookupError)          the history does not continue from a saved position of changes
├── InvalidArgumentError    (ValueError)           an argument does not fit: a column, a condition, a limit
│   ├── InvalidRefError                            the text is not a valid ref
│   └── UnknownColumnError                         there is no column of that name
├── UnsupportedFeatureError (NotImplementedError)  the table uses a feature that is not read; it is named
├── CorruptTableError       (ValueError)           a file of the table contradicts the format; it is named
├── LimitError              (MemoryError)          a file needs more memory or time than `Limits` allows
├── ResourceError           (MemoryError)          the machine lacks memory, disk space, threads or open files
├── StorageError            (OSError)              the storage did not answer, or refused
│   ├── MissingFileError    (FileNotFoundError)    one file does not exist
│   └── AccessDeniedError   (PermissionError)      the storage refused access to a file or folder
└── MissingDependencyError  (ImportError)          an optional package, or Spark's Java, is missing or does not start
```

A message names the request, what was found and what to do next; a call to make next is a `Hint` in a `Message`. It is
one line: invisible characters in a table's names and values are escaped. It never contains a secret, nor a URL's user,
password, query or signature.
"""

from snapshot_explorer.core.hints import map_texts
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.url_secrets import hide_url_secrets


class SnapshotExplorerError(Exception):
    """The root of the tree: catch it to catch everything raised on purpose."""

    def __init__(self, *args: object) -> None:
        """Store a message, with invisible characters escaped and the secrets of URLs hidden, also in its hints."""
        super().__init__(*(_safe(arg) if isinstance(arg, str) else arg for arg in args))

    @property
    def message(self) -> str:
        """The message, with its hints if it is a `Message`; `str(error)` spells them in Python."""
        return self.args[0] if len(self.args) == 1 and isinstance(self.args[0], str) else str(self)


class TableNotFoundError(SnapshotExplorerError, FileNotFoundError):
    """There is no table at the path, or no such branch of it."""


class SnapshotNotFoundError(SnapshotExplorerError, LookupError):
    """No version matches the ref, or the version has expired: its snapshot, its log or its files were deleted."""


class PositionError(SnapshotExplorerError, LookupError):
    """The history does not continue from a position of changes: it expired, was rolled back or rewritten.

    The message names what happened, and its hints the positions from which to go on.
    """


class InvalidArgumentError(SnapshotExplorerError, ValueError):
    """An argument such as a column, a condition or a limit does not fit the table."""


class InvalidRefError(InvalidArgumentError):
    """The text is not a valid ref."""


class UnknownColumnError(InvalidArgumentError):
    """There is no column of that name."""

    def __init__(self, column: str, *, where: str, hint: str, columns: str) -> None:
        """Store a message.

        Args:
            hint: A sentence on what may be meant; empty without one.
        """
        self.column = column
        self._where = where
        self._columns = columns
        super().__init__(self.with_hint(hint))

    def with_hint(self, hint: str) -> str:
        """Return the message with another hint."""
        return f"Unknown column {self.column!r}{self._where}. {f'{hint} ' if hint else ''}Columns: {self._columns}."

    def __reduce__(self) -> tuple[type[InvalidArgumentError], tuple[str]]:
        return InvalidArgumentError, (str(self),)


class UnsupportedFeatureError(SnapshotExplorerError, NotImplementedError):
    """The table uses a feature that is not read. The message names it; no row has been returned."""


class CorruptTableError(SnapshotExplorerError, ValueError):
    """A file of the table is missing, cut short, or contradicts the format. The message names it."""


class LimitError(SnapshotExplorerError, MemoryError):
    """A metadata file needs more memory or time than `Limits` allows. The message names file, limit and value."""


class ResourceError(SnapshotExplorerError, MemoryError):
    """The machine lacks memory, disk space, threads or open files for a call. It is not about the table."""


class StorageError(SnapshotExplorerError, OSError):
    """The storage did not answer, or refused: network, credentials, permissions."""


class MissingFileError(StorageError, FileNotFoundError):
    """One file does not exist. Formats turn it into an error that names the purpose of the file."""


class AccessDeniedError(StorageError, PermissionError):
    """The storage refused access to a file or folder. Others may be readable."""


class MissingDependencyError(SnapshotExplorerError, ImportError):
    """An optional package is not installed, or Spark finds no Java to start with. The message names what to install."""


def _safe(text: str) -> str:
    # Every surface quotes the arguments of hints, which escapes invisible characters in its own way.
    return map_texts(text, lambda part: sanitize(hide_url_secrets(part)), hide_url_secrets)


UNREADABLE = (
    CorruptTableError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
    MissingFileError,
    AccessDeniedError,
    LimitError,
)
"""Errors of a version that cannot be read, rather than of a condition, or of a storage that does not answer."""
