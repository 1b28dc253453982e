"""Sentences for messages about a path that is not a table: what it is, and which table may be meant."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from snapshot_explorer.core.errors import SnapshotExplorerError, StorageError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.text import list_names, pluralize
from snapshot_explorer.formats import is_table, metadata_folders, titles
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.location import missing_slash, mistaken_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from snapshot_explorer.storage import Entry

_CATALOG_NAME = re.compile(r"\w+(\.\w+){1,2}")
_SHOWN = 3
"""The number of existing folders that the message about a missing folder names if none is similar."""
_MAX_LISTED = 20
"""The maximum number of folders of a level that are searched for tables."""
_LEVELS = 3
"""The number of levels that are searched for tables, as in `find_tables` by default."""
_LEVELS_ABOVE = 4
"""The number of folders above a path that are checked, to find the table of `day=1/bucket-0/data.parquet`."""
_READ = f"Formats that are read: {titles()}."
_NAMED = Hint("open_table", {"path": "CATALOG::SCHEMA.TABLE"})
_PARQUET = (".parquet", ".parq")
_FILE_TYPES = {
    ".avro": "an Avro",
    ".csv": "a CSV",
    ".json": "a JSON",
    ".orc": "an ORC",
    ".parq": "a parquet",
    ".parquet": "a parquet",
    ".tsv": "a TSV",
}


def other_path(storage: Storage, storage_options: Mapping[str, Any] | None) -> str:
    """Return a sentence on a path that is not a table, and what to do; empty if nothing is known about the path.

    Names tables of unsupported formats, files, folders inside of a table, and folders of parquet files or of tables.
    Costs a few listings: of the folder and of folders above and below it. If one fails, nothing is known.
    """
    try:
        return _other_path(storage, storage_options)
    except SnapshotExplorerError:
        return ""


def _other_path(storage: Storage, storage_options: Mapping[str, Any] | None) -> str:
    root = storage.root
    try:
        entries = storage.list("")
    except StorageError as error:
        return _other_file(root, storage_options) if isinstance(error.__cause__, NotADirectoryError) else ""
    folders = frozenset(entry.name for entry in entries if entry.is_folder)
    if not entries or is_table(storage, folders):
        return ""
    names = {entry.name for entry in entries}
    if "_versions" in names and (root.endswith(".lance") or names & {"data", "_transactions"}):
        return f"{root} is a Lance table, which is not read yet. {_READ}"
    if any(name.startswith("ducklake-") and name.endswith(_PARQUET) for name in names):
        return Message(f"{root} has data files of a DuckLake table. Open the table by its catalog: ", _NAMED, ".")
    table = _table_above(root, storage_options)
    if table:
        return _inside(root, table)
    if _has_tables_below(root, storage_options):
        return Message(f"{root} is not a table. Tables are below it: ", Hint("find_tables", {"path": root}), ".")
    if _has_parquet(storage, entries):
        return (
            f"{root} is a folder of parquet files: it has no log, so it has no past versions. Read it with pandas or "
            "DuckDB."
        )
    return ""


def nearest_folder(path: str, storage_options: Mapping[str, Any] | None) -> str:
    """Return a suggestion for a missing folder: the table with the most similar name, and how many more folders exist.

    Or what a path such as `s3:/lake/orders`, `$LAKE/orders`, `'orders'` or `my%20orders` probably means, or how to open
    a table by its name in a catalog. Empty without a suggestion. One listing of the parent folder, or of the one above
    it if that is missing too, and a few of the folders in it.
    """
    url = missing_slash(path)
    if url is not None:
        return f"Did you mean {url}?"
    if hint := mistaken_path(path):
        return hint
    if os.path.expandvars(path) != path:
        return "Variables of the environment are not replaced: os.path.expandvars(path) does that."
    if "*" in path:
        return "A path has no wildcards. Give the folder, or, for tables in a catalog, spark= or catalog= too."
    if unquote(path) != path:
        return "Paths and URLs are taken as they are, not percent-encoded: write a space for %20."
    try:
        suggestion = _nearest(path.rstrip("/"), storage_options)
    except SnapshotExplorerError:
        suggestion = ""
    if _CATALOG_NAME.fullmatch(path) and not suggestion.startswith("Did you mean"):
        return f"If {path} is a name in a catalog, give spark= or catalog= too."
    return suggestion


def _other_file(root: str, storage_options: Mapping[str, Any] | None) -> str:
    name = root.lower()
    if name.endswith(".ducklake"):
        return f"{root} is no DuckLake catalog: it is neither a DuckDB file nor a SQLite file."
    table = _table_above(root, storage_options)
    if table:
        return _inside(root, table)
    file_type = next((text for suffix, text in _FILE_TYPES.items() if name.endswith(suffix)), None)
    if file_type is None:
        return f"{root} is a file, not a table. Give the folder of a table."
    return (
        f"{root} is not a table: {file_type} file has no versions. Read it with pandas or DuckDB, or give a table's "
        "folder."
    )


def _inside(root: str, table: str) -> str:
    return Message(f"{root} is inside of the table {table}. Open the table: ", Hint("open_table", {"path": table}), ".")


def _table_above(root: str, storage_options: Mapping[str, Any] | None) -> str | None:
    """Return the table that a path is inside of; None if it is in none. One listing for each folder above."""
    for folder in _folders_above(root):
        try:
            storage = Storage(folder, storage_options)
            if metadata_folders().intersection(storage.folders("")) and is_table(storage):
                return storage.root
        except SnapshotExplorerError:
            return None  # credentials may be valid only for the folder itself
    return None


def _folders_above(root: str) -> Iterator[str]:
    """Yield the nearest folders above a path, from the inside out."""
    for _ in range(_LEVELS_ABOVE):
        root = root.rpartition("/")[0]
        if not root or "::" in root or root.endswith((":", ":/")):
            return
        yield root


def _has_parquet(storage: Storage, entries: Sequence[Entry]) -> bool:
    """Return whether a folder, or the first folder of its partitions, has parquet files. A few listings."""
    folder = ""
    while not any(entry.name.endswith(_PARQUET) and not entry.is_folder for entry in entries):
        partition = next((entry.name for entry in entries if entry.is_folder and "=" in entry.name), None)
        if partition is None or folder.count("/") > _LEVELS_ABOVE:
            return False
        folder = _join(folder, partition)
        entries = storage.list(folder)
    return True


def _has_tables_below(root: str, storage_options: Mapping[str, Any] | None) -> bool:
    storage = Storage(root, storage_options)
    level = {"": storage.folders("")}
    for _ in range(_LEVELS):
        below = [_join(folder, name) for folder, names in level.items() for name in names if _may_be_table(name)]
        paths = below[:_MAX_LISTED]
        level = dict(zip(paths, storage.together(*(partial(storage.folders, name) for name in paths)), strict=True))
        for folder, names in level.items():
            if metadata_folders().intersection(names) and is_table(storage.below(folder)):
                return True
    return False


def _may_be_table(name: str) -> bool:
    return not name.startswith((".", "_")) and "=" not in name


def _nearest(rest: str, storage_options: Mapping[str, Any] | None) -> str:
    for _ in range(2):
        parent, slash, name = rest.rpartition("/")
        if parent.endswith((":", ":/")):
            return ""  # a bucket
        storage = Storage(parent or ("/" if slash else "."), storage_options)
        folders = [folder for folder in storage.folders("") if not folder.startswith((".", "_"))]
        if name in folders:
            return ""  # the folder is there, and empty
        if folders:
            return _did_you_mean(name, folders, storage.root, storage_options)
        rest = parent
    return ""


def _did_you_mean(name: str, folders: Sequence[str], parent: str, storage_options: Mapping[str, Any] | None) -> str:
    """Return the most similar folder that is a table, or has tables below it; otherwise some tables of the folder."""
    for near in get_close_matches(name, folders, _SHOWN, cutoff=0.5):
        path = _join(parent, near)
        if is_table(Storage(path, storage_options)) or _has_tables_below(path, storage_options):
            more = len(folders) - 1
            return f"Did you mean {near}?" + (f" {parent} has {pluralize(more, 'folder')} more." if more else "")
    candidates = folders[:_MAX_LISTED]
    tables = [folder for folder in candidates if is_table(Storage(_join(parent, folder), storage_options))][:_SHOWN]
    if tables:
        return f"{parent} has {pluralize(len(folders), 'folder')}, among them the tables {', '.join(tables)}."
    return f"{parent} has the folders {list_names(folders, _SHOWN)}."


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name
