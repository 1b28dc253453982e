"""The choice of the client for a storage: the local disk, this package's own requests, or an fsspec file system."""

from collections.abc import Mapping
from typing import Any

from snapshot_explorer.core.limits import Limits
from snapshot_explorer.storage.failures import is_missing_bucket
from snapshot_explorer.storage.files import Files, LocalFiles, RemoteFiles
from snapshot_explorer.storage.location import LOCAL, Location
from snapshot_explorer.storage.object_store_clients import settings
from snapshot_explorer.storage.object_stores import ObjectStoreFiles


def open_files(location: Location, options: Mapping[str, Any]) -> Files:
    """Return the files of a storage. Makes no request."""
    if location.protocol == LOCAL:
        return LocalFiles()
    connection = settings(location, options)
    return RemoteFiles(location, options) if connection is None else ObjectStoreFiles(connection)


def read_if_present(limits: Limits, files: Files, address: str) -> bytes | None:
    """Return a file's bytes; None if it certainly does not exist. fsspec raises the same error for a missing bucket."""
    try:
        return files.read(address, limits)
    except FileNotFoundError as error:
        if isinstance(files, LocalFiles | ObjectStoreFiles) and not is_missing_bucket(error):
            return None  # translating the error costs more than the call
        raise


def refuse_file(files: Files, address: str) -> None:
    """Raise NotADirectoryError if the address is a file, on a store that returns an empty listing for a file."""
    if files.lists_files_as_folders and "/" in address and files.is_file(address):
        raise NotADirectoryError(f"{address} is a file, not a folder")
