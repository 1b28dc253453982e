"""Map recorded paths to the paths to open.

A metadata file records absolute paths. A table that was moved or copied is read from the folder that the user opened: a
path below the recorded location is opened below that folder. Recorded paths are compared as they are, and rewritten
only to open a file.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import array, scalar
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.storage.location import shorten

_LOCAL = re.compile(r"file:(?://(?:localhost(?=/))?)?(?=/)", re.IGNORECASE)
_HDFS = re.compile(r"hdfs:(?://[^/]*)?(?=/)", re.IGNORECASE)
_METADATA = "/metadata/"
_MAX_EARLIER = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Locations:
    """Maps recorded paths to paths that `Storage` opens. Picklable."""

    root: str
    """The folder where the table was opened."""
    recorded: str
    """Its location in the metadata file."""
    prefixes: tuple[tuple[str, str], ...]
    """Normal forms of recorded folders with their replacements: text that ends with a slash, or empty for the table's
    folder. The first match counts."""

    @property
    def is_moved(self) -> bool:
        """Return whether the table is at another location than recorded."""
        return normal(self.recorded) != normal(self.root)

    @property
    def note(self) -> str | None:
        """Return a sentence about a moved table; None for one at its recorded location."""
        if not self.is_moved:
            return None
        return f"The metadata records the table at {shorten(self.recorded)}; its files are read where it was opened."

    def one(self, path: str) -> str:
        """Return the path to open for a recorded path."""
        return str(self.many(array([path], pa.string()))[0].as_py())

    def many(self, paths: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the path to open for each recorded path: relative to the table's folder, or a full location.

        A path on another storage remains a full location, which `Storage` refuses when it is opened.
        """
        recorded = single_chunk(paths)
        moved = self._below_one_prefix(recorded)
        if moved is not None:
            return moved
        plain = _normal_array(recorded)
        moved = self._below_one_prefix(plain)
        if moved is not None:
            return moved
        bare = pc.replace_substring_regex(plain, r"(?i)^hdfs:(//[^/]*)?/", "/")
        result = _full(plain)
        for prefix, replacement in reversed(self.prefixes):
            # One table may name the name node of HDFS in some paths only.
            without_node = _HDFS.sub("", prefix)
            forms = [(bare, prefix)] if prefix.startswith("/") else [(plain, prefix), (plain, without_node)]
            for texts, form in forms:
                rest = pc.utf8_slice_codeunits(texts, start=len(form))
                moved = (
                    pc.binary_join_element_wise(scalar(replacement, pa.string()), rest, scalar("", pa.string()))
                    if replacement
                    else self._below(rest)
                )
                result = pc.if_else(pc.starts_with(texts, form), moved, result)
        return result

    def _below_one_prefix(self, paths: pa.Array) -> pa.Array | None:
        """Return the paths to open if all are below the same recorded folder, as is usual; None if not.

        A path that begins with a normal form is normal itself. Paths of HDFS have two forms, and are left out.
        """
        for prefix, replacement in self.prefixes:
            if prefix == "/" or _HDFS.match(prefix):
                return None
            fits = pc.starts_with(paths, prefix)
            if pc.all(fits).as_py():
                rest = pc.utf8_slice_codeunits(paths, start=len(prefix))
                return (
                    pc.binary_join_element_wise(scalar(replacement, pa.string()), rest, scalar("", pa.string()))
                    if replacement
                    else self._below(rest)
                )
            if pc.any(fits).as_py():
                return None
        return None

    def _below(self, rest: pa.Array) -> pa.Array:
        """Return paths below the table's folder. Only an object store may have keys with two slashes."""
        if self.root.startswith("/"):
            return pc.utf8_ltrim(rest, "/")
        full = pc.binary_join_element_wise(scalar(self.root + "/", pa.string()), rest, scalar("", pa.string()))
        return pc.if_else(pc.starts_with(rest, "/"), full, rest)


def locations_of(
    root: str, recorded: str, earlier: Iterable[str] = (), relocate: Mapping[str, str] | None = None
) -> Locations:
    """Return the mapping of a table's recorded paths.

    Args:
        root: The folder where the table was opened.
        earlier: Recorded paths of metadata files and manifest lists. If a table was moved more than once, or its
            location was changed, they contain other locations.
        relocate: Folders that were moved, from the user.
    """
    prefixes = [(normal(old) + "/", _target(new, root)) for old, new in (relocate or {}).items()]
    prefixes.sort(key=lambda pair: -len(pair[0]))
    opened, origin = normal(root), normal(recorded)
    own = [origin] if origin else []
    if origin != opened:
        own += _earlier(earlier, origin)
    own.append(opened)
    unique = sorted(dict.fromkeys(own), key=len, reverse=True)
    prefixes += [(item.rstrip("/") + "/", "") for item in unique]
    return Locations(root=root, recorded=recorded, prefixes=tuple(prefixes))


def _earlier(paths: Iterable[str], recorded: str) -> list[str]:
    folders: dict[str, None] = {}
    for path in paths:
        folder = normal(path).rpartition(_METADATA)[0]
        if folder and folder != recorded and not folder.startswith(recorded + "/"):
            folders.setdefault(folder)
            if len(folders) >= _MAX_EARLIER:
                break
    return list(folders)


def _target(new: str, root: str) -> str:
    """Return the replacement of a moved folder: empty for the table's own folder."""
    target, folder = normal(new), normal(root)
    if target == folder:
        return ""
    if target.startswith(folder + "/"):
        return target[len(folder) + 1 :] + "/"
    return ("file://" if target.startswith("/") else "") + target + "/"


def normal(path: str) -> str:
    """Return a folder in the form in which prefixes are compared: schemes that name one storage are one.

    Local folders have no scheme, and the aliases of S3 are `s3`. It has no slash at the end.
    """
    plain = _LOCAL.sub("", path)
    if plain != path or plain.startswith("/"):
        plain = re.sub(r"^/+", "/", plain)
    plain = re.sub(r"^s3[an]://", "s3://", plain, flags=re.IGNORECASE)
    return plain.rstrip("/")


def _normal_array(paths: pa.Array) -> pa.Array:
    plain = pc.replace_substring_regex(paths, r"(?i)^file:(//localhost/|/)/*", "/")
    plain = pc.replace_substring_regex(plain, r"^//+", "/")
    return pc.replace_substring_regex(plain, r"(?i)^s3[an]://", "s3://")


def _full(plain: pa.Array) -> pa.Array:
    """Return normal forms of absolute paths as full locations with a scheme."""
    local = pc.starts_with(plain, "/")
    full = pc.if_else(local, pc.binary_join_element_wise("file://", plain, ""), plain)
    return pc.replace_substring_regex(full, r"^([A-Za-z][A-Za-z0-9+.\-]+):/([^/])", r"\1:///\2")
