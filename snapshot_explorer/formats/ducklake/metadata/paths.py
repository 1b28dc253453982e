"""The paths of files: below the data path, or full locations.

Source: DuckLake specification 1.0, "Paths"; reference, "Paths".
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.storage import Storage

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def is_absolute(path: str) -> bool:
    """Return whether a recorded path is absolute, as a local path or a URL."""
    return path.startswith("/") or _URL.match(path) is not None or _DRIVE.match(path) is not None


def relocated(path: str, relocate: Mapping[str, str]) -> str | None:
    """Return a recorded path with the longest recorded prefix replaced by its new one; None if none matches."""
    for recorded in sorted(relocate, key=len, reverse=True):
        if path.startswith(recorded):
            rest = path[len(recorded) :]
            now = relocate[recorded]
            slash = "/" if rest and not now.endswith("/") and not rest.startswith("/") else ""
            return f"{now}{slash}{rest}"
        if path == recorded.rstrip("/"):
            return relocate[recorded]
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """Where the data of a lake are."""

    recorded: str
    """As the catalog records it."""
    path: str
    """The folder or URL to read."""
    note: str | None = None
    """A sentence if it is elsewhere than recorded."""
    is_chosen: bool = False
    """Whether the caller named it, not the catalog."""


def data_path(recorded: str, catalog: str, folder: str | None, relocate: Mapping[str, str]) -> DataPath:
    """Return where the data are: a relative path counts from the folder of the catalog file.

    The engine's default folder beside the file is used if an absolute default path was recorded before the lake was
    moved and does not exist.

    Args:
        catalog: The name of the catalog file.
        folder: Its folder; None for a catalog on a server, whose relative and local paths are not known here.

    Raises:
        UnsupportedFeatureError: The catalog is on a server, and `relocate` does not say where its folder is.
    """
    slashed = recorded if recorded.endswith(("/", "\\")) else f"{recorded}/"
    moved = relocated(slashed, relocate)
    if moved is not None:
        return DataPath(
            recorded=recorded, path=moved, note=f"The data path {recorded} is read at {moved}.", is_chosen=True
        )
    if folder is None:
        if not _URL.match(recorded) or recorded.startswith("file:"):
            raise refusal(features.UNPLACED_DATA, path=recorded, prefix=slashed)
        return DataPath(recorded=recorded, path=recorded)
    if not is_absolute(recorded):
        return DataPath(recorded=recorded, path=_join(folder, recorded.removeprefix("./")))
    default = f"{catalog}.files"
    beside = _join(folder, default)
    is_gone = not _URL.match(recorded) and not os.path.isdir(recorded)  # noqa: PTH112 - text, not a path of ours
    if (
        slashed.rstrip("/\\").replace("\\", "/").endswith(f"/{default}")
        and is_gone
        and beside.rstrip("/") != recorded.rstrip("/")
    ):
        note = f"The recorded data path {recorded} does not exist. The folder {default} beside the catalog is read."
        return DataPath(recorded=recorded, path=beside, note=note)
    return DataPath(recorded=recorded, path=recorded)


def _join(folder: str, path: str) -> str:
    return f"{folder}{'' if folder.endswith('/') else '/'}{path}"


def file_paths(rows: pa.Table, folder: str, relocate: Mapping[str, str]) -> list[str]:
    """Return the paths of files: below the data path, or absolute.

    Args:
        rows: path and path_is_relative.
        folder: The folder of the table below the data path, or absolute; empty, or ends in a slash.
    """
    result = []
    for path, is_relative in zip(
        *(rows.column(name).to_pylist() for name in ("path", "path_is_relative")), strict=True
    ):
        if path is None:
            raise CorruptTableError("The catalog has a file without a path. It is damaged; compare it with a copy.")
        whole = path if is_relative is False else f"{folder}{path}"
        result.append((relocated(whole, relocate) or whole) if is_absolute(whole) else whole)
    return result


def folder_below(parent: str, path: str | None, *, is_relative: bool | None) -> str:
    """Return the folder of a schema or a table, with a slash at its end; without a path, its parent."""
    if not path:
        return parent
    whole = path if is_relative is False else f"{parent}{path}"
    return whole if whole.endswith("/") else f"{whole}/"


def below_root(path: str, root: str) -> str:
    """Return an absolute local path below a folder as its path there, and any other path unchanged."""
    return path.removeprefix(root.rstrip("/") + "/")


def readable_path(path: str, storage: Storage) -> str:
    """Return a path as `Storage` reads it. An absolute one is checked: it may be outside of the data path.

    Raises:
        UnsupportedFeatureError: It is on another storage, or outside, which `external_files` refuses.
    """
    if not is_absolute(path):
        return path
    return storage.resolve_external(path if _URL.match(path) else f"file://{path}")
