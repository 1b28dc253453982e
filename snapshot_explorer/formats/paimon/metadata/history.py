"""The versions of a table: snapshots, tags and long-lived changelogs, found through hint files and listings."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from snapshot_explorer.core.errors import (
    UNREADABLE,
    CorruptTableError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    StorageError,
)
from snapshot_explorer.core.records import Listing
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.core.single_flight import SingleFlight
from snapshot_explorer.formats.missing_versions import (
    TRIES,
    absent_version_error,
    lost_versions,
    missing_table_error,
    missing_versions_error,
    now,
    pause,
)
from snapshot_explorer.formats.paimon.metadata.layout import Layout, branches_in, number_of, parse_hint
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot, digest_of, read_snapshots, reparse
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.storage import Entry, Storage

log = logger_of(__name__)

_CACHE_SIZE = 10_000
"""Snapshots kept in memory, some kilobytes each."""
_TRIES = 5
_MAX_AHEAD = 64
"""Snapshots that are read ahead."""
_COMMITS_SHOWN = 20
"""The newest versions that a history shows by default: changelogs among them are read with the listing."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVersions:
    """The versions of a branch by the kind of file that contains them. From one listing of each folder."""

    snapshots: tuple[int, ...]
    """Versions with a snapshot file, ascending."""
    tagged: tuple[int, ...]
    changelogs: tuple[int, ...]
    """Versions with only a long-lived changelog, ascending."""
    newest: PaimonSnapshot | None
    """The newest snapshot; of a branch without snapshots the newest tag."""
    tags: Mapping[str, PaimonSnapshot]
    """The readable tags by name, sorted."""
    damaged_tags: tuple[SnapshotExplorerError, ...]
    notes: tuple[str, ...]
    """Tolerated problems, a sentence each."""
    newest_note: str | None
    """A sentence about a newer snapshot that the hint names and that does not exist."""


class _ShortfallError(Exception):
    """A listing contains fewer versions than an earlier one. `error` is raised if retries do not help."""

    def __init__(self, error: SnapshotExplorerError) -> None:
        super().__init__(error.message)
        self.error = error


