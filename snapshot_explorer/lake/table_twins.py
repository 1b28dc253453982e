"""`twins`: whether two metadata trees, in one folder or in two, name the same data files."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import gaps_note
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import format_utc, pluralize
from snapshot_explorer.formats import Detection, others_in
from snapshot_explorer.formats.expiry import format_duration, ranges
from snapshot_explorer.history import OpenBranch, history_of
from snapshot_explorer.lake.pair_diff import diff
from snapshot_explorer.results import Frame
from snapshot_explorer.storage.hidden import hidden_options, hidden_url
from snapshot_explorer.table import Table, open_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    from snapshot_explorer.analysis.diff import RowDiff
    from snapshot_explorer.storage import Storage

_SECOND = timedelta(seconds=1)
File = tuple[str, int | None]
"""The identity of a file: its address; or its path below the table's folder, and its size."""


class Twins(Shown):
    """Two tables, and which of their versions name the same data files. Displays itself."""

    def __init__(self, a: Table, b: Table) -> None:
        """Compare the newest versions that are loaded, and all earlier ones. Use `twins` to get one."""
        self.a, self.b = a, b
        """The tables."""
        versions = a.current.version, b.current.version
        sides = [_Side(table) for table in (a, b)]
        self.sides = sides
        self.are_copies = not (sides[0].addresses() & sides[1].addresses())
        """Whether no file is in both tables, so that files are matched by their path below the folder and their
        size."""
        prints = [side.prints(by_path=self.are_copies) for side in sides]
        self._pairs = _pairs(prints[0], prints[1])
        newest = [side.files(version, by_path=self.are_copies) for side, version in zip(sides, versions, strict=True)]
        self.is_known = all(side.knows(version) for side, version in zip(sides, versions, strict=True))
        """Whether the files of both newest versions can be read. If not, no other number is about them."""
        self.only_a = len(newest[0] - newest[1]) if self.is_known else None
        """The number of data files that only the newest version of A names; None if unknown."""
        self.only_b = len(newest[1] - newest[0]) if self.is_known else None
        """The number of data files that only the newest version of B names; None if unknown."""
        self.shared = len(newest[0] & newest[1]) if self.is_known else None
        """The number of data files that the newest versions of both name; None if unknown."""
        self.deletes = None if self.only_a or self.only_b or not self.is_known else self._deletes()
        """How the deletes of equal newest versions compare: none, the same number in each file, or different; None if
        not checked."""
        self.versions = Frame(
            self._frame(), title=f"Versions of {self.names[0]} and their twins in {self.names[1]}", noun="versions"
        )
        """TWINS: every version of both, newest first."""

    @property
    def names(self) -> tuple[str, str]:
        """The names that tell the tables apart: of their formats, else their own, else their paths."""
        names = tuple(history_of(table).table_format.title for table in (self.a, self.b))
        if names[0] == names[1]:
            names = tuple(table.name if self.a.name != self.b.name else table.path for table in (self.a, self.b))
        return names[0], names[1]

    @property
    def matched(self) -> tuple[int, int] | None:
        """The newest pair of versions that name the same files; None without one."""
        return max(self._pairs, default=None)

    @property
    def is_in_step(self) -> bool | None:
        """Whether the newest versions name the same data files, with the same number of deleted rows in each.

        None if the files of one of them cannot be read.
        """
        if not self.is_known:
            return None
        return not (self.only_a or self.only_b) and self.deletes in ("none", "same number")

    @property
    def ahead(self) -> tuple[int, int] | None:
        """How many versions each table has after the newest pair that names the same files, or in all without one.

        None if one of these versions cannot be read: it may name the same files.
        """
        after = self.matched
        unread = [
            version
            for index, side in enumerate(self.sides)
            for version in side.unread
            if after is None or version > after[index]
        ]
        if unread:
            return None
        counts = [
            sum(after is None or version > after[side] for version in self.sides[side].versions) for side in (0, 1)
        ]
        return counts[0], counts[1]

    @property
    def since(self) -> datetime | None:
        """The commit time of the first version that the other table lacks; None without one, or if it is unknown."""
        after, ahead = self.matched, self.ahead
        if ahead is None:
            return None
        times = [
            side.times[next(version for version in side.versions if after is None or version > after[index])]
            for index, side in enumerate(self.sides)
            if ahead[index]
        ]
        known = [time for time in times if time is not None]
        return None if self.is_in_step or not known else min(known)

    @property
    def lag(self) -> timedelta | None:
        """The lag of the table that is behind: from its newest twin to the newest commit of the other."""
        after, ahead = self.matched, self.ahead
        if self.is_in_step or after is None or ahead is None or 0 not in ahead:
            return None
        index = 0 if ahead[0] else 1
        side = self.sides[index]
        first, last = side.times[after[index]], side.times[side.versions[-1]]
        return None if first is None or last is None else last - first

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        a, b = self.names
        if not self.is_known:
            unknown = f"Whether the newest versions of {a} and {b} name the same data files is unknown."
            return unknown if self.matched is None else f"{unknown} {self._pair(self.matched)}"
        if not (self.only_a or self.only_b):
            files = pluralize(self.shared, "data file")
            words = {
                "none": "and no row of them is deleted",
                "same number": "with the same number of deleted rows in each",
                "different": "but they delete different rows",
                None: "but their deletes were not compared",
            }
            return f"The newest versions of {a} and {b} name the same {files}, {words[self.deletes]}."
        after = self.matched
        if after is None:
            return f"No version of {a} names the same data files as one of {b}. {self._difference}"
        pair, ahead = self._pair(after), self.ahead
        if ahead is None:
            return f"{pair} Some versions after them cannot be read. {self._difference}"
        if all(ahead):
            return (
                f"{pair} Since then both went on: {a} has {pluralize(ahead[0], 'later version')}, {b} has "
                f"{ahead[1]:,}. {self._difference}"
            )
        behind, count = (b, ahead[0]) if ahead[0] else (a, ahead[1])
        lag = "" if self.lag is None or self.lag < _SECOND else f" and {_format_rounded(self.lag)}"
        since = "" if self.since is None else f", since {format_utc(self.since)}"
        return f"{behind} is {pluralize(count, 'version')}{lag} behind{since}. {pair}"

    def _pair(self, pair: tuple[int, int]) -> str:
        a, b = self.names
        return f"Version {pair[0]:,} of {a} and version {pair[1]:,} of {b} name the same data files."

    @property
    def _difference(self) -> str:
        a, b = self.names
        is_are = "is" if self.only_a == 1 else "are"
        return (
            f"Of the newest versions, {pluralize(self.only_a, 'data file')} {is_are} only in {a}, {self.only_b:,} only "
            f"in {b}, {self.shared:,} in both."
        )

    def diff(self, key: Sequence[str] | str | None = None, **options: Any) -> RowDiff:
        """Return the rows that differ between the newest versions; see `snapshot_explorer.diff` for the arguments."""
        result: RowDiff = diff(self.a.current, self.b.current, key, **options)
        return result

    def _deletes(self) -> str | None:
        """Return how the deletes of the newest versions, which name the same files, compare. Reads their FILES."""
        counts = []
        for side, table in zip(self.sides, (self.a, self.b), strict=True):
            files = table.current.files().to_arrow()
            is_whole = files["deletion_vector"].is_valid().to_pylist()
            deleted = zip(is_whole, files["deleted_rows"].to_pylist(), strict=True)
            identities = side.identities(files, by_path=self.are_copies)
            counts.append(
                {
                    file: (rows if has_deletes else 0)
                    for file, (has_deletes, rows) in zip(identities, deleted, strict=True)
                }
            )
        if any(count is None for side in counts for count in side.values()):
            return None
        if counts[0] != counts[1]:
            return "different"
        return "same number" if any(counts[0].values()) else "none"

    def _frame(self) -> pa.Table:
        a, b = self.sides
        matched_a, matched_b = ({pair[side] for pair in self._pairs} for side in (0, 1))
        rows = [_row(a, version, b, twin) for version, twin in self._pairs]
        rows += [_row(a, version, b, None) for version in a.versions if version not in matched_a]
        rows += [_row(a, None, b, version) for version in b.versions if version not in matched_b]
        rows.sort(key=_newest_last, reverse=True)
        return pa.Table.from_pylist(rows, frames.TWINS)


