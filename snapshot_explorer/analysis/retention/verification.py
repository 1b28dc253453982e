"""`Verification`: whether the files that versions need exist, and are as the metadata records."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.retention.readability import FoundFiles, find_files, readability_frame
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames, resources
from snapshot_explorer.core.errors import (
    UNREADABLE,
    InvalidArgumentError,
    MissingFileError,
    ResourceError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Listing, Split, capitalized, runs_of, runs_text
from snapshot_explorer.core.refs import MAIN
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.formats.expiry import Presence, ranges
from snapshot_explorer.formats.file_checks import FileCheck, FileReading, RecordedFile
from snapshot_explorer.history import KnownReadability
from snapshot_explorer.history.lifetimes import FileLifetimes, delete_manifests, despite_expiry
from snapshot_explorer.results import Frame
from snapshot_explorer.storage import Storage

Level = Literal["existence", "footers", "bytes"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The levels of checks; each includes the levels before it."""
VerifiedFiles = dict[tuple[str, int | None], int]
"""By path and recorded size, the index of the level at which a file was in order."""
THREADS = 8
_REMOTE_THREADS = 32
_NOT_LISTED = "Versions that are not listed were not looked at: "
_State = tuple[str | None, str | None]
"""The state of a file in VERIFIED_FILES, and the detail of a problem."""


class Verification(Shown):
    """Whether the files that versions need exist, and are as the metadata records. Draws itself."""

    def __init__(
        self,
        rows: pa.Table,
        *,
        name: str,
        level: Level,
        verified_at: datetime,
        notes: Sequence[str],
        is_complete: bool,
        versions: Frame,
    ) -> None:
        """Create a result. Use `Table.verify` to get one."""
        self.name = name
        self.notes = tuple(notes)
        self.level: Level = level
        """The level of the check."""
        self.verified_at = verified_at
        """The time of the check, aware, UTC."""
        self.files = Frame(rows, title=f"Data files of {name}", noun="files")
        """VERIFIED: every data file of every version, files with problems first."""
        self.versions = versions
        """READABILITY, newest first: whether each version of the branch can be loaded, why not, and what it lacks."""
        if level != "existence" and (count := rows["rows"].null_count):
            which = f"{count:,} of {pluralize(len(rows), 'data file')}"
            uncounted = f"The metadata records no number of rows for {which}, or several that contradict each other"
            self.notes += (f"{uncounted}: these were not compared.",)
        states = Counter(rows["state"].to_pylist())
        self._problems = sum(count for state, count in states.items() if state not in ("ok", None))
        self._unchecked = states[None]
        self.is_ok = is_complete and not self._problems and not self._unchecked
        """Whether everything was checked and nothing differs."""

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        files = pluralize(len(self.files), "data file")
        if self._problems:
            return f"{self._problems:,} of {files} {'has a problem' if self._problems == 1 else 'have problems'}."
        if not self.is_ok:
            if self._unchecked:
                return f"No problem was found, but {self._unchecked:,} of {files} could not be checked."
            return "The data files have no problem, but other files that versions need are missing or were not checked."
        is_single = len(self.files) == 1
        exist, were, have = ("exists", "was", "has") if is_single else ("exist", "were", "have")
        phrases = {
            "existence": f"{exist}, with the recorded sizes where some are recorded",
            "footers": f"{exist}, and the footers have the recorded rows where some are recorded",
            "bytes": f"{were} read as a whole, with all deletes, and {have} the recorded rows where some are recorded",
        }
        return f"{'The only data file' if is_single else f'All {files}'} {phrases[self.level]}."


