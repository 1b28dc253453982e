"""Find the versions that can be loaded: from lifetimes and a listing of the folders with data files."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.records import Listing, Readable, gaps_note
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.formats.expiry import Mask, Presence, ranges
from snapshot_explorer.formats.unread_versions import readable_times
from snapshot_explorer.history import History, KnownReadability
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.results import Frame

SYMBOLS = {"yes": "+", "metadata": "~", "no": "-", None: "?"}
"""The character of each state in a strip of versions."""
_WIDTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """What a listing of the folders found of the files of all versions."""

    listing: Listing
    """The versions."""
    presence: Presence
    """For each of the recorded LIFETIMES, whether its file exists."""


def find_files(table_format: TableFormat, lifetimes: FileLifetimes, listing: Listing) -> FoundFiles:
    """Return which files of the versions exist. Lists each folder with data files; see `Maintenance.presence`."""
    known = set(lifetimes.versions)
    versions = [version for version in listing.versions if version in known]
    return FoundFiles(listing=listing, presence=table_format.maintenance.presence(lifetimes.recorded(), versions))


def read_readability(history: History) -> Frame:
    """Return the READABILITY frame of every version, newest first, and keep the result.

    Reads the log once and lists each folder with data files. Opens no file.
    """
    lifetimes = history.lifetimes()
    found_files = find_files(history.table_format, lifetimes, history.listing)
    known = history.open_branch.readability
    return readability_frame(known, history.table_format, lifetimes, found_files, name=history.name)


def readability_frame(
    known: KnownReadability, table_format: TableFormat, lifetimes: FileLifetimes, found_files: FoundFiles, *, name: str
) -> Frame:
    """Return the READABILITY frame of the versions whose files were looked for, newest first, and keep the result."""
    known_versions = set(lifetimes.versions)
    listing, presence = found_files.listing, found_files.presence
    rows = lifetimes.recorded()
    counts = _Counts(lifetimes, rows, presence)
    times = readable_times(table_format, listing.versions)
    values = []
    for version, time in zip(reversed(listing.versions), reversed(times), strict=True):
        row: dict[str, object] = {"version": version, "committed_at": time}
        if version in known_versions:
            row |= counts.of(version)
        elif version in lifetimes.unread:
            row |= {"readable": "no", "reason": without_period(Message(lifetimes.unread[version]))}
        elif version in listing.without_files and listing.unread:
            row |= {"readable": None, "reason": "only its changelog is known, and what cannot be read may keep more"}
        elif version in listing.without_files:
            row |= {"readable": "metadata", "reason": "only its changelog is left"}
        else:
            row |= {"readable": "no", "reason": "its log was cleaned away, or its metadata is gone"}
        values.append(row)
    table = known.rows = pa.Table.from_pylist(values, frames.READABILITY)
    known.missing = frozenset(rows["path"].filter(pa.array(presence.gone)).to_pylist())
    title = f"Versions of {name} that can be loaded: {strip(table)}"
    return Frame(
        table,
        title=title,
        noun="versions",
        drawn=("version", "committed_at", "readable", "files", "missing_files", "missing_bytes"),
        kind="readability",
        notes=(
            *(Message("Versions that are not listed were not looked at: ", reason) for reason in listing.unread),
            *gaps_note(listing.gaps(listing.versions), "its files were not looked for"),
            *lifetimes.unread_notes,
        ),
    )


def strip(rows: pa.Table) -> str:
    """Return READABILITY as a strip, oldest first: `+` can be loaded, `~` its metadata only, `-` not, `?` unknown."""
    symbols = [SYMBOLS[item] for item in rows.column("readable").to_pylist()][::-1]
    if len(symbols) <= _WIDTH:
        return "".join(symbols) or "none"
    runs = [(symbol, len(list(group))) for symbol, group in groupby(symbols)]
    return " ".join(f"{symbol}{count:,}" for symbol, count in runs[-_WIDTH // 4 :])


class _Counts:
    """The numbers of existing and missing files of each version."""

    def __init__(self, lifetimes: FileLifetimes, rows: pa.Table, presence: Presence) -> None:
        self._places = {version: index for index, version in enumerate(lifetimes.versions)}
        self._presence = presence
        ones = np.ones(len(rows), np.int64)
        sizes = pc.fill_null(rows.column("size_bytes"), 0).to_numpy()
        everything = np.ones(len(rows), np.bool_)
        self._files = _sums(lifetimes.versions, rows, everything, ones)
        self._gone = _sums(lifetimes.versions, rows, presence.gone, ones)
        vectors = presence.gone & rows.column("deletion_vector").is_valid().to_numpy()
        self._gone_vectors = _sums(lifetimes.versions, rows, vectors, ones)
        self._gone_bytes = _sums(lifetimes.versions, rows, presence.gone, sizes)
        unsized = presence.gone & rows.column("size_bytes").is_null().to_numpy()
        self._gone_unsized = _sums(lifetimes.versions, rows, unsized, ones)
        self._resized = _sums(lifetimes.versions, rows, presence.resized, ones)
        self._unknown = _sums(lifetimes.versions, rows, presence.unknown, ones)

    def of(self, version: int) -> dict[str, object]:
        """Return the columns of READABILITY for a version, except number and time."""
        index = self._places[version]
        files, gone, resized, unknown = (
            int(counts[index]) for counts in (self._files, self._gone, self._resized, self._unknown)
        )
        readable: Readable | None = "yes"
        presence = self._presence
        reason = presence.via_tag.get(version)
        if version in presence.missing_metadata:
            readable, reason = "no", presence.missing_metadata[version]
        elif gone:
            vectors = ", or their deletion vectors" if self._gone_vectors[index] else ""
            readable, reason = "metadata", f"{gone:,} of {files:,} files are gone{vectors}"
        elif resized:
            readable, reason = "metadata", f"{resized:,} of {files:,} files have another size than recorded"
        elif version in presence.missing_deletes:
            readable, reason = "metadata", presence.missing_deletes[version]
        elif unknown:
            readable, reason = None, f"{unknown:,} of {files:,} files are on another storage"
        elif version in presence.unchecked_files:
            readable, reason = None, presence.unchecked_files[version]
        values: dict[str, object] = {"readable": readable, "reason": reason, "files": files}
        if not unknown:  # some of the files that were not checked may be missing too
            values["missing_files"] = gone
            values["missing_bytes"] = None if self._gone_unsized[index] else int(self._gone_bytes[index])
        return values


def _sums(
    versions: Sequence[int], rows: pa.Table, chosen: Mask, values: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    first, removed = ranges(rows)
    counts = np.zeros(len(versions) + 1, np.int64)
    np.add.at(counts, np.searchsorted(versions, first[chosen]), values[chosen])
    np.subtract.at(counts, np.searchsorted(versions, removed[chosen]), values[chosen])
    return np.cumsum(counts)[:-1]