def _newest_last(row: Mapping[str, object]) -> tuple[str, str]:
    time, twin_time = row["committed_at"], row["twin_committed_at"]
    return str(time or twin_time or ""), str(twin_time or "")


def _row(a: _Side, version: int | None, b: _Side, twin: int | None) -> dict[str, object]:
    time, twin_time = (None if at is None else side.times[at] for side, at in ((a, version), (b, twin)))
    delay = None if time is None or twin_time is None else (twin_time - time) / _SECOND
    return {
        "version": version,
        "committed_at": time,
        "files": None if version is None else a.counts[version],
        "twin_version": twin,
        "twin_committed_at": twin_time,
        "twin_files": None if twin is None else b.counts[twin],
        "delay_seconds": delay,
    }


def _format_rounded(span: timedelta) -> str:
    seconds = span // _SECOND
    unit = 60 if seconds >= 60 else 1  # noqa: PLR2004 - a minute
    return format_duration(timedelta(seconds=seconds // unit * unit))


class _Side:
    """The files of every version of one table."""

    def __init__(self, table: Table) -> None:
        lifetimes = table.lifetimes()
        self._storage: Storage = history_of(table).table_format.storage
        self._rows = lifetimes.recorded()
        self.versions = lifetimes.versions
        self.times = dict(zip(self.versions, lifetimes.committed_at.to_pylist(), strict=True))
        title = history_of(table).table_format.title
        self.unread = tuple(lifetimes.unread)
        self.notes = [
            f"{title}: {note}"
            for note in (*gaps_note(lifetimes.gaps, "their files are unknown"), *lifetimes.unread_notes)
        ]
        first, removed = ranges(self._rows)
        self._ranges = list(zip(first.tolist(), removed.tolist(), strict=True))
        self.counts = self._summed([1] * len(self._ranges), lambda left, two: left + two, lambda left, two: left - two)

    def knows(self, version: int | None) -> bool:
        """Return whether the files of a version are known; a table without versions has none."""
        return version is None or version in self.counts

    def identities(self, files: pa.Table, *, by_path: bool) -> list[File]:
        """Return the identity of each file of a table with the columns path and size_bytes."""
        paths = files["path"].to_pylist()
        if by_path:
            return list(zip(paths, files["size_bytes"].to_pylist(), strict=True))
        # A file on another storage has no address.
        addresses = self._storage.addresses(paths)
        return [(address or path, None) for path, address in zip(paths, addresses, strict=True)]

    def _all(self, *, by_path: bool) -> list[File]:
        return self.identities(self._rows, by_path=by_path)

    def addresses(self) -> set[File]:
        """Return the addresses of the files of all versions."""
        return set(self._all(by_path=False))

    def files(self, version: int | None, *, by_path: bool) -> set[File]:
        """Return the files of a version; none for None."""
        every = self._all(by_path=by_path) if version is not None else []
        return {
            file
            for file, (first, removed) in zip(every, self._ranges, strict=False)
            if version is not None and first <= version < removed
        }

    def prints(self, *, by_path: bool) -> dict[int, int]:
        """Return a hash of 128 bits of the files of each version, which is equal for equal files."""
        hashes = [
            int.from_bytes(blake2b(repr(file).encode(), digest_size=16).digest(), "big")
            for file in self._all(by_path=by_path)
        ]
        xor = int.__xor__
        return self._summed(hashes, xor, xor)

    def _summed(self, values: Sequence[int], add: Any, remove: Any) -> dict[int, int]:
        """Return for each version the sum over its files."""
        added: dict[int, list[int]] = defaultdict(list)
        gone: dict[int, list[int]] = defaultdict(list)
        for value, (first, removed) in zip(values, self._ranges, strict=True):
            added[first].append(value)
            gone[removed].append(value)
        total, result = 0, {}
        for version in self.versions:
            for value in added[version]:
                total = add(total, value)
            for value in gone[version]:
                total = remove(total, value)
            result[version] = total
        return result


def _pairs(a: Mapping[int, int], b: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the versions of two tables whose files are equal.

    If several versions have the same files, the first version of one table pairs with the first of the other, and so
    on; the last version of the table with fewer pairs with all remaining ones of the other.
    """
    of_a, of_b = (_by_print(prints) for prints in (a, b))
    pairs = []
    for value, versions in of_a.items():
        others = of_b.get(value, [])
        for index in range(max(len(versions), len(others)) if others else 0):
            pairs += [(versions[min(index, len(versions) - 1)], others[min(index, len(others) - 1)])]
    return sorted(pairs)


def _by_print(prints: Mapping[int, int]) -> dict[int, list[int]]:
    versions: dict[int, list[int]] = defaultdict(list)
    for version, value in prints.items():
        versions[value].append(version)
    return versions


@reports_lacking_resources
def twins(
    path: str | PathLike[str] | Table,
    other: str | PathLike[str] | Table | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Twins:
    """Return whether two tables name the same data files, which versions correspond, and which is behind.

    For a table in one format whose folder also has the metadata of another one, such as Delta with UniForm, Paimon with
    Iceberg compatibility, or metadata of XTable; or for two tables, such as a clone or a copy and its source.

    Two versions correspond if they name the same data files. Of the newest versions, the numbers of deleted rows of
    each file are compared too, where the metadata contains them. No data file is opened: `Twins.diff` compares rows.

    Args:
        path: A folder with two metadata trees, or the first table: a path, or an open table.
        other: The second table; None for the other metadata in the folder.
        storage_options: As for `open_table`, for paths.

    Raises:
        TableNotFoundError: There is no table at a path.
        InvalidArgumentError: The folder has the metadata of one format only.
        CorruptTableError: A file of the log is missing or damaged; the message names it.
    """
    path, other, storage_options = hidden_url(path), hidden_url(other), hidden_options(storage_options)
    a = path if isinstance(path, Table) else open_table(path, storage_options=storage_options)
    if other is None:
        b = _other_tree(a)
    else:
        b = other if isinstance(other, Table) else open_table(other, storage_options=storage_options)
    with history_of(a).table_format.storage.keeping_immutable(), history_of(b).table_format.storage.keeping_immutable():
        return Twins(a, b)


def _other_tree(table: Table) -> Table:
    """Return the table of another format in the same folder. A listing, and up to two small requests for each."""
    storage = history_of(table).table_format.storage
    for other in others_in(storage, type(history_of(table).table_format), frozenset(storage.folders(""))):
        twin = other(storage)
        twin.detection = Detection(other_formats=(table.format,))
        return Table(OpenBranch(table.path, twin, storage=storage, name=table.name))
    raise InvalidArgumentError(
        Message(
            f"{table.path} has only {history_of(table).table_format.title} metadata, so it has no twin in its folder. "
            "To compare it with another table, use ",
            Hint("twins", {"path": table.path, "other": ...}),
            ".",
        )
    )
