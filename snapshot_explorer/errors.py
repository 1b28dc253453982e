"""The errors that are raised on purpose, for users to catch. `core/errors.py` defines them."""

from snapshot_explorer.core.errors import (
    AccessDeniedError,
    CorruptTableError,
    InvalidArgumentError,
    InvalidRefError,
    LimitError,
    MissingDependencyError,
    MissingFileError,
    PositionError,
    ResourceError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    StorageError,
    TableNotFoundError,
    UnknownColumnError,
    UnsupportedFeatureError,
)

__all__ = [
    "AccessDeniedError",
    "CorruptTableError",
    "InvalidArgumentError",
    "InvalidRefError",
    "LimitError",
    "MissingDependencyError",
    "MissingFileError",
    "PositionError",
    "ResourceError",
    "SnapshotExplorerError",
    "SnapshotNotFoundError",
    "StorageError",
    "TableNotFoundError",
    "UnknownColumnError",
    "UnsupportedFeatureError",
]
