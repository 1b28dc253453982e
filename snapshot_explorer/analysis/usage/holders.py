"""The histories, tags and branches of a table that hold files, as far as they can be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snapshot_explorer.analysis.usage.held_files import HeldFiles, HolderKind, HoldingHistory
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """What holds the files of a table."""

    files: HeldFiles
    sources: Sequence[History]
    """The histories that were read, the open one first, in the order of `files.histories`."""
    unread: Sequence[str]
    """What could not be read and may hold files, a sentence each. With any, nothing is known to be held only once."""


def read_holders(history: History) -> Holders:
    """Return what holds the files of a table. Reads the log of each branch once, as `lifetimes` does, and the tags."""
    sources = [history]
    unread: list[str] = []
    of_table = history.table_format.branches
    histories = [_holding(history, "branches", "")]
    detached = frozenset(of_table.detached_heads())
    for name in (*of_table.names(), *sorted(detached)):
        if name == history.branch_name:
            continue
        is_detached = name in detached
        label = f"versions on no branch up to snapshot {name}" if is_detached else f"branch {name}"
        try:
            source = history.on_branch(name)
            held = _holding(source, "versions on no branch" if is_detached else "branches", label)
        except UNREADABLE as error:
            unread.append(Message(f"The files of {label} are unknown: ", without_period(error.message), "."))
            continue
        sources.append(source)
        histories.append(held)
    for source in sources:
        unread += [*source.lifetimes().unread_notes, *source.listing.unread]
    tags, unknown = _tags(sources, histories)
    first = history.listing.first_unexpired
    plain = histories[0].versions
    files = HeldFiles(histories, plain if first is None else plain[plain >= first], tags)
    return Holders(files=files, sources=sources, unread=tuple(dict.fromkeys([*unread, *unknown])))


def _holding(source: History, kind: HolderKind, label: str) -> HoldingHistory:
    """Return the versions of a history that exist. Versions that expired since they were read are not among them."""
    lifetimes, listing = source.lifetimes(), source.listing
    existing = set(listing.reachable).difference(listing.without_files).intersection(lifetimes.versions)
    return HoldingHistory(kind=kind, label=label, lifetimes=lifetimes, versions=np.array(sorted(existing), np.int64))


def _tags(
    sources: Sequence[History], histories: Sequence[HoldingHistory]
) -> tuple[Mapping[str, tuple[int, int]], list[str]]:
    """Return for each tag the history that has its version and the version, and a sentence for each other tag.

    A tag of the table may name a version of another branch. The tags that only a branch has are removed with it.
    """
    result: dict[str, tuple[int, int]] = {}
    unknown: list[str] = []
    try:
        own_tags = sources[0].tags()
    except UNREADABLE as error:
        return {}, [Message("The tags could not all be read: ", without_period(error.message), ".")]
    for name, version in own_tags.items():
        numbers: list[tuple[int, int | None]] = [(0, version)]
        if version not in histories[0].versions:
            numbers = [(index, source.tags().get(name)) for index, source in enumerate(sources[1:], 1)]
        at = next(
            (
                (index, number)
                for index, number in numbers
                if number is not None and number in histories[index].versions
            ),
            None,
        )
        if at is None:
            unknown.append(f"The files of tag {name} are unknown: its version {version} could not be read.")
        else:
            result[name] = at
    return result, unknown
