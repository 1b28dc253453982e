"""Search for a table's current metadata file without a catalog.

Tables of file systems number their metadata files and have a hint. Tables of a catalog have numbered files too, but
only the catalog records the current one: here it is chosen by rule, with a note.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from snapshot_explorer.core.errors import CorruptTableError, MissingFileError, StorageError, TableNotFoundError
from snapshot_explorer.formats.iceberg.metadata.table_metadata import TableMetadata, parse_table_metadata
from snapshot_explorer.formats.missing_versions import missing_table_error, now, pause
from snapshot_explorer.storage import Entry, Storage
from snapshot_explorer.storage.location import shorten

FOLDER = "metadata"
HINT = f"{FOLDER}/version-hint.text"
_NUMBERED = re.compile(r"v(\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
_OF_CATALOG = re.compile(r"(\d{1,18})-[^/]+?(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
METADATA_FILE = re.compile(r"[^/]+\.metadata\.json(?:\.gz)?", re.ASCII)
_SPELLINGS = ("v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz")
"""The names of a numbered file. If there are several, the first one counts."""
_STEPS = 4
"""The maximum number of files after the hint that are requested one by one before the folder is listed."""
_TRIES = 3
_MAX_TIED = 100
_Content = tuple[str, bytes]
"""Path and content of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentMetadata:
    """The current metadata file."""

    metadata: TableMetadata
    notes: tuple[str, ...]
    """Explanations of how it was found, if it is uncertain; a sentence each."""


def is_metadata_file(name: str) -> bool:
    """Return whether a file name is the name of a metadata file."""
    return METADATA_FILE.fullmatch(name) is not None


def has_metadata(storage: Storage) -> bool:
    """Return whether a folder has a hint or metadata files. One request; without a hint a listing too."""
    if storage.exists(HINT):
        return True
    return any(not entry.is_folder and is_metadata_file(entry.name) for entry in storage.list(FOLDER))