def verify(  # noqa: PLR0913 - the table, what is known of it, and what to look at
    own_format: TableFormat,
    own_branch: str | None,
    history: Callable[[str | None], tuple[TableFormat, FileLifetimes]],
    *,
    name: str,
    level: str,
    resume: Verification | bool | None,
    intact: VerifiedFiles,
    known: KnownReadability,
) -> Verification:
    """Return whether the files of all versions of a table and its branches are there; see `Table.verify`.

    Args:
        own_format: The table, bound to a branch.
        own_branch: That branch; None for the main one.
        history: Returns a branch and its lifetimes; the table's own for None.
        intact: The files that earlier verifications of the table found intact. Files that this one finds are added.
        known: What is known about which versions of the branch can be loaded; becomes what this one finds.
    """
    if level not in LEVELS:
        raise InvalidArgumentError(f"level must be one of {', '.join(LEVELS)}, got {level!r}.")
    chosen: Level = level
    own = None if own_format.branches.main is None else own_branch or MAIN
    histories, unread = _histories(own_format, own, history)
    now = datetime.now(UTC)
    files: dict[str, RecordedFile] = {}
    states: dict[str, _State] = {}
    notes = unread
    deletes: list[_SplitWithDeletes] = []
    for branch, (table_format, lifetimes) in histories.items():
        rows, presence, found_files = despite_expiry(table_format, partial(_presence, table_format, lifetimes))
        if branch == own:
            versions = readability_frame(known, table_format, lifetimes, found_files, name=name)
        notes += [Message(_NOT_LISTED, reason) for reason in found_files.listing.unread]
        is_named = branch is not None and len(histories) > 1
        of = f" of branch {branch}" if is_named else ""
        for problems in (presence.missing_metadata, presence.missing_deletes, presence.unchecked_files):
            notes += [
                Message(f"Version {version}{of}: ", without_period(reason), ".")
                for version, reason in sorted(problems.items())
            ]
        on = f"on branch {branch}, " if is_named else ""
        notes += [f"{capitalized(f'{on}{gap}')}: their files are unknown." for gap in lifetimes.gaps]
        notes += [Message(capitalized(on), note) if on else note for note in lifetimes.unread_notes]
        if chosen == "bytes":
            planned, unplanned = despite_expiry(table_format, partial(_deletes, table_format, lifetimes, presence))
            deletes += planned
            notes += [Message(f"Version {version}{of}: ", reason) for version, reason in unplanned.items()]
        masks = (presence.gone, presence.resized, presence.unknown)
        indices = np.select(masks, [1, 2, 3], 0).tolist()
        columns = (rows[column].to_pylist() for column in ("path", "size_bytes", "rows"))
        for path, size_bytes, count, index in zip(*columns, indices, strict=True):
            files[path] = RecordedFile(path=path, size_bytes=size_bytes, rows=count)
            states[path] = max(states.get(path, _STATES[0]), _STATES[index], key=_STATES.index)
    left = [file for path, file in files.items() if states[path] == _STATES[0]]
    storage = own_format.storage
    if chosen != "existence":
        verified = intact if resume is True else _verified(resume or None)
        needed = LEVELS.index(chosen)
        left = [file for file in left if verified.get((file.path, file.size_bytes), 0) < needed]
        states |= _verify_contents(own_format, left, chosen, intact)
        for state, paths in _read_deletes(storage, deletes):
            states |= {path: state for path in paths if states[path][0] == "ok"}
    order = sorted(files, key=lambda path: (states[path][0] == "ok", states[path][0] is None, path))
    table = pa.table(
        [
            pa.array(order, pa.string()),
            pa.array([files[path].size_bytes for path in order], pa.int64()),
            pa.array([files[path].rows for path in order], pa.int64()),
            pa.array([states[path][0] for path in order], pa.string()),
            pa.array([states[path][1] for path in order], pa.string()),
        ],
        schema=frames.VERIFIED,
    )
    return Verification(
        table, name=name, level=chosen, verified_at=now, notes=notes, is_complete=not notes, versions=versions
    )


def _histories(
    own_format: TableFormat, own: str | None, history: Callable[[str | None], tuple[TableFormat, FileLifetimes]]
) -> tuple[dict[str | None, tuple[TableFormat, FileLifetimes]], list[str]]:
    """Return the branches and their lifetimes, and a sentence for each branch that cannot be read."""
    own_history, names = own_format.storage.together(partial(history, own), own_format.branches.names)
    histories = {own: own_history}
    unread: list[str] = []
    for other in names:
        if other == own:
            continue
        try:
            histories[other] = history(other)
        except UNREADABLE as error:
            unread.append(Message(f"Branch {other} cannot be read: ", without_period(error.message), "."))
    return histories, unread


def _presence(
    table_format: TableFormat, lifetimes: FileLifetimes, listing: Listing
) -> tuple[pa.Table, Presence, FoundFiles]:
    """Return the LIFETIMES of the files that versions of a listing need, which of them exist, and which of all."""
    versions = _versions_of(lifetimes, listing)
    first, removed = (np.searchsorted(np.asarray(versions, np.int64), ends) for ends in ranges(lifetimes.recorded()))
    found_files = find_files(table_format, lifetimes, listing)
    is_needed = first < removed
    rows, presence = lifetimes.recorded().filter(pa.array(is_needed)), found_files.presence.select(is_needed, versions)
    is_flawed = presence.missing_metadata or (presence.gone | presence.resized).any()
    expired = frozenset(versions).difference(table_format.listing(0).reachable) if is_flawed else ()
    if expired:
        gone = capitalized(runs_text(runs_of(sorted(expired))))
        raise SnapshotNotFoundError(f"{gone} expired during the verification. Try again when the table changes less.")
    return rows, presence, found_files


def _versions_of(lifetimes: FileLifetimes, listing: Listing) -> list[int]:
    return sorted(frozenset(lifetimes.versions).intersection(listing.reachable))


