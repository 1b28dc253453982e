"""The timeline of a Hudi table: its instants, from the names of files in one folder.

Source: hudi specification, "Timeline"; hudi InstantFileNameParserV1 and V2.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal, NamedTuple

from snapshot_explorer.formats.hudi.metadata.properties import FOLDER, TableConfig
from snapshot_explorer.storage import EntryFields

State = Literal["requested", "inflight", "completed"]
WRITES = frozenset(("commit", "deltacommit", "replacecommit"))
"""The actions that change what readers see, under the names of their completed files."""
_PENDING_WRITES = {"clustering": "replacecommit", "compaction": "commit", "logcompaction": "deltacommit"}
PENDING_ACTIONS = WRITES | _PENDING_WRITES.keys()
"""The actions of these changes before they are completed."""
_ACTIONS = PENDING_ACTIONS | {"clean", "rollback", "savepoint", "restore", "indexing"}
_NAMES = re.compile(r"(?<![^/])((\d{1,18})(?:_(\d{1,18}))?\.([a-z.]+))(?![^/])", re.ASCII)
"""Matches names in a text where a slash, which no name contains, separates them."""
_SECOND_DIGITS = 14
_PARTS = ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14))
"""The positions of year, month, day, hour, minute and second in the text of an instant."""


class Instant(NamedTuple):
    """An action on a table, in its furthest state."""

    time: int
    """When it was requested, as the writer's clock showed it: the digits of `text` as an integer."""
    text: str
    """When it was requested, as it is written in names: yyyyMMddHHmmss, and milliseconds since release 0.10."""
    action: str
    """The action in the name of the file."""
    state: State
    completion: str | None
    """When it was completed, in the same notation; None if the name does not contain it."""
    path: str
    """The file of this state, below the table's root; of an archived instant the file of the archive."""
    size_bytes: int | None

    @property
    def is_completed_write(self) -> bool:
        """Whether it is a version."""
        return self.state == "completed" and self.action in WRITES


@dataclass(frozen=True)
class Timeline:
    """The instants of the active timeline, ascending, each once, in its furthest state."""

    instants: tuple[Instant, ...]
    names: tuple[str, ...]
    """The names of all files, sorted: equal names mean that nothing changed."""
    sizes: Mapping[str, int | None]
    """The size of each file in the listing, by its path; None where the listing has no sizes."""

    @cached_property
    def writes(self) -> dict[int, Instant]:
        """The completed writes by time, ascending."""
        return {instant.time: instant for instant in self.instants if instant.is_completed_write}

    @cached_property
    def pending_compactions(self) -> tuple[Instant, ...]:
        """The compactions that are requested or running."""
        return tuple(
            instant for instant in self.instants if instant.action == "compaction" and instant.state != "completed"
        )

    def of_action(self, *actions: str) -> tuple[Instant, ...]:
        """Return the instants of some actions, in any state."""
        return tuple(instant for instant in self.instants if instant.action in actions)


def timeline_folder(config: TableConfig) -> str:
    """Return the folder of the active timeline."""
    return FOLDER if config.layout == 1 else f"{FOLDER}/{config.text('hoodie.timeline.path', default='timeline')}"


def timeline_of(entries: Iterable[EntryFields], config: TableConfig) -> Timeline:
    """Return the timeline of a listing of its folder. Files that are not of the timeline are ignored."""
    folder = timeline_folder(config)
    sizes = {name: size_bytes for name, is_folder, size_bytes, _ in entries if not is_folder}
    names: list[str] = []
    states: dict[tuple[int, str], tuple[int, str, str, str, str]] = {}
    """The furthest state of each action: its rank, the name of its file, both times and the action."""
    for name, text, completion, suffix in reversed(_NAMES.findall("/".join(sorted(sizes)))):
        if suffix in _SUFFIXES:
            names.append(name)
            completed, action, rank = _SUFFIXES[suffix]
            key = int(text), completed
            known = states.get(key)
            if known is None or rank >= known[0]:
                states[key] = rank, name, text, completion, action
    instants = tuple(
        Instant(time, text, action, _STATES[rank], completion or None, f"{folder}/{name}", sizes[name])
        for (time, _), (rank, name, text, completion, action) in sorted(states.items())
    )
    return Timeline(instants, tuple(reversed(names)), {f"{folder}/{name}": sizes[name] for name in names})


_STATES: tuple[State, ...] = ("requested", "inflight", "completed")
_SUFFIXES = {
    f"{action}{suffix}": (_PENDING_WRITES.get(action, action), action, rank)
    for action in _ACTIONS
    for rank, suffix in enumerate((".requested", ".inflight", ""))
} | {state: ("commit", "commit", rank) for rank, state in enumerate(("requested", "inflight"))}
"""The suffixes of file names: the action when completed, the action, and the index of its state.

The inflight file of a commit does not name its action.
"""


def parse_instant(text: str) -> datetime:
    """Return the time that an instant's text shows, taken as UTC; 1970 for the instants of bootstraps.

    The zone of the writer is not recorded.
    """
    try:  # several times as fast as strptime
        year, month, day, hour, minute, second = (int(text[start:end]) for start, end in _PARTS)
        time = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(int(text), 999))
    return time + timedelta(milliseconds=int(text[_SECOND_DIGITS:][:3].ljust(3, "0")))


def newest_at_or_before(versions: Collection[int], time: int) -> int | None:
    """Return the newest of some versions at or before a time, or None."""
    return max((version for version in versions if version <= time), default=None)
