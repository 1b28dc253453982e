"""The file layout of a Paimon table: from names in the metadata to paths under the table's root."""

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.storage import Entry

MANIFESTS = "manifest"
INDEXES = "index"
MAIN = "main"
POSTPONED = -2
"""The bucket of files whose real bucket is assigned later."""

_ESCAPED = re.compile(r'[\x00-\x1f\x7f"#%\'*/:=?\\{}\[\]^]')
_UNSAFE = r"[/\\\x00]|\.\."
_UNSAFE_PARTS = (b"/", b"\\", b"\0", b"..")
_COMPRESSIONS = ("gz", "bz2", "deflate", "snappy", "lz4", "zst", "zstd", "lzo", "none")
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


class Layout:
    """The folders of one branch. All branches share the manifest, data and index folders of the main branch."""

    def __init__(self, branch: str | None = None) -> None:
        """Bind to an existing branch; None or `main` is the main one."""
        self.branch = None if branch in (None, MAIN) else branch
        self._root = f"branch/branch-{self.branch}/" if self.branch else ""

    def folder(self, kind: str) -> str:
        """Return the branch's folder of snapshots, schemas, tags, changelogs or consumers."""
        return f"{self._root}{kind}"

    def numbered(self, kind: str, number: int) -> str:
        """Return the path of `kind-N`, such as `snapshot/snapshot-7`."""
        return f"{self._root}{kind}/{kind}-{number}"

    def tag(self, name: str) -> str:
        """Return the path of the file of an existing tag."""
        return f"{self._root}tag/tag-{name}"

    def hint(self, kind: str, name: str) -> str:
        """Return the path of a hint, LATEST or EARLIEST."""
        return f"{self._root}{kind}/{name}"


def number_of(name: str, kind: str) -> int | None:
    """Return N of a file named `kind-N`, None for any other name, such as a temporary file's."""
    prefix, _, number = name.partition("-")
    return int(number) if prefix == kind and _NUMBER.fullmatch(number) else None


def branches_in(entries: Iterable[Entry]) -> list[str]:
    """Return the names of the branches in the entries of the folder of branches, sorted, without the main one."""
    names = [entry.name for entry in entries if entry.is_folder]
    return sorted(name.removeprefix("branch-") for name in names if name.startswith("branch-"))


def parse_hint(content: bytes | None) -> int | None:
    """Return the number in a hint file; None if the file is missing, empty or invalid."""
    text = (content or b"").strip().decode("ascii", "replace")
    return int(text) if _NUMBER.fullmatch(text) and int(text) > 0 else None


def safe_name(name: str, source: str) -> str:
    """Return a file name from the metadata if it cannot lead out of its folder."""
    if not name or re.search(_UNSAFE, name):
        raise CorruptTableError(
            f"{source} names the file {name!r}, which could lead out of the table's folder; it is not followed. "
            "The table's metadata is damaged or was tampered with."
        )
    return name


def check_names(names: pa.ChunkedArray, source: str) -> None:
    """Raise if a column of file names contains an unsafe one; see `safe_name`."""
    unsafe = pc.equal(pc.binary_length(names), 0)
    # Search all names as one text first: this is faster than matching a pattern on each.
    text = b"".join(chunk.buffers()[2] or b"" for chunk in names.chunks)
    if any(part in text for part in _UNSAFE_PARTS):
        unsafe = pc.or_(unsafe, pc.match_substring_regex(names, _UNSAFE))
    if pc.any(unsafe).as_py():
        safe_name(names.filter(unsafe)[0].as_py(), source)


def manifest_path(name: str, source: str) -> str:
    """Return the path of a manifest list, manifest or index manifest named in `source`."""
    return f"{MANIFESTS}/{safe_name(name, source)}"


def format_of(file_name: str) -> str:
    """Return the format in a data file's name, supported or not.

    Source: paimon DataFilePathFactory.formatIdentifier.
    """
    words = file_name.split(".")
    is_compressed = len(words) > 2 and words[-1] in _COMPRESSIONS  # noqa: PLR2004 - a name, a format and the compression
    return words[-2] if is_compressed else words[-1]


def escape(text: str) -> str:
    """Return the text of a partition column or value, escaped for a path.

    Source: paimon PartitionPathUtils.escapePathName.
    """
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)


def bucket_folders(
    partitions: Sequence[tuple[str, Sequence[str | None]]], buckets: Sequence[int], options: Mapping[str, str]
) -> list[str]:
    """Return the folders of buckets.

    Args:
        partitions: Partition columns, outermost first, with the text of each bucket's value in paths.
        buckets: The buckets; -2 is `bucket-postpone`.

    Source: paimon docs, "File Layouts"; paimon FileStorePathFactory.
    """
    inside = options.get("data-file.path-directory", "").strip("/")
    if any(part in ("", ".", "..") for part in inside.split("/")) and inside:
        raise CorruptTableError(
            f"The option data-file.path-directory is {inside!r}, which leads out of the table's folder."
        )
    nothing = options.get("partition.default-name", "__DEFAULT_PARTITION__")
    named = [(f"{escape(name)}=", values) for name, values in partitions]
    segments = [
        [name + escape(nothing if value is None or not value.strip() else value) for value in values]
        for name, values in named
    ]
    lasts = ["bucket-postpone" if bucket == POSTPONED else f"bucket-{bucket}" for bucket in buckets]
    firsts = [[inside] * len(lasts)] if inside else []
    return list(map("/".join, zip(*firsts, *segments, lasts, strict=True)))


def index_path(folder: str, name: str, external: str | None, options: Mapping[str, str]) -> str:
    """Return the location of an index file: its path under the root, or the full location in its entry.

    Source: paimon docs, "Table Index"; paimon IndexFilePathFactories.
    """
    if external:
        return external
    beside = parse_flag(options, "index-file-in-data-file-dir")
    return f"{folder if beside else INDEXES}/{name}"