_STATES: tuple[_State, ...] = (
    ("ok", None),
    ("missing", "the file, or the deletion vector that it needs, does not exist"),
    ("resized", "its size is not the recorded one"),
    (None, "it is on another storage, or outside of the folder, and could not be looked for"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SplitWithDeletes:
    """A split of a version, with deletes."""

    version: TableVersion
    split: Split

    @property
    def deletes(self) -> frozenset[Hashable]:
        """The deletes of the split."""
        return self.version.row_identity.deletes_of(self.split)


def _deletes(
    table_format: TableFormat, lifetimes: FileLifetimes, presence: Presence, listing: Listing
) -> tuple[list[_SplitWithDeletes], dict[int, str]]:
    """Return the splits with deletes, each once, and the versions that cannot be planned.

    Plans the versions whose commits added some.
    """
    versions = [version for version in _versions_of(lifetimes, listing) if version not in presence.missing_metadata]
    rows = lifetimes.recorded()
    deletes_of_versions = delete_manifests(table_format, versions)
    merged = table_format.merged_manifests
    indexes = [None] * len(versions) if merged is None else merged.of_index(versions)
    manifests = [own | {index} for own, index in zip(deletes_of_versions, indexes, strict=True)]
    adding = set(rows.filter(pc.is_valid(rows["deletion_vector"]))["first_version"].to_pylist())
    known: set[str | None] = {None}
    for number, own in zip(versions, manifests, strict=True):
        if own - known:
            adding.add(number)
        known |= own
    has_files = any(deletes_of_versions)
    result: dict[Hashable, _SplitWithDeletes] = {}
    errors: dict[int, str] = {}
    for number in sorted(adding.intersection(versions), reverse=True):  # the newest needs most of the metadata of all
        try:
            version = table_format.version(number)
            parts = [part for split in version.plan().splits for part in version.split_by_file(split)]
        except SnapshotExplorerError as error:
            errors[number] = error.message
            continue
        for part in parts:
            if not part.raw and (has_files or version.native_files.of(part) is not None):
                result.setdefault(part.identity, _SplitWithDeletes(version=version, split=part))
    return list(result.values()), errors


def _read_deletes(storage: Storage, deletes: Sequence[_SplitWithDeletes]) -> Iterator[tuple[_State, Sequence[str]]]:
    """Yield the state of the files whose deletes cannot be read. Verifies checksums.

    Reads each delete with one split; damaged deletes also with the other splits that need them.
    """
    chosen: list[_SplitWithDeletes] = []
    others: list[_SplitWithDeletes] = []
    known: set[Hashable] = set()
    for item in deletes:
        (chosen if item.deletes - known else others).append(item)
        known |= item.deletes
    failed: set[Hashable] = set()
    with step("Reading deletes", total=len(deletes)) as reading, _pool(storage) as pool:
        for items in (chosen, others):
            needed = [item for item in items if items is chosen or item.deletes & failed]
            reading.advance(len(items) - len(needed))
            for item, error in zip(needed, pool.map(_error_of, needed), strict=True):
                if error is not None:
                    failed |= item.deletes
                    yield ("unreadable", error), item.split.files
                reading.advance()


def _error_of(deletes: _SplitWithDeletes) -> str | None:
    """Return why the deletes of a split cannot be read; None if they can. Reads no data file for deletion vectors."""
    version, split = deletes.version, deletes.split
    try:
        if version.native_files.of(split) is not None and split.rows is not None:
            version.native_files.deleted_positions([split], [split.rows])
        else:
            for _ in version.read(split, version.arrow_schema.names[:1]):
                pass
    except ResourceError:
        raise  # the error is not about the file
    except (SnapshotExplorerError, pa.ArrowException) as error:
        resources.check(error, "The deletes of a file could not be read")
        return error.message
    return None


def _verified(resume: Verification | None) -> VerifiedFiles:
    """Return the files that an earlier verification found intact, with its level."""
    rows = [] if resume is None else resume.files.to_arrow().to_pylist()
    level = 0 if resume is None else LEVELS.index(resume.level)
    return {(row["path"], row["size_bytes"]): level for row in rows if row["state"] == "ok"}


def _verify_contents(
    table_format: TableFormat, files: Sequence[RecordedFile], level: Level, intact: VerifiedFiles
) -> dict[str, _State]:
    states: dict[str, _State] = {}
    check = table_format.maintenance.file_check()
    with step("Verifying files", total=len(files)) as verifying, _pool(table_format.storage) as pool:
        reading: FileReading = "bytes" if level == "bytes" else "footer"
        results = pool.map(lambda file: file_state(check, file, reading), files)
        for file, state in zip(files, results, strict=True):
            states[file.path] = state
            if state[0] == "ok":
                key = file.path, file.size_bytes
                intact[key] = max(LEVELS.index(level), intact.get(key, 0))
            verifying.advance()
    return states


@contextmanager
def _pool(storage: Storage) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(THREADS if storage.is_local else _REMOTE_THREADS)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)  # after an interrupt only files that are being read are waited for


def file_state(check: FileCheck, file: RecordedFile, reading: FileReading) -> _State:
    """Return the state of a file in VERIFIED_FILES and the detail of a problem. Reads its footer, or all of it."""
    try:
        found = check(file, reading)
    except MissingFileError:
        return "missing", "it was removed while files were verified"
    except ResourceError:
        raise  # as above
    except (UnsupportedFeatureError, StorageError) as error:
        return None, error.message
    except SnapshotExplorerError as error:
        return "unreadable", error.message
    if found.skip_reason is not None:
        return None, found.skip_reason
    if None not in (file.rows, found.rows) and found.rows != file.rows:
        return "rows differ", f"it has {pluralize(found.rows or 0, 'row')}, and the metadata records {file.rows:,}"
    return "ok", None
