"""Every error that this package raises on purpose.

```
SnapshotExplorerError
├── TableNotFoundError      (FileNotFoundError)    no table at the path, or a branch that is not there
├── SnapshotNotFoundError   (LookupError)          no version answers to the ref, or it has expired
├── InvalidArgumentError       (ValueError)           the text is no ref, or an argument makes no sense
├── UnsupportedFeatureError (NotImplementedError)  the table uses a feature that is not read, named here
├── CorruptTableError        (ValueError)           the table's files contradict the format, file named
├── LimitError              (MemoryError)          a file asks for more memory or time than `Limits` allows
├── StorageError            (OSError)              the storage did not answer, or refused
│   └── MissingFileError    (FileNotFoundError)    one file is not there
└── MissingDependencyError  (ImportError)          an optional package, or Spark's Java, is not there or does not start
```

A message says what was asked, what was found and what to do next. It never holds a key, and it is one line: what a
table's names and values hold that cannot be seen is escaped.
"""

from snapshot_explorer.visible import visible


class SnapshotExplorerError(Exception):
    """Is the root of the tree: catch it to catch everything raised on purpose."""

    def __init__(self, *args: object) -> None:
        """Hold a message, with characters that cannot be seen escaped."""
        super().__init__(*(visible(one) if isinstance(one, str) else one for one in args))


class TableNotFoundError(SnapshotExplorerError, FileNotFoundError):
    """There is no table at the path, or no such branch of it."""


class SnapshotNotFoundError(SnapshotExplorerError, LookupError):
    """No version answers to the ref, or the version has expired."""


class InvalidArgumentError(SnapshotExplorerError, ValueError):
    """The text is not a ref, or an argument such as a column or a condition does not fit the table."""


class UnsupportedFeatureError(SnapshotExplorerError, NotImplementedError):
    """The table uses a feature that is not read. The message names it; no row has been returned."""


class CorruptTableError(SnapshotExplorerError, ValueError):
    """A file of the table is missing, cut short, or contradicts the format. The message names it."""


class LimitError(SnapshotExplorerError, MemoryError):
    """A file of metadata asks for more memory or time than `Limits` allows. The message names file, limit and value."""


class StorageError(SnapshotExplorerError, OSError):
    """The storage did not answer, or refused: network, credentials, permissions."""


class MissingFileError(StorageError, FileNotFoundError):
    """One file is not there. Formats turn it into an error that says what the file was for."""


class MissingDependencyError(SnapshotExplorerError, ImportError):
    """An optional package is not installed, or Spark finds no Java to start with. The message says what to install."""
