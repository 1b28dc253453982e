"""The table formats. Their interface is in `interface`; a new format is one folder and one word in `FORMATS`.

No format imports another, and nothing above `formats` names one.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from snapshot_explorer.core.errors import InvalidArgumentError, TableNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.formats.capabilities import CatalogPath, CatalogTables
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.formats.ducklake import DuckLake
from snapshot_explorer.formats.hudi import Hudi
from snapshot_explorer.formats.iceberg import Iceberg
from snapshot_explorer.formats.interface import Detection as Detection
from snapshot_explorer.formats.interface import TableFormat as TableFormat
from snapshot_explorer.formats.interface import TableVersion as TableVersion
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.location import parse_location

FORMATS: tuple[type[TableFormat], ...] = (Paimon, Delta, Iceberg, Hudi, DuckLake)
"""The formats, in the order of detection: Paimon and Delta tables may contain metadata of Iceberg."""


def formats_by_name() -> Mapping[str, type[TableFormat]]:
    """Return the formats by their names."""
    return {table_format.name: table_format for table_format in FORMATS}


def metadata_folders() -> frozenset[str]:
    """Return the names of folders that contain the metadata of tables: every table has at least one of them."""
    return frozenset().union(*(table_format.metadata_layout.folders for table_format in FORMATS))


def catalog_files(names: Iterable[str]) -> list[str]:
    """Return the names of files that are surely catalogs, sorted."""
    patterns = [table_format.metadata_layout.catalog_files for table_format in FORMATS]
    return sorted(name for name in names if any(pattern.fullmatch(name) for pattern in patterns))


def is_table(storage: Storage, folders: Collection[str] | None = None) -> bool:
    """Return whether the storage's root is a table of any format.

    Args:
        folders: The folders in the root, if known.
    """
    return is_recognized(storage, frozenset(storage.folders("")) if folders is None else folders)


def is_recognized(storage: Storage, folders: Collection[str]) -> bool:
    """Return whether the storage's root, which contains these folders, is a table of any format."""
    return any(table_format.recognizes(storage, folders) for table_format in FORMATS)


def is_metadata_name(name: str) -> bool:
    """Return whether only metadata of tables, of any format, has files of this name."""
    return any(table_format.metadata_layout.file_names.fullmatch(name) for table_format in FORMATS)


def bind(
    storage: Storage,
    name: str | None = None,
    *,
    branch: str | None = None,
    metadata_file: str | None = None,
    relocate: Mapping[str, str] | None = None,
) -> TableFormat:
    """Return the table at the storage's root, bound to a branch.

    Args:
        branch: The branch; the main one for None.
        metadata_file: The metadata file to read, below the root; the current one for None.
        relocate: Recorded folders that were moved, and their new paths.
    """
    others: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()
    name_of_file = "" if metadata_file is None else metadata_file.rpartition("/")[2]
    by_file = _format_of_table_file(name_of_file)
    is_by_file = by_file is not None and name in (None, by_file.name)
    if by_file is not None and is_by_file:
        table_format = by_file
    else:
        folders = frozenset(storage.folders(""))
        table_format = detect(storage, name, folders=folders)
        others = tuple(other.name for other in others_in(storage, table_format, folders))
    if metadata_file is None and not relocate:
        result = table_format(storage, branch=branch)
        result.detection = Detection(other_formats=others, folders=folders)
        return result
    return table_format.at_metadata(storage, branch=branch, metadata_file=metadata_file, relocate=relocate)


_TABLE_IN_CATALOG = re.compile(
    r"""(?P<catalog>.+?)::(?P<table>(?:\w+|"(?:[^"]|"")+")(?:\.(?:\w+|"(?:[^"]|"")+"))?(?:\#\d+)?)""",
    re.DOTALL | re.ASCII,
)
"""A table in a catalog in one text: `lake/shop.ducklake::main.orders`."""