class PaimonHistory:
    """The versions of one branch. Caches the snapshots it has read until history is rewritten. Thread-safe.

    A listing that contains fewer versions than the last one is retried a few times and then raises; the cache is
    kept. Two cases are valid: the oldest snapshots expire, and the newest ones disappear when the table is rolled back
    or recreated, which the hint confirms. The second case logs a warning.
    """

    def __init__(self, storage: Storage, layout: Layout) -> None:
        self._storage = storage
        self._layout = layout
        self._lock = threading.Lock()
        self._known: OrderedDict[int, PaimonSnapshot] = OrderedDict()
        self._damaged: dict[str, bytes] = {}
        self._reads = SingleFlight()
        self._reads.keep_nothing()
        self._newest: PaimonSnapshot | None = None
        self._numbers_seen: tuple[int, ...] = ()
        self._seen_at = now()
        self._rewrites = 0
        self._tags_seen: Sequence[str] = ()
        self._changelogs_seen: Sequence[int] = ()
        self._expected: int | None = None
        self.branches_seen: Sequence[str] = ()
        """The branches of the table when it was opened, if they were listed."""
        self.might_have_branches = True
        """Whether the table had branches when it was opened, or that is unknown."""
        self._expired_seen: frozenset[int] = frozenset()

    @property
    def rewrites(self) -> int:
        """The number of rewrites of history detected so far. Each invalidates values that are cached by version."""
        return self._rewrites

    def look_into(self, folders: Collection[str]) -> None:
        """List the folders of tags, changelogs and branches among these folders of the table's root.

        Their files are requested later, together with a new listing. Does nothing for branches other than the main one,
        or on the local disk, where requests cost little.
        """
        if folders:
            self.might_have_branches = self._layout.branch is not None or "branch" in folders
        if self._layout.branch is None and not self._storage.is_local:
            kinds = [kind for kind in ("tag", "changelog", "branch") if kind in folders]
            with suppress(SnapshotExplorerError):  # raised when the listings are needed
                listed = dict(zip(kinds, self._storage.list_many(kinds), strict=True))
                self._tags_seen = self._tag_names(listed.get("tag", ()))
                self._changelogs_seen = self._numbers(listed.get("changelog", ()), "changelog")
                self.branches_seen = branches_in(listed.get("branch", ()))

    def expect(self, hint: bytes | None) -> None:
        """Request the snapshot in a hint that was read early together with the hint itself, which is read again."""
        self._expected = parse_hint(hint)

    def newest(self) -> Listing:
        """Return a listing of only the newest version, by the hint if it is valid.

        Three requests, and one more listing if the hint is missing or wrong. All at once if the newest version is still
        the same.

        Source: paimon SnapshotManager.latestSnapshotId, HintFileUtils; in addition, the hinted file must exist.
        """
        return self._checked(self._newest_listing)

    def _checked(self, make: Callable[[], T]) -> T:
        """Return a listing that contains no fewer versions than the last one. Retries a few times."""
        for left in reversed(range(TRIES)):
            try:
                return make()
            except _ShortfallError as short:
                if not left:
                    raise short.error from None
            pause()
        raise self._unstable_error()

    def _newest_listing(self) -> Listing:
        before = self._newest
        expected = self._expected if before is None else before.id
        guessed = [] if expected is None else [expected, expected + 1]
        hinted, *guesses = self._storage.read_present(
            [self._layout.hint("snapshot", "LATEST"), *map(self._path, guessed)]
        )
        hint = parse_hint(hinted)
        if hint is None:
            return self._list_and_read(hint)
        requested = [hint, hint + 1]
        if before is not None and before.id not in requested:
            requested.append(before.id)
        read = dict(zip(guessed, guesses, strict=True))
        rest = [version for version in requested if version not in read]
        read |= zip(rest, self._storage.read_present([self._path(version) for version in rest]), strict=True)
        paths = [self._path(version) for version in requested]
        contents = [read[version] for version in requested]
        if contents[0] is None or contents[1] is not None:
            return self._list_and_read(hint)
        newest = reparse(self._storage, paths[:1], contents[:1])[0]
        if newest is None:
            return self._list_and_read(hint)
        self._detect_rewrite(newest, before, contents[2] if len(contents) > 2 else None, hint=hint)  # noqa: PLR2004 - the third path
        return Listing(versions=(newest.id,), identity=_identity(newest))

    def _list_and_read(self, hint: int | None) -> Listing:
        for _ in range(_TRIES):
            entries, (content,) = self._storage.together(
                partial(self._storage.list, self._layout.folder("snapshot")),
                partial(self._storage.read_present, [self._layout.hint("snapshot", "LATEST")]),
            )
            versions = self._numbers(entries, "snapshot")
            if not versions:
                self._check_empty(hint, content)
                return Listing(versions=(), identity=())
            newest, hint = self._read_newest(versions, {})
            if newest is not None:
                notes = self._hint_notes(hint, newest.id)
                return Listing(
                    versions=(newest.id,),
                    identity=_identity(newest),
                    notes=tuple(notes),
                    newest_note=self._newest_note(hint, newest.id),
                )
        raise self._unstable_error()

    def _read_newest(
        self, versions: Sequence[int], contents: Mapping[str, bytes | None]
    ) -> tuple[PaimonSnapshot | None, int | None]:
        """Return the newest of the listed snapshots, None if it has vanished, and the hint.

        Detects a rewritten history.

        Args:
            versions: The snapshots listed, ascending.
            contents: Files that were read together with the listing; the others are read here.
        """
        before, hint_path = self._newest, self._layout.hint("snapshot", "LATEST")
        newest_path = self._path(versions[-1])
        paths = [hint_path, newest_path] + ([] if before is None else [self._path(before.id)])
        rest = [path for path in dict.fromkeys(paths) if path not in contents]
        contents = {**contents, **dict(zip(rest, self._storage.read_present(rest), strict=True))}
        hint = parse_hint(contents[hint_path])
        newest = reparse(self._storage, [newest_path], [contents[newest_path]])[0]
        if newest is not None:
            changed = before is not None and before.id != newest.id
            self._detect_rewrite(newest, before, contents[paths[-1]] if changed else None, hint=hint, versions=versions)
        return newest, hint

    def all_from(self, start: int) -> Listing:
        """Return a listing of every version from `start` on: snapshots, versions kept only by a tag, and changelogs.

        Two rounds of concurrent requests: three listings; then the hint, the newest snapshot and a small file per tag.
        """
        stored = self.stored_versions()
        present = {*stored.snapshots, *stored.tagged, *stored.changelogs}
        return Listing(
            versions=tuple(sorted(version for version in present if version >= start)),
            identity=_identity(stored.newest) if stored.newest else (),
            without_files=tuple(version for version in stored.changelogs if version >= start),
            first_unexpired=stored.snapshots[0] if stored.snapshots else None,
            first=1,
            notes=stored.notes,
            unread=tuple(map(str, stored.damaged_tags)),
            newest_note=stored.newest_note,
        )

    def stored_versions(self) -> StoredVersions:
        """Return every version by the kind of its file. Reads the same as `all_from`."""
        return self._checked(self._list_stored)

    def _list_stored(self) -> StoredVersions:
        before, rewrites = self._newest, self._rewrites
        tags_seen = self._tags_seen
        likely = [self._layout.hint("snapshot", "LATEST"), *map(self._layout.tag, tags_seen)]
        if before is not None:
            shown = [version for version in self._changelogs_seen if version > before.id - _COMMITS_SHOWN]
            likely += [self._path(before.id), *map(self._changelog, shown)]
        for _ in range(_TRIES):
            kinds = ("snapshot", "tag", "changelog")
            listings, read = self._storage.together(
                partial(self._storage.list_many, [self._layout.folder(kind) for kind in kinds]),
                partial(self._read_allowed, likely),
            )
            snapshots = self._numbers(listings[0], "snapshot")
            changelogs = set(self._numbers(listings[2], "changelog")).difference(snapshots)
            shown = sorted(changelogs.union(snapshots))[-_COMMITS_SHOWN:]
            kept, (tags, damaged), (newest, hint) = self._storage.together(
                partial(self._read_changelogs, [version for version in shown if version in changelogs], read),
                partial(
                    self._read_tags,
                    listings[1],
                    {name: read.get(self._layout.tag(name)) for name in tags_seen},
                ),
                partial(self._newest_listed, snapshots, read),
            )
            if snapshots and newest is None:
                continue
            if not snapshots:
                newest = max(tags.values(), key=lambda tag: tag.id, default=None)
            tagged = {tag.id for tag in tags.values()}
            self._expired_seen = frozenset(changelogs.union(tagged).difference(snapshots))
            self._cache([item for item in (*kept, *tags.values()) if item.id in self._expired_seen], rewrites)
            return StoredVersions(
                snapshots=tuple(snapshots),
                tagged=tuple(sorted(tagged)),
                changelogs=tuple(sorted(changelogs - tagged)),
                newest=newest,
                tags=tags,
                damaged_tags=tuple(damaged),
                notes=(*(error.message for error in damaged), *self._inconsistencies(snapshots, hint)),
                newest_note=self._newest_note(hint, snapshots[-1]) if snapshots else None,
            )
        raise self._unstable_error()

    def _read_allowed(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Return the contents of files, None for missing ones, without those to which access is denied."""
        read = read_apart(
            lambda indices: self._storage.read_present([paths[index] for index in indices]),
            range(len(paths)),
            self._storage,
        )
        return {
            paths[index]: content
            for indices, contents in read.parts
            for index, content in zip(indices, contents, strict=True)
        }

    def _read_changelogs(self, versions: Sequence[int], read: Mapping[str, bytes | None]) -> list[PaimonSnapshot]:
        """Return changelogs; `read` contains files read before. None on the disk, where a later read costs little."""
        paths = list(map(self._changelog, versions))
        if self._storage.is_local:
            return []
        rest = [path for path in paths if read.get(path) is None]
        with suppress(SnapshotExplorerError):  # raised when the files are needed
            contents = {**read, **dict(zip(rest, self._storage.read_present(rest), strict=True))}
            items = reparse(self._storage, paths, [contents[path] for path in paths], "changelog")
            return [item for item in items if item]
        return []

    def _newest_listed(
        self, versions: Sequence[int], contents: Mapping[str, bytes | None]
    ) -> tuple[PaimonSnapshot | None, int | None]:
        """Return the newest of the listed snapshots, None if it has vanished, and the hint."""
        if not versions:
            path = self._layout.hint("snapshot", "LATEST")
            self._check_empty(None, contents[path] if path in contents else self._storage.read_present([path])[0])
            return None, None
        newest, hint = self._read_newest(versions, contents)
        if hint not in (None, versions[-1]):
            # The hint may have been read before the listing, and a commit may have landed in between.
            hint = parse_hint(self._storage.read_present([self._layout.hint("snapshot", "LATEST")])[0])
        return newest, hint

    def _check_empty(self, hint: int | None, content: bytes | None) -> None:
        """Raise if a listing without snapshots contradicts an earlier listing or the hint, whose content was read."""
        folder = self._layout.folder("snapshot")
        if self._newest is not None:
            missing = f"its folder {folder}"
            raise _ShortfallError(missing_table_error(self._storage.root, missing, self._newest.id, self._seen_at))
        path = self._layout.hint("snapshot", "LATEST")
        # An unreadable hint still counts as a hint: a faulty storage may return more than one wrong answer.
        hint = hint if content is None else parse_hint(content)
        if hint is not None or content is not None:
            named = "cannot be read" if hint is None else f"names version {hint}"
            raise _ShortfallError(
                StorageError(
                    f"{self._storage.root} shows no snapshot in {folder}, but its hint {path} {named}. The storage may "
                    "be behind, or the snapshots were removed. Try again; check that the folder can be listed."
                )
            )

    def _inconsistencies(self, snapshots: Sequence[int], hint: int | None) -> list[str]:
        """Return a sentence for each inconsistency of the hint and the version numbers; none without snapshots."""
        if not snapshots:
            return []
        notes = self._hint_notes(hint, snapshots[-1])
        missing = snapshots[-1] - snapshots[0] + 1 - len(snapshots)
        if missing:
            notes.append(
                f"{missing} snapshots between {snapshots[0]} and {snapshots[-1]} are missing; "
                "Paimon's own time travel fails on such gaps."
            )
        return notes

    def _newest_note(self, hint: int | None, newest: int) -> str | None:
        """Return a sentence if the hint names a newer snapshot than exists: the table has lost it."""
        if hint is None or hint <= newest:
            return None
        return (
            f"Version {hint} is missing: {self._layout.hint('snapshot', 'LATEST')} names it, but the newest snapshot "
            f"that exists is {newest}. Restore {self._path(hint)} from a copy of the table."
        )

    def _hint_notes(self, hint: int | None, newest: int) -> list[str]:
        name = self._layout.hint("snapshot", "LATEST")
        if hint is None:
            # Paimon creates branches without hints.
            return [] if self._layout.branch else [f"The hint {name} is missing or unreadable; the folder was scanned."]
        return [] if hint == newest else [f"The hint {name} contains {hint}, but the newest snapshot is {newest}."]

    def read_newest(self, count: int) -> list[PaimonSnapshot]:
        """Read and cache the newest versions, if their numbers are contiguous; return those that exist."""
        with self._lock:
            newest, rewrites = 0 if self._newest is None else self._newest.id, self._rewrites
            versions = range(max(newest - min(count, _MAX_AHEAD), 0) + 1, newest + 1)
            known = [self._known[version] for version in versions if version in self._known]
            paths = [self._path(version) for version in versions if version not in self._known]
        with suppress(SnapshotExplorerError):  # raised when the snapshots are needed
            read = [item for item in read_snapshots(self._storage, paths) if item]
            self._cache(read, rewrites)
            known += read
        return known

    def snapshots(self, versions: Sequence[int]) -> list[PaimonSnapshot]:
        """Return the snapshots of these versions, in order. Reads a small file for each that is not cached."""
        present = self.present(versions)
        missing = [version for version in versions if version not in present]
        if missing:
            raise self._not_found_error(missing[0])
        return [present[version] for version in versions]

    def present(self, versions: Sequence[int]) -> dict[int, PaimonSnapshot]:
        """Return the snapshots that exist among these versions. Reads a small file for each that is not cached."""
        with self._lock:
            result = {version: self._known[version] for version in versions if version in self._known}
            rewrites = self._rewrites
            expired = self._expired_seen
        unread = sorted({version for version in versions if version not in result})
        read, kept = self._storage.together(
            partial(self._storage.each, partial(self._read_once, rewrites), unread),
            partial(self._expired, [version for version in unread if version in expired]),
        )
        result |= kept | {version: item for version, item in zip(unread, read, strict=True) if item}
        result |= self._expired([version for version in unread if version not in result])
        self._cache([result[version] for version in unread if version in result], rewrites)
        return result

    def _read_once(self, rewrites: int, version: int) -> PaimonSnapshot | None:
        """Return a snapshot, None if it does not exist. One request for all threads that need it."""

        def read() -> PaimonSnapshot | None:
            with self._lock:
                snapshot = self._known.get(version)
            if snapshot is None:
                snapshot = read_snapshots(self._storage, [self._path(version)], damaged=self._damaged)[0]
                self._cache([] if snapshot is None else [snapshot], rewrites)
            return snapshot

        return self._reads.get((version, rewrites), read)

    def read_again(self, versions: Sequence[int]) -> dict[int, PaimonSnapshot]:
        """Return the snapshots that exist among these versions, read again. The others are removed from the cache."""
        with self._lock:
            for version in versions:
                self._known.pop(version, None)
        read = read_snapshots(self._storage, [self._path(version) for version in versions])
        result = {version: item for version, item in zip(versions, read, strict=True) if item}
        return result | self._expired([version for version in versions if version not in result])

    def tags(self) -> dict[str, PaimonSnapshot]:
        """Return the tags by name, sorted. One listing and a small file per tag."""
        names = self._tag_names(self._storage.list(self._layout.folder("tag")))
        read = read_snapshots(self._storage, [self._layout.tag(name) for name in names], "tag")
        return {name: tag for name, tag in zip(names, read, strict=True) if tag}

    def _read_tags(
        self, entries: Sequence[Entry], read: Mapping[str, bytes | None] = MappingProxyType({})
    ) -> tuple[dict[str, PaimonSnapshot], list[SnapshotExplorerError]]:
        """Return the readable tags by name, and the problems of the others; `read` contains files read before."""
        names = self._tag_names([entry for entry in entries if not entry.is_folder])
        rest = [self._layout.tag(name) for name in names if read.get(name) is None]
        contents = {self._layout.tag(name): content for name, content in read.items()} | self._read_allowed(rest)
        if not self._storage.is_local:
            self._tags_seen = names

        tags: dict[str, PaimonSnapshot] = {}
        damaged: list[SnapshotExplorerError] = []
        for name in names:
            path = self._layout.tag(name)
            try:
                if path in contents:
                    tag = reparse(self._storage, [path], [contents[path]], "tag", self._damaged)[0]
                else:  # access was denied
                    tag = read_snapshots(self._storage, [path], "tag", self._damaged)[0]
            except UNREADABLE as error:
                self._storage.warn_once(log, "%s", error)
                damaged.append(error)
                continue
            if tag:
                tags[name] = tag
        return tags, damaged

    def tags_by_version(self) -> tuple[Mapping[int, Sequence[str]], bool]:
        """Return the names of the tags on each version, and whether these are all: unreadable ones raise a warning."""
        tags, damaged = self._newest_tags()
        tagged: dict[int, list[str]] = {}
        for name, tag in tags.items():
            tagged.setdefault(tag.id, []).append(name)
        return tagged, not damaged

    def _newest_tags(self) -> tuple[dict[str, PaimonSnapshot], list[SnapshotExplorerError]]:
        """Return `_read_tags` of a new listing. The known ones are read at the same time."""
        known = self._tags_seen
        contents, entries = self._storage.together(
            partial(self._read_allowed, [self._layout.tag(name) for name in known]),
            partial(self._storage.list, self._layout.folder("tag")),
        )
        return self._read_tags(entries, {name: contents.get(self._layout.tag(name)) for name in known})

    @staticmethod
    def _tag_names(entries: Sequence[Entry]) -> list[str]:
        names = (entry.name for entry in entries)
        return sorted(name.removeprefix("tag-") for name in names if name.startswith("tag-") and len(name) > 4)  # noqa: PLR2004

    def _expired(self, versions: Sequence[int]) -> dict[int, PaimonSnapshot]:
        """Return the versions kept by a tag or a long-lived changelog. A tag is preferred: it contains more."""
        if not versions:
            return {}
        paths = list(map(self._changelog, versions))
        read, (tags, _) = self._storage.together(
            partial(read_snapshots, self._storage, paths, "changelog"), self._newest_tags
        )
        result = {version: item for version, item in zip(versions, read, strict=True) if item}
        tagged = {tag.id: tag for tag in tags.values()}
        return result | {version: tagged[version] for version in versions if version in tagged}

    def _not_found_error(self, version: int) -> SnapshotNotFoundError:
        listing = self.all_from(0)
        state = listing.absence(version) if version and listing.versions else "does not exist"
        return absent_version_error(self._storage.root, version, listing.versions, state)

    def _unstable_error(self) -> CorruptTableError:
        return CorruptTableError(
            f"The newest snapshot in {self._layout.folder('snapshot')} vanished each of {_TRIES} times it was read. "
            "A writer may be rolling back; try again."
        )

    def _path(self, version: int) -> str:
        return self._layout.numbered("snapshot", version)

    def _changelog(self, version: int) -> str:
        return self._layout.numbered("changelog", version)

    @staticmethod
    def _numbers(entries: Sequence[object], kind: str) -> list[int]:
        """Return the numbers of the files named `kind-N`, ascending. Ignores other names, such as temporary files."""
        numbers = (number_of(str(getattr(entry, "name", "")), kind) for entry in entries)
        return sorted(number for number in numbers if number is not None)

    def _cache(self, snapshots: Sequence[PaimonSnapshot], rewrites: int) -> None:
        with self._lock:
            if rewrites != self._rewrites:
                # Read before the rewrite was detected: it may be outdated.
                return
            for snapshot in snapshots:
                self._known[snapshot.id] = snapshot
                self._known.move_to_end(snapshot.id)
            while len(self._known) > _CACHE_SIZE:
                self._known.popitem(last=False)

    def _detect_rewrite(
        self,
        newest: PaimonSnapshot,
        before: PaimonSnapshot | None,
        before_now: bytes | None,
        *,
        hint: int | None,
        versions: Sequence[int] = (),
    ) -> None:
        """Clear the cache if history was rewritten: rolled back, or committed again under old version numbers.

        Args:
            newest: The newest snapshot now.
            before: The newest snapshot of the previous check.
            before_now: The current content of its file; None if the file is missing, or it is still the newest.
            versions: All listed snapshots, ascending; empty without a listing.
        """
        with self._lock:
            went_back = before is not None and newest.id < before.id
            lost_numbers: tuple[int, ...] = ()
            if versions:
                lost_numbers = tuple(item for item in lost_versions(self._numbers_seen, versions) if item < newest.id)
            if before is not None and went_back and (hint != newest.id or before_now is not None):
                lost_numbers = (*lost_numbers, before.id)
            if lost_numbers:
                shown = versions or (newest.id,)
                raise _ShortfallError(missing_versions_error(self._storage.root, lost_numbers, shown, self._seen_at))
            if self._newest is not before and self._newest is not None and newest.id < self._newest.id:
                return  # another thread has read a newer one
            same = self._known.get(newest.id)
            changed = same is not None and same.digest != newest.digest
            shorter = any(version > newest.id for version in self._known)
            moved = before is not None and before.id != newest.id
            replaced = before_now is not None and before is not None and digest_of(before_now) != before.digest
            again = before is not None and not moved and before.digest != newest.digest
            if changed or shorter or again or (moved and (before_now is None or replaced)):
                self._known.clear()
                self._rewrites += 1
            if before is not None and (went_back or replaced or again):
                log.warning(
                    "%s was rolled back, or dropped and recreated: version %s, the newest before, is %s. The newest "
                    "version is %s now.",
                    self._storage.root,
                    before.id,
                    "another commit now" if replaced or again else "gone",
                    newest.id,
                )
            self._newest, self._seen_at = newest, now()
            if versions:
                # Expired snapshots: otherwise a table that is followed for long would keep every snapshot in memory.
                for version in [
                    item.id for item in self._known.values() if item.file_kind == "snapshot" and item.id < versions[0]
                ]:
                    del self._known[version]
            self._numbers_seen = tuple(versions) or tuple(item for item in self._numbers_seen if item <= newest.id)
            self._known[newest.id] = newest


def _identity(newest: PaimonSnapshot) -> tuple[object, ...]:
    return newest.id, newest.digest
