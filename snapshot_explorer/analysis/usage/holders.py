"""The histories, tags and branches of a table that hold files, as far as they can be read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snapshot_explorer.analysis.usage.held_files import HeldFiles, Holder, HolderKind, HoldingHistory
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
    histories = [_holding(history, "older versions", "")]
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
    first, plain = history.listing.first_unexpired, histories[0].versions.tolist()
    versions = [Holder(kind="older versions", version=item) for item in plain if first is None or item >= first]
    whole = [
        Holder(kind=item.kind, label=item.label, version=None, history=index)
        for index, item in enumerate(histories)
        if index
    ]
    files = HeldFiles(histories, [*versions, *tags, *whole])
    return Holders(files=files, sources=sources, unread=tuple(dict.fromkeys([*unread, *unknown])))


def _holding(source: History, kind: HolderKind, label: str) -> HoldingHistory:
    """Return the versions of a history that exist. Versions that expired since they were read are not among them."""
    lifetimes, listing = source.lifetimes(), source.listing
    existing = set(listing.reachable).difference(listing.without_files).intersection(lifetimes.versions)
    return HoldingHistory(kind=kind, label=label, lifetimes=lifetimes, versions=np.array(sorted(existing), np.int64))


def _tags(sources: Sequence[History], histories: Sequence[HoldingHistory]) -> tuple[list[Holder], list[str]]:
    """Return the tags as holders, the open history's first, and a sentence for each whose files are unknown.

    A tag of the table may name a version of another branch. The tags that only a branch has are removed with it.
    """
    result: list[Holder] = []
    unknown: list[str] = []
    try:
        own_tags = sources[0].tags()
    except UNREADABLE as error:
        return [], [Message("The tags could not all be read: ", without_period(error.message), ".")]
    for name, version in own_tags.items():
        numbers = [version]
        if version not in histories[0].versions:
            numbers = [-1, *(source.tags().get(name, -1) for source in sources[1:])]
        at = next((index for index, number in enumerate(numbers) if number in histories[index].versions), None)
        if at is None:
            unknown.append(f"The files of tag {name} are unknown: its version {version} could not be read.")
        else:
            result.append(Holder(kind="tags", label=f"tag {name}", version=numbers[at], history=at))
    own, others = ([tag for tag in result if bool(tag.history) is is_other] for is_other in (False, True))
    return [*sorted(own, key=lambda tag: (tag.version, tag.label)), *sorted(others, key=lambda tag: tag.label)], unknown
