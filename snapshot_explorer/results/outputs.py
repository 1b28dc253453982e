"""Every file and folder on the local disk that this package writes. None is ever in the folder of a table."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats import is_metadata_name, is_recognized, metadata_folders
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.location import LOCAL, parse_location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/", re.ASCII)
_DATA_FILE = re.compile(
    r".*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}.*\.(?:parquet|orc|avro|bin|puffin|hfile)", re.ASCII | re.IGNORECASE
)
"""The names that writers of all formats give to files of tables, also outside of the table's folder."""
_MAX_LINKS = 40
"""The maximum number of symbolic links of a path that are followed one by one, as Linux does."""


def output_path(path: str | PathLike[str]) -> Path:
    """Return the path of a file to write; `~` is the home folder. Writes nothing.

    Raises:
        InvalidArgumentError: It is a URL, a folder, or in a table; or its folder does not exist.
    """
    target = _local(path, "path must be the path of a file")
    if target.is_dir():
        raise InvalidArgumentError(f"{target} is a folder. Give the path of a file in it.")
    _check_folders(path, target)
    if target.is_file() and _DATA_FILE.fullmatch(target.resolve().name):
        raise InvalidArgumentError(
            f"{path} exists, and its name is that of a data file of a table. Tables are read-only. Choose another name."
        )
    if not target.resolve().parent.is_dir():
        raise InvalidArgumentError(f"The folder {target.parent} does not exist. Create it first.")
    return target


def new_output_path(path: str | PathLike[str], *, overwrite: bool) -> Path:
    """Return the path of a file to write, which does not exist unless it is to be replaced. Writes nothing.

    Raises:
        InvalidArgumentError: As in `output_path`; or the file exists.
    """
    target = output_path(path)
    if target.exists() and not overwrite:
        overwriting = Hint("", {"overwrite": True})
        raise InvalidArgumentError(
            Message(f"{target} exists. Choose another file, or replace it with ", overwriting, ".")
        )
    return target


def output_folder(path: str | PathLike[str], *, name: str = "path") -> Path:
    """Return the path of a folder for files to write, which need not exist. Writes nothing.

    Args:
        name: The name of the argument, for messages.

    Raises:
        InvalidArgumentError: It is a URL, or in a table.
    """
    folder = _local(path, f"{name} must be the path of a folder")
    _check_folders(path, folder / "file")
    return folder.resolve()


@contextmanager
def output_file(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a new file that takes the place of the file at a path when all of it is written.

    The new file is written beside that file, so that an error or Ctrl-C leaves the path unchanged. A pipe or a device
    is written to directly.

    Raises:
        InvalidArgumentError: As in `output_path`.
        OSError: The file cannot be written.
    """
    target = output_path(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    resolved = target.resolve()  # a symbolic link stays one
    if resolved.exists() and not os.access(resolved, os.W_OK):
        raise PermissionError(13, "The file is write-protected", str(target))
    new = resolved.with_name(f".{token_hex(8)}.part")
    try:
        with new.open("xb") as file:
            yield file
        if resolved.exists():
            shutil.copymode(resolved, new)
        new.replace(resolved)
    except OSError as error:
        if error.filename != str(new):
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        new.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Create a folder and its parents, unless it exists.

    Raises:
        InvalidArgumentError: As in `output_folder`.
        OSError: It cannot be created.
    """
    output_folder(path).mkdir(parents=True, exist_ok=True)


def scratch_folder(name: str) -> Path:
    """Return a new folder for temporary files, which the caller removes.

    Raises:
        InvalidArgumentError: The system's folder for temporary files is in a table.
    """
    parent = tempfile.gettempdir()
    try:
        output_folder(parent)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"Temporary files are needed, and no other folder was found for them: {error} The environment variable "
            "TMPDIR names another one."
        ) from error
    return Path(tempfile.mkdtemp(prefix=f"snapshot-{name}-", dir=parent))


def _local(path: str | PathLike[str], rule: str) -> Path:
    try:
        target = Path(path).expanduser()
        target.resolve()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgumentError(f"{rule}, got {path!r}.") from error
    if _URL.match(str(path)):
        location = parse_location(str(path))
        if location.protocol == LOCAL:
            raise InvalidArgumentError(f"{path} is a URL. Give the path without it: {location.address}.")
        raise InvalidArgumentError(
            f"{location.shown} is a URL, but files are written to the local disk. Choose a path there."
        )
    return target


def _check_folders(path: str | PathLike[str], target: Path) -> None:
    """Raise InvalidArgumentError if a path leads into or through a table, however it is spelled."""
    for folder in dict.fromkeys(chain(target.resolve().parents, _folders_on_the_way(target))):
        if _is_table(path, folder):
            raise InvalidArgumentError(
                f"{path} is in the table {folder}, which is read-only. Choose a file outside of it."
            )
    folder = target.resolve().parent
    if (name := _metadata_in(folder)) is not None:
        raise InvalidArgumentError(
            f"{path} is in {folder}, which contains metadata of a table ({name}). Tables are read-only. Choose a file "
            "outside of it."
        )


def _folders_on_the_way(target: Path) -> Iterator[Path]:
    """Yield the folders above a path as it is spelled, and after each symbolic link that it leads through."""
    spelled = Path(os.path.abspath(target))  # noqa: PTH100 - Path has no way to drop `..` without following links
    for _ in range(_MAX_LINKS):
        yield from spelled.parents
        link = next((item for item in (spelled, *spelled.parents) if item.is_symlink()), None)
        if link is None:
            return
        spelled = Path(os.path.abspath(link.parent / link.readlink() / spelled.relative_to(link)))  # noqa: PTH100


def _is_table(path: str | PathLike[str], folder: Path) -> bool:
    names = frozenset(name for name in metadata_folders() if (folder / name).is_dir())
    try:
        return bool(names) and is_recognized(Storage(str(folder)), names)
    except SnapshotExplorerError as error:
        raise InvalidArgumentError(
            f"Whether {path} is in a table is not known: {folder} cannot be read. {error} Choose another folder."
        ) from error


def _metadata_in(folder: Path) -> str | None:
    """Return the name of a file in a folder that only metadata of tables has; None if there is none."""
    try:
        names = [item.name for item in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidArgumentError(
            f"Whether {folder} contains metadata of a table is not known: {error.strerror}. Choose another folder."
        ) from error
    return next(filter(is_metadata_name, names), None)