def catalog_at(
    path: object, table: str | None, make_storage: Callable[[str], Storage], limits: Limits = DEFAULT
) -> tuple[CatalogTables[TableFormat], str | None] | None:
    """Return the catalog at a path, and the name of the table in it that the path or `table` has; None for no catalog.

    Raises:
        InvalidArgumentError: `table` is given, and the path is no catalog.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        return None
    match = None if table is not None else _TABLE_IN_CATALOG.fullmatch(text)
    candidates = [(text, table), *([(match["catalog"], match["table"])] if match else [])]
    for address, name in candidates:
        place = CatalogPath(text=address, make_storage=make_storage, limits=limits, is_named=name is not None)
        for table_format in FORMATS:
            catalog = table_format.metadata_layout.catalog_at(place)
            if catalog is not None:
                return catalog, name
    if table is not None:
        raise InvalidArgumentError(
            "The argument table names a table in a catalog that is one file, and the path is no such file. Give the "
            "path of the catalog, or open the table's folder without the argument."
        )
    return None


def first_files(name: str | None = None) -> list[str]:
    """Return the files that opening a table reads first, of a format or of all."""
    formats = [table_format for table_format in FORMATS if name in (None, table_format.name)]
    files = [table_format.metadata_layout.first_file for table_format in formats]
    return [file for file in files if file is not None]


def split_metadata_path(path: object) -> tuple[str, str] | None:
    """Return the table's folder and the path below it if a path names a metadata file, otherwise None.

    The table's folder is the parent of the metadata folder.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        return None
    folder, _, name = text.rpartition("/")
    if _format_of_table_file(name) is None:
        return None
    if "://" not in text:
        folder = parse_location(folder or ".").address  # `file:/wh` too, as Hadoop writes it; URLs are unchanged
    root, slash, inner = folder.rpartition("/")
    return (root or "/", f"{inner}/{name}") if slash and not root.endswith(":/") else None


def metadata_file_format(path: str) -> str | None:
    """Return the name of the format whose metadata file a path names; None if it names none."""
    table_format = None if split_metadata_path(path) is None else _format_of_table_file(path.rpartition("/")[2])
    return None if table_format is None else table_format.name


def _format_of_table_file(name: str) -> type[TableFormat] | None:
    """Return the format whose tables can be opened by a metadata file of this name."""
    return next((candidate for candidate in FORMATS if candidate.metadata_layout.table_files.fullmatch(name)), None)


def titles(last_word: str = "and") -> str:
    """Return the names of the formats, such as `Paimon, Delta Lake, Iceberg and Hudi`."""
    return _listed([table_format.title for table_format in FORMATS], last_word)


def names() -> str:
    """Return the names by which a format is required, such as `paimon, delta, iceberg or hudi`."""
    return _listed([table_format.name for table_format in FORMATS])


def _listed(words: Sequence[str], last_word: str = "or") -> str:
    return f"{', '.join(words[:-1])} {last_word} {words[-1]}"


def detect(storage: Storage, name: str | None = None, *, folders: frozenset[str] | None = None) -> type[TableFormat]:
    """Return the format of the table at the storage's root.

    Args:
        name: The only format to detect. So `iceberg` finds the Iceberg metadata in a Paimon or Delta table, which
            their compatibility options write.
        folders: The folders in the root, if known.
    """
    known = formats_by_name()
    if name is not None and name not in list(known):
        raise InvalidArgumentError(f"No format is called {name!r}. Formats: {', '.join(known)}.")
    folders = frozenset(storage.folders("")) if folders is None else folders
    if name is not None and known[name].recognizes(storage, folders):
        return known[name]
    result = next((candidate for candidate in FORMATS if candidate.recognizes(storage, folders)), None)
    if result is None:
        raise TableNotFoundError(_what_is_there(storage, name))
    if name is not None:
        raise TableNotFoundError(
            f"{storage.root} is not a {name} table but a {result.name} table. "
            f"Leave the format out, or write {result.name}."
        )
    return result


def others_in(storage: Storage, table_format: type[TableFormat], folders: Collection[str]) -> list[type[TableFormat]]:
    """Return the other formats with metadata in the table's folder. No request unless a folder has such a name."""
    return [
        other
        for other in FORMATS
        if other is not table_format
        and other.metadata_layout.folders.intersection(folders)
        and other.recognizes(storage, folders)
    ]


def _what_is_there(storage: Storage, name: str | None) -> str:
    noun = f"{name or _listed([item.title for item in FORMATS])} table"
    entries = storage.list("")
    if not entries:
        return f"No {noun} at {storage.root}: the folder is missing or empty. Check the path and the options."
    names = sorted(entry.name for entry in entries)
    if catalogs := catalog_files(names):
        found = f"No {noun} at {storage.root}, but the catalog {catalogs[0]}. "
        return Message(found, Hint("find_tables", {"path": storage.root}), " lists the tables of catalogs too.")
    folders = ", ".join(
        f"{table_format.title} tables {'/ and '.join(sorted(table_format.metadata_layout.folders))}/"
        for table_format in FORMATS
        if table_format.metadata_layout.folders
    )
    return (
        f"No {noun} at {storage.root}. The folder of a table has folders of metadata: {folders}. "
        f"Found: {', '.join(names[:5])}. Use the path of the table's own folder."
    )