class MetadataFiles:
    """Finds the current metadata file, and caches the last one read. Safe to use from several threads."""

    def __init__(self, storage: Storage, file: str | None = None) -> None:
        """Bind to a table; with `file`, only to this metadata file. Reads nothing."""
        self._storage = storage
        self.file = file
        self._lock = threading.Lock()
        self._last: tuple[bytes, TableMetadata] | None = None
        self._last_number: int | None = None
        self._candidates: Sequence[str] = ()
        self._newest: TableMetadata | None = None
        self._since = now()

    def current(self) -> CurrentMetadata:
        """Return the current metadata file. With a hint, a few small concurrent requests; otherwise a listing.

        A file with a lower number than the table's last one is refused: a rollback writes a new file. A file that
        cannot be read is read again a few times: it may be being written.

        Source: iceberg HadoopTableOperations.findVersion, refresh.
        """
        for left in reversed(range(_TRIES)):
            try:
                result = self._read_current()
            except MissingFileError as error:
                # A writer removes old metadata files while it adds new ones.
                if not left:
                    raise self._gone(error) from error
                continue
            except CorruptTableError:
                # On a local disk, some writers (pyiceberg) write a metadata file under its own name.
                if not left:
                    raise
                pause()
                continue
            with self._lock:
                newest, since = self._newest, self._since
                if newest is None or not _is_behind(result.metadata, newest):
                    self._newest, self._since = result.metadata, now()
                    return result
            if not left:
                raise self._older(result.metadata, newest, since)
            pause()
        raise AssertionError

    def _read_current(self) -> CurrentMetadata:
        if self.file is not None:
            # A metadata file does not change, so it is read once.
            metadata = self._newest or self._parsed(self.file, self._storage.read(self.file))
            return CurrentMetadata(metadata=metadata, notes=())
        last = self._last_number
        listing, (hint, known) = self._storage.together(
            self._listed_beside_hint, partial(self._read_hint, [] if last is None else [last, last + 1])
        )
        text = _hint_text(hint)
        if text is None or not text.isascii() or not text.isdigit():
            return self._by_name(text) if text else self._by_listing(*listing, has_hint=hint is not None)
        number = int(text[:18])
        if last is not None and last > number and known[last] is not None:
            number = last  # the hint is written after the commit
        return self._walked(number, known)

    def _walked(self, number: int, known: dict[int, _Content | None]) -> CurrentMetadata:
        """Return the last of the numbered files that follow the hint without a gap."""
        if number not in known:
            known.update(self._read_numbered([number, number + 1]))
        content = known[number]
        if content is None:
            raise self._no_hinted_file(number, self._listed_numbers())
        for _ in range(_STEPS):
            if number + 1 not in known:
                known.update(self._read_numbered([number + 1]))
            following = known[number + 1]
            if following is None:
                return self._remember(number, content)
            number, content = number + 1, following
        listed, last = self._listed_numbers(), number
        while last + 1 in listed:
            last += 1
        newest = self._read_numbered([last])[last]
        if newest is None:
            raise MissingFileError(f"{FOLDER}/{_SPELLINGS[0].format(last)} disappeared while it was read.")
        return self._remember(last, newest)

    def _read_hint(self, numbers: Sequence[int]) -> tuple[bytes | None, dict[int, _Content | None]]:
        """Return the hint, and the files of these numbers; see `_read_numbered`. All are read concurrently."""
        hint, *contents = self._storage.read_present([HINT, *_paths(numbers)])
        return hint, _in_first_spelling(numbers, contents)

    def _read_numbered(self, numbers: Sequence[int]) -> dict[int, _Content | None]:
        """Return the files of these numbers with the first name that exists. All are read concurrently."""
        return _in_first_spelling(numbers, self._storage.read_present(_paths(numbers)))

    def _remember(self, number: int, content: _Content) -> CurrentMetadata:
        self._last_number = number
        return CurrentMetadata(metadata=self._parsed(*content), notes=())

    def _listed_numbers(self) -> set[int]:
        names = (entry.name for entry in self._storage.list(FOLDER))
        return {int(match[1]) for match in map(_NUMBERED.fullmatch, names) if match}

    def _by_name(self, text: str) -> CurrentMetadata:
        """Return the file that a hint names, with or without its suffix. Some writers put a name there."""
        name = text if is_metadata_file(text) else f"{text}.metadata.json"
        if not is_metadata_file(name):
            raise CorruptTableError(
                f"{HINT} contains {shorten(repr(text))}, which is neither a number nor the name of a "
                "metadata file. Open one of the metadata files by its own path."
            )
        path = f"{FOLDER}/{name}"
        return CurrentMetadata(metadata=self._parsed(path, self._storage.read(path)), notes=())

    def _listed_beside_hint(self) -> tuple[Sequence[Entry] | None, dict[str, bytes | None]]:
        """Return the listing, and the files after the last one found, if the last search found no number in a hint."""
        paths = self._candidates
        if not paths or self._last_number is not None or self._storage.is_local:
            return None, {}
        listed, contents = self._storage.together(
            partial(self._storage.list, FOLDER), partial(self._storage.read_present, paths)
        )
        return listed, dict(zip(paths, contents, strict=True))

    def _by_listing(
        self, listed: Sequence[Entry] | None, known: Mapping[str, bytes | None], *, has_hint: bool
    ) -> CurrentMetadata:
        """Return the newest metadata file by name. It is a guess: a catalog may use another one.

        The highest number wins; of several files with the same number, the last written file.

        Args:
            listed: The listing of the folder, if it was made already.
            known: Files that were read beside it, by path.
            has_hint: Whether there is an empty hint.
        """
        listed = self._storage.list(FOLDER) if listed is None else listed
        names = [entry.name for entry in listed if not entry.is_folder]
        names += self._unlisted(names)
        numbered = {name: number for name in names if (number := number_of(name)) is not None}
        maximum = max(numbered.values(), default=None)
        tied = sorted(name for name, number in numbered.items() if number == maximum)
        if not tied:
            tied = sorted(name for name in names if is_metadata_file(name))
        if not tied:
            raise MissingFileError(f"{self._storage.root}/{FOLDER} has no metadata file.")
        chosen = self._chosen(tied[-_MAX_TIED:], known)
        if has_hint and len(tied) == 1:
            return CurrentMetadata(metadata=chosen, notes=())
        hint, taken = "an empty" if has_hint else "no", "the metadata file with the highest number is taken"
        if len(tied) > 1:
            taken = f"{chosen.path.rpartition('/')[2]} is taken, the newest of {len(tied):,} candidates,"
        note = (
            f"It has {hint} version hint, and no catalog was used: {taken} as the current one. A "
            "commit that its catalog did not accept can look the same. To read another one, open it by its own path, "
            "or the table through its catalog."
        )
        return CurrentMetadata(metadata=chosen, notes=(note,))

    def _unlisted(self, names: Sequence[str]) -> list[str]:
        """Return the file that was read last if a listing lacks it: a storage may list later than it reads."""
        with self._lock:
            last = None if self._last is None else self._last[1].path
        if last is None or last.rpartition("/")[2] in names or not self._storage.exists(last):
            return []
        return [last.rpartition("/")[2]]

    def _chosen(self, names: Sequence[str], known: Mapping[str, bytes | None]) -> TableMetadata:
        paths = self._candidates = [f"{FOLDER}/{name}" for name in names]
        contents = {path: content for path, content in known.items() if content is not None}
        rest = [path for path in paths if path not in contents]
        contents.update(zip(rest, self._storage.read_many(rest), strict=True))
        if len(paths) == 1:
            return self._parsed(paths[0], contents[paths[0]])
        parsed = [parse_table_metadata(contents[path], path, self._storage.limits) for path in paths]
        return max(parsed, key=lambda metadata: (metadata.last_updated_ms, metadata.path))

    def _parsed(self, path: str, content: bytes) -> TableMetadata:
        """Return the content of a metadata file, parsed unless it is the file that was read last."""
        with self._lock:
            last = self._last
        if last is not None and last[1].path == path and last[0] == content:
            return last[1]
        result = parse_table_metadata(content, path, self._storage.limits)
        with self._lock:
            self._last = content, result
        return result

    def _gone(self, error: MissingFileError) -> Exception:
        root = self._storage.root
        if self._last is not None:
            newest = self._last[1].last_sequence_number
            return missing_table_error(root, f"its folder {FOLDER}", newest, self._since)
        if self.file is not None:
            return TableNotFoundError(f"There is no metadata file {self.file} in {root}. Check the path.")
        return TableNotFoundError(f"{root} is not an Iceberg table that can be opened: {error}")

    def _older(self, older: TableMetadata, newest: TableMetadata, since: datetime) -> StorageError:
        return StorageError(
            f"{self._storage.root} shows an older metadata file than before: {older.path}, and at "
            f"{since:%Y-%m-%d %H:%M:%S} UTC it showed {newest.path}. The storage may be behind, or files of the table "
            "were removed. What was read before is kept. Try again; if an older state was restored on purpose, open "
            "the table again."
        )

    def _no_hinted_file(self, number: int, listed: set[int]) -> Exception:
        listed_files = f"the newest one there is v{max(listed)}" if listed else "there is no numbered one"
        return CorruptTableError(
            f"{HINT} names version {number}, but {self._storage.root} has no metadata file v{number}; "
            f"{listed_files}. The table was copied without it, or is damaged. "
            "Open another metadata file by its own path."
        )


