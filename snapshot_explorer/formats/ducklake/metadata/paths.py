"""The paths of files: below the data path, or full locations.

Source: DuckLake specification 1.0, "Paths"; reference, "Paths".
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.corrupt_files import absent_file_error
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.storage import Storage

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")
_ABSOLUTE = rf"^(?:/|{_URL.pattern}|[A-Za-z]:[\\/])"


def _relocated(path: str, relocate: Mapping[str, str]) -> str | None:
    """Return a recorded path with the longest recorded prefix replaced by its new one; None if none matches."""
    for recorded in sorted(relocate, key=len, reverse=True):
        if path == recorded.rstrip("/"):
            return relocate[recorded]
        if path.startswith(recorded):
            rest, now = path[len(recorded) :], relocate[recorded]
            return f"{now}{rest}" if not rest or rest.startswith("/") else _join(now, rest)
    return None


def _join(folder: str, path: str) -> str:
    return f"{folder}{'' if folder.endswith('/') else '/'}{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """Where the data of a lake are."""

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
    moved = _relocated(slashed, relocate)
    if moved is not None:
        return DataPath(path=moved, note=f"The data path {recorded} is read at {moved}.", is_chosen=True)
    if folder is None:
        if not _URL.match(recorded) or recorded.startswith("file:"):
            raise refusal(features.UNPLACED_DATA, path=recorded, prefix=slashed)
        return DataPath(path=recorded)
    if not re.match(_ABSOLUTE, recorded):
        return DataPath(path=_join(folder, recorded.removeprefix("./")))
    default = f"{catalog}.files"
    beside, plain = _join(folder, default), slashed[:-1].replace("\\", "/")
    is_default = plain.endswith(f"/{default}") and plain != beside and not _URL.match(recorded)
    if is_default and not os.path.isdir(recorded):  # noqa: PTH112 - text, not a path of ours
        note = f"The recorded data path {recorded} does not exist. The folder {default} beside the catalog is read."
        return DataPath(path=beside, note=note)
    return DataPath(path=recorded)


def table_folders(schemas: pa.Table, tables: pa.Table) -> dict[int, str]:
    """Return the folder of each table below the data path, or absolute, with a slash at its end. Renames keep it.

    Args:
        schemas: The rows of ducklake_schema.
        tables: The rows of ducklake_table.
    """
    of_schemas = {row["schema_id"]: _folder_below("", row) for row in schemas.to_pylist()}
    rows = tables.sort_by("begin_snapshot").to_pylist()
    return {row["table_id"]: _folder_below(of_schemas.get(row["schema_id"], ""), row) for row in rows}


def _folder_below(parent: str, row: Mapping[str, Any]) -> str:
    if not row["path"]:
        return parent
    return _join(row["path"] if row["path_is_relative"] is False else f"{parent}{row['path']}", "")


def located(rows: pa.Table, folders: Mapping[int, str], relocate: Mapping[str, str], root: str) -> pa.Array:
    """Return the paths of files: below the data path, or absolute.

    Args:
        rows: path, path_is_relative and table_id; without that the files are below the data path itself.
        folders: The folder of each table.
        root: The data path.
    """
    paths = single_chunk(rows.column("path"))
    parents = pa.repeat("", len(rows))
    if "table_id" in rows.column_names:
        ids = pa.array(folders.keys(), pa.int64())
        of_tables = pc.index_in(single_chunk(rows.column("table_id")), value_set=ids)
        parents = pc.fill_null(pa.array(folders.values(), pa.string()).take(of_tables), "")
    is_relative = single_chunk(pc.fill_null(rows.column("path_is_relative"), True))  # noqa: FBT003 - the value of nulls
    whole = pc.if_else(is_relative, pc.binary_join_element_wise(parents, paths, ""), paths)
    is_full = pc.match_substring_regex(whole, _ABSOLUTE)
    if not is_full.true_count:
        return whole
    below = f"{root.rstrip('/')}/"
    full = [(_relocated(path, relocate) or path).removeprefix(below) for path in whole.filter(is_full).to_pylist()]
    return pc.replace_with_mask(whole, is_full, pa.array(full, pa.string()))


def readable_paths(paths: pa.Array, storage: Storage) -> list[str]:
    """Return paths as `Storage` reads them. Absolute ones are checked: they may be outside of the data path.

    Raises:
        UnsupportedFeatureError: One is on another storage, or outside, which `external_files` refuses.
    """
    texts: list[str] = paths.to_pylist()
    for index in np.flatnonzero(pc.match_substring_regex(paths, _ABSOLUTE).to_numpy(zero_copy_only=False)).tolist():
        path = texts[index]
        texts[index] = storage.resolve_external(path if _URL.match(path) else f"file://{path}")
    return texts


def absent_data_error(storage: Storage, shown: str) -> CorruptTableError:
    """Return the error for a file that does not exist, which says so if the whole data path is not there."""
    if not storage.is_local or storage.list(""):
        return absent_file_error(shown)
    return CorruptTableError(
        Message(
            f"{shown} does not exist: the data path {storage.root} is missing or empty. If the data were moved, name "
            "their folder: ",
            Hint("open_table", {"path": ..., "relocate": {"/old/": "/new/"}}),
            ".",
        )
    )