def _paths(numbers: Sequence[int]) -> list[str]:
    return [f"{FOLDER}/{spelling.format(number)}" for number in numbers for spelling in _SPELLINGS]


def _in_first_spelling(numbers: Sequence[int], contents: Sequence[bytes | None]) -> dict[int, _Content | None]:
    pairs = list(zip(_paths(numbers), contents, strict=True))
    result: dict[int, _Content | None] = {}
    for index, number in enumerate(numbers):
        candidates = pairs[index * len(_SPELLINGS) : (index + 1) * len(_SPELLINGS)]
        result[number] = next(((path, content) for path, content in candidates if content is not None), None)
    return result


def _hint_text(content: bytes | None) -> str | None:
    """Return the first line of a hint; None without one, and for an empty one, which a writer is about to replace."""
    if content is None:
        return None
    lines = content[:1_000].decode(errors="replace").splitlines()
    return (lines[0].strip() if lines else "") or None


def _is_behind(older: TableMetadata, newest: TableMetadata) -> bool:
    """Return whether a metadata file belongs to the same table as another file and, by its number, precedes it."""
    numbers = [number_of(item.path.rpartition("/")[2]) for item in (older, newest)]
    if older.table_uuid != newest.table_uuid or numbers[0] is None or numbers[1] is None:
        return False
    return numbers[0] < numbers[1]


def number_of(name: str) -> int | None:
    """Return the number in the name of a metadata file; None if it has none."""
    match = _NUMBERED.fullmatch(name) or _OF_CATALOG.fullmatch(name)
    return int(match[1]) if match else None
