"""Snapshot expiry: the snapshots and files that Paimon's `expire_snapshots` would delete.

Source: paimon docs, "Manage Snapshots"; paimon ExpireSnapshotsImpl, SnapshotDeletion, ProcedureUtils, ConsumerManager.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE, CorruptTableError, SnapshotExplorerError
from snapshot_explorer.core.milliseconds import from_millis, to_millis
from snapshot_explorer.core.records import Listing, runs_of, runs_text
from snapshot_explorer.formats.expiry import (
    Expiry,
    Mask,
    RetentionRule,
    check_age,
    format_duration,
    freed_frame,
    holder,
    live_at,
    parse_duration,
    paths_of,
    ranges,
    sizes_of,
)
from snapshot_explorer.formats.paimon.inspect.history_tables import consumers
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import Layout, manifest_path, parse_hint
from snapshot_explorer.formats.paimon.metadata.schema import Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.settings import SettingsReader, parse_flag
from snapshot_explorer.formats.unread_versions import PartlyRead, Reasons, read_apart
from snapshot_explorer.storage import Storage

_ALL = 2**31 - 1
_MIN, _MAX, _AGE = "snapshot.num-retained.min", "snapshot.num-retained.max", "snapshot.time-retained"
_DEFAULTS = {_MIN: 10, _MAX: _ALL}
_LONGER = ("changelog.num-retained.min", "changelog.num-retained.max", "changelog.time-retained")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionState:
    """The snapshots of a table, and the tags and consumers that prevent their expiry."""

    snapshots: Mapping[int, PaimonSnapshot]
    """The snapshot files by version, ascending, without versions kept only by a tag or a changelog."""
    earliest: int
    """The first version that expires: the version in the hint if it exists, otherwise the first snapshot."""
    tags: Mapping[str, PaimonSnapshot]
    changelogs: Mapping[int, PaimonSnapshot]
    """Expired versions whose long-lived changelog still exists."""
    consumers: Mapping[str, int]
    """The next version of each consumer."""
    options: Mapping[str, str]
    unread: Reasons
    """The reason why each unreadable snapshot file cannot be read, by version."""
    unread_tags: Sequence[SnapshotExplorerError]
    """Why tags cannot be read. They may keep the files of any version."""

    @property
    def latest(self) -> int:
        """Return the newest version."""
        return max(self.snapshots)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    retain_max: int
    retain_min: int
    older_than: int
    """Milliseconds since 1970."""
    by_next: bool
    """Whether the age of a snapshot is the age of the next one, as in Paimon 2.0, or its own, as in older releases."""
    rules: tuple[tuple[str, str], ...]

    def end(self, state: RetentionState, consumers: Mapping[str, int]) -> int:
        """Return the version before which all snapshots expire; the earliest if none does.

        Source: paimon ExpireSnapshotsImpl.expire.
        """
        end = min([state.latest - self.retain_min + 1, *consumers.values()])
        for version in range(max(state.latest - self.retain_max + 1, state.earliest), end):
            aged = state.snapshots.get(version + 1 if self.by_next else version)
            if aged is not None and to_millis(aged.committed_at) >= self.older_than:
                return max(version, state.earliest)
        return max(end, state.earliest)


def read_retention_state(
    storage: Storage, layout: Layout, history: PaimonHistory, schemas: Schemas, newest: int | None
) -> RetentionState:
    """Return the snapshots up to `newest`, with tags and consumers.

    Five listings, two hints, and a small file for each tag and consumer, and for each snapshot and the newest schema
    unless they are cached; concurrently.
    """
    schema, hints, waiting, stored = storage.together(
        schemas.newest,
        lambda: storage.read_present([layout.hint("snapshot", "EARLIEST")]),
        lambda: consumers(storage, layout).to_pylist(),
        history.stored_versions,
    )
    versions = [version for version in stored.snapshots if newest is None or version <= newest]
    partly_read = read_apart(history.snapshots, [*versions, *stored.changelogs], storage)
    read = {item.id: item for _, part in partly_read.parts for item in part}
    hint = parse_hint(hints[0])
    return RetentionState(
        snapshots={version: read[version] for version in versions if version in read},
        earliest=hint if hint in versions and hint is not None else min(versions, default=0),
        tags=stored.tags,
        changelogs={version: read[version] for version in stored.changelogs if version in read},
        consumers={row["consumer_id"]: row["next_snapshot_id"] for row in waiting},
        options=schema.options,
        unread=partly_read.unread,
        unread_tags=stored.damaged_tags,
    )


def expiry(
    rule: RetentionRule,
    lifetimes: pa.Table,
    state: RetentionState,
    *,
    changelogs: Callable[[Sequence[int]], PartlyRead[pa.Table]],
    branches: Mapping[str, frozenset[str] | str],
    name: str,
    unread: Collection[int] = (),
) -> Expiry:
    """Return the snapshots and files that `CALL sys.expire_snapshots` with the rule would delete.

    Args:
        rule: The rule. Its missing parts come from the table's settings or Paimon's defaults.
        lifetimes: LIFETIMES of the table.
        changelogs: Returns the CHANGES of the readable changelogs of some snapshots.
        branches: The paths that every other branch uses, or the reason why they are unknown.
        name: The table's name in SQL.
        unread: Versions whose files are not in the LIFETIMES, because they cannot be read.
    """
    arguments = _rule(rule, state)
    if not state.snapshots:
        return Expiry(
            versions=_versions(state, arguments, 0, rule.now),
            freed=frames.FREED.empty_table(),
            holders=frames.HOLDERS.empty_table(),
            rules=arguments.rules,
            commands=(),
            notes=("The table has no snapshots: nothing expires.",),
        )
    end = arguments.end(state, state.consumers)
    begin, options = state.earliest, state.options
    undecided = _undecided_reason(state, end)
    mask = _freed_files(lifetimes, begin, end, state.tags, unread)
    expired = [item.id for item in state.snapshots.values() if begin <= item.id < end]
    with_changelog = [item for item in expired if state.snapshots[item].changelog_manifest_list is not None]
    read = changelogs(with_changelog)
    freed = pa.concat_tables([freed_frame(lifetimes, mask), *(_of_changelogs(part) for _, part in read.parts)])
    unknown = sorted({*read.unread, *(item for item in unread if begin < item <= end)})
    more = f"More files may be deleted: what {runs_text(runs_of(unknown))} removed is unknown." if unknown else None
    own_maximum = _settings(options).required_count(_MAX, _DEFAULTS[_MAX])
    return Expiry(
        versions=_versions(state, arguments, end, rule.now, is_decided=undecided is None),
        freed=frames.FREED.empty_table() if undecided else freed,
        holders=frames.HOLDERS.empty_table()
        if undecided or state.latest in unread
        else _holders(lifetimes, state, arguments, freed, branches, unread),
        rules=arguments.rules,
        commands=expire_commands(
            name,
            retain_max=None if arguments.retain_max == own_maximum else arguments.retain_max,
            retain_min=arguments.retain_min,
            older_than=from_millis(arguments.older_than),
            max_deletes=max(1, end - begin),
        ),
        notes=_notes(state, arguments),
        metadata=frames.FREED.empty_table()
        if undecided
        else _freed_metadata(state, [state.snapshots[item] for item in expired]),
        command_notes=_command_notes(name),
        unknown=undecided or more,
    )


def _rule(rule: RetentionRule, state: RetentionState) -> _Rule:
    settings = _settings(state.options)
    age = rule.keep if rule.keep is not None else _duration(state.options)
    minimum = rule.keep_last or settings.required_count(_MIN, _DEFAULTS[_MIN])
    own_maximum = settings.required_count(_MAX, _DEFAULTS[_MAX])
    maximum = max(minimum, own_maximum)
    older_than = to_millis(check_age(rule.now, age))
    newest = state.snapshots[state.latest] if state.snapshots else None
    minimum_source = settings.source_of(_MIN, is_requested=rule.keep_last is not None)
    rules = [
        ("keep", f"{format_duration(age)} ({settings.source_of(_AGE, is_requested=rule.keep is not None)})"),
        ("keep at least", f"{_version_count(minimum)} ({minimum_source})"),
    ]
    if maximum < _ALL:
        rules.append(
            (
                "keep at most",
                f"{_version_count(maximum)} ({settings.source_of(_MAX, is_requested=maximum != own_maximum)})",
            )
        )
    return _Rule(
        retain_max=maximum,
        retain_min=minimum,
        older_than=older_than,
        by_next=newest is not None and any((newest.operation, newest.uuid, newest.writer_version)),
        rules=tuple(rules),
    )


def _settings(options: Mapping[str, str]) -> SettingsReader:
    return SettingsReader(options, noun="option", engine="Paimon")


def _version_count(count: int) -> str:
    return "1 version" if count == 1 else f"{count:,} versions"


def _duration(options: Mapping[str, str]) -> timedelta:
    text = options.get(_AGE, "1 h")
    # A number without a unit is in milliseconds.
    span = parse_duration(f"{text} ms" if text.strip().isdigit() else text)
    if span is None:
        raise CorruptTableError(
            f"The table's option {_AGE} must be a duration, got {text[:40]!r}. Pass keep=, or set the option again."
        )
    return span


def _undecided_reason(state: RetentionState, end: int) -> str | None:
    """Return why it is unknown which versions and files would be lost, in a sentence; None if it is known.

    Expiry stops at a missing snapshot, and fails at an unreadable snapshot.
    """
    if end <= state.earliest:
        return None
    span = f"What expiring versions {state.earliest} to {end - 1} would delete is unknown"
    if state.unread_tags:
        return f"{span}, because a tag may keep any of them: {state.unread_tags[0]}"
    gaps = [version for version in range(state.earliest, end + 1) if version not in state.snapshots]
    if gaps:
        problem = "cannot be read" if gaps[0] in state.unread else "is missing"
        return (
            f"{span}: snapshot {gaps[0]} {problem}, and Paimon's expiry stops at a gap. Repair the table, or keep more "
            "versions."
        )
    return None


def _freed_files(
    lifetimes: pa.Table, begin: int, end: int, tags: Mapping[str, PaimonSnapshot], unread: Collection[int]
) -> Mask:
    """Return a mask of the LIFETIMES whose files are deleted when snapshots from `begin` up to `end` expire.

    These are files that a commit after `begin`, up to and including `end`, removed, unless it added the same file on
    another level, or the last tag before the commit contains it. Files for which this is uncertain are left out.

    Source: paimon ExpireSnapshotsImpl.expireUntil, FileDeletionBase.createDataFileSkipperForTags.
    """
    first, removed = ranges(lifetimes)
    is_certain = lifetimes.column("removed_at").is_valid().to_numpy()
    chosen: Mask = (removed > begin) & (removed <= end) & is_certain
    added = (first > begin) & (first <= end)
    paths = lifetimes.column("path")
    again = set(zip(paths.filter(pa.array(added)).to_pylist(), first[added].tolist(), strict=True))
    tagged = sorted({tag.id for tag in tags.values()})
    of_tag: dict[int, frozenset[str]] = {}
    indices = np.flatnonzero(chosen)
    for index, path in zip(indices.tolist(), paths.take(pa.array(indices)).to_pylist(), strict=True):
        version = int(removed[index])
        before = bisect_left(tagged, version) - 1
        if before >= 0 and tagged[before] not in of_tag:
            of_tag[tagged[before]] = paths_of(lifetimes, _may_be_live_at(lifetimes, tagged[before], unread))
        if (path, version) in again or (before >= 0 and path in of_tag[tagged[before]]):
            chosen[index] = False
    return chosen


def _may_be_live_at(lifetimes: pa.Table, version: int, unread: Collection[int]) -> Mask:
    """Return which LIFETIMES are, or may be, live at a version."""
    live = live_at(lifetimes, version)
    if version not in unread:
        return live
    added = pc.fill_null(lifetimes.column("added_version"), 0).to_numpy()
    may_be_older: Mask = (ranges(lifetimes)[0] > version) & (added <= version)
    return live | may_be_older


def _of_changelogs(changes: pa.Table) -> pa.Table:
    rows = changes.filter(pc.equal(changes.column("change"), "add"))
    columns = {name: rows.column(name) for name in ("path", "partition", "size_bytes")}
    return frames.table_of(frames.FREED, columns | {"what": "changelog"})


def _freed_metadata(state: RetentionState, expired: Sequence[PaimonSnapshot]) -> pa.Table:
    """Return FREED of the snapshot files that expire, and of the manifest lists that no other snapshot or tag needs.

    Source: paimon ExpireSnapshotsImpl.expireUntil, SnapshotDeletion.cleanUnusedManifests.
    """
    ids = {item.id for item in expired}
    others = [*(item for item in state.snapshots.values() if item.id not in ids), *state.tags.values()]
    needed = {name for item in others for name, _ in _lists(item)}
    rows: list[dict[str, object]] = [{"what": "snapshot", "path": item.path} for item in expired]
    lists = {name: (item, size) for item in expired for name, size in _lists(item) if name not in needed}
    rows += [
        {"what": "manifest list", "path": manifest_path(name, item.path), "size_bytes": size}
        for name, (item, size) in lists.items()
    ]
    return pa.Table.from_pylist(rows, frames.FREED)


def _lists(snapshot: PaimonSnapshot) -> list[tuple[str, int | None]]:
    """Return the names and sizes of a snapshot's manifest lists."""
    lists = [
        (snapshot.base_manifest_list, snapshot.base_manifest_list_bytes),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_bytes),
    ]
    if snapshot.changelog_manifest_list is not None:
        lists.append((snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_bytes))
    return lists


def _versions(state: RetentionState, rule: _Rule, end: int, now: datetime, *, is_decided: bool = True) -> pa.Table:
    otherwise = rule.end(state, {}) if state.snapshots else 0
    tagged: dict[int, list[str]] = {}
    for name, tag in state.tags.items():
        tagged.setdefault(tag.id, []).append(name)
    by_tag = {version: f"tag {', '.join(sorted(names))}" for version, names in tagged.items()}
    rows: dict[int, tuple[datetime, str | None, str]] = {
        version: (item.committed_at, "gone", "only its changelog is left") for version, item in state.changelogs.items()
    }
    rows |= {
        tag.id: (tag.committed_at, "kept", f"{by_tag[tag.id]}; its snapshot has expired") for tag in state.tags.values()
    }
    for version, element in state.snapshots.items():
        if version >= end or version < state.earliest:
            rows[version] = (element.committed_at, "kept", _reason(state, rule, version, now, otherwise))
        elif version in by_tag:
            rows[version] = (element.committed_at, "kept", f"{by_tag[version]}; its snapshot expires")
        elif is_decided:
            rows[version] = (element.committed_at, "lost", "no rule or tag keeps it")
        else:
            rows[version] = (element.committed_at, None, "no rule or known tag keeps it, and expiry may not reach it")
    listed = [(version, *row) for version, row in sorted(rows.items())]
    return pa.Table.from_pylist([dict(zip(frames.RETAINED.names, row, strict=True)) for row in listed], frames.RETAINED)


def _reason(state: RetentionState, rule: _Rule, version: int, now: datetime, otherwise: int) -> str:
    """Return why a snapshot is kept. Without consumers, snapshots before `otherwise` would expire."""
    if version > state.latest - rule.retain_min:
        return "the newest" if rule.retain_min == 1 else f"one of the newest {rule.retain_min:,}"
    reading = sorted((number, name) for name, number in state.consumers.items())
    if reading and reading[0][0] <= version < otherwise:
        return f"consumer {reading[0][1]} reads on from version {reading[0][0]}"
    aged = state.snapshots.get(version + 1 if rule.by_next else version)
    if aged is not None and to_millis(aged.committed_at) >= rule.older_than:
        return f"younger than {format_duration(_since(rule.older_than, now))}"
    return (
        "follows one that is kept" if version >= state.earliest else "is before the hint EARLIEST, where expiry begins"
    )


def _since(millis: int, now: datetime) -> timedelta:
    span = now - from_millis(millis)
    # Show a rule of 7 days as 7 days, not with the rounding error of milliseconds.
    return timedelta(milliseconds=span // timedelta(milliseconds=1))


def _holders(
    lifetimes: pa.Table,
    state: RetentionState,
    rule: _Rule,
    freed: pa.Table,
    branches: Mapping[str, frozenset[str] | str],
    unread: Collection[int],
) -> pa.Table:
    """Return the HOLDERS frame: kept versions, tags, consumers, branches."""
    end, latest = rule.end(state, state.consumers), state.latest
    first, removed = ranges(lifetimes)
    newest = paths_of(lifetimes, live_at(lifetimes, latest))
    kept = paths_of(lifetimes, (first <= latest) & (removed > end)) - newest
    of_tags = {name: paths_of(lifetimes, live_at(lifetimes, tag.id)) - newest for name, tag in state.tags.items()}
    tags_of = Counter(chain.from_iterable(of_tags.values()))
    sizes = sizes_of(lifetimes)
    rows = [holder("kept versions", None, version=None, sizes=sizes, paths=kept, exclusive=kept - tags_of.keys())]
    for name, paths in of_tags.items():
        alone = {path for path in paths - kept if tags_of[path] == 1}
        rows.append(holder("tag", name, version=state.tags[name].id, sizes=sizes, paths=paths, exclusive=alone))
    now = frozenset(freed.column("path").to_pylist())
    for name, number in sorted(state.consumers.items()):
        rest = {other: version for other, version in state.consumers.items() if other != name}
        further = paths_of(
            lifetimes, _freed_files(lifetimes, state.earliest, rule.end(state, rest), state.tags, unread)
        )
        reads = paths_of(lifetimes, (first <= latest) & (removed > number)) - newest
        row = holder("consumer", name, version=number, sizes=sizes, paths=reads, exclusive=further - now)
        expires = state.options.get("consumer.expiration-time")
        rows.append(row | {"note": f"writers drop it after {expires} without a sign of it" if expires else None})
    rows += [_branch(name, paths, freed) for name, paths in sorted(branches.items())]
    return pa.Table.from_pylist(rows, frames.HOLDERS)


def _branch(name: str, paths: frozenset[str] | str, freed: pa.Table) -> dict[str, object]:
    count = 0 if isinstance(paths, str) else len(paths.intersection(freed.column("path").to_pylist()))
    note = "expiry ignores branches; it would delete none of its files"
    if isinstance(paths, str):
        note = f"expiry ignores branches, and the files of this one are unknown: {paths}"
    elif count:
        note = f"expiry ignores branches: it would delete {count:,} files that this one uses"
    row = holder("branch", name, version=None, sizes={}, paths=(), exclusive=())
    return row | {"note": note}


def _notes(state: RetentionState, rule: _Rule) -> tuple[str, ...]:
    release, other = ("2.0", "1.x") if rule.by_next else ("1.x", "2.0")
    ends = [item.end(state, state.consumers) for item in (rule, replace(rule, by_next=not rule.by_next))]
    differs = f" {other} would keep all from version {ends[1]} on." if ends[0] != ends[1] else ""
    notes = [
        "Data files and changelog files are counted, from metadata. Manifests and index files are not listed.",
        f"By the rule of Paimon {release}, which wrote the newest version.{differs}",
    ]
    if any(name in state.options for name in _LONGER):
        notes.append(
            "The table has separate settings for changelogs (changelog.*): writers apply them when they expire "
            "snapshots, the command does not."
        )
    if parse_flag(state.options, "consumer.changelog-only"):
        notes.append("The table has consumer.changelog-only: writers apply it, the command does not.")
    return tuple(notes)


def _command_notes(name: str) -> tuple[str, ...]:
    zone = "The command reads older_than in the zone of its session; here it is UTC."
    if name.startswith("DATABASE."):
        return zone, "The path does not contain the database: replace DATABASE with its name."
    return (zone,)


def expire_commands(
    name: str, *, retain_max: int | None, retain_min: int, older_than: datetime, max_deletes: int
) -> tuple[tuple[str, str], ...]:
    """Return the name of each engine and its call.

    Args:
        name: The table in SQL.
        retain_max: The maximum number of versions to keep; None for the table's setting.
        older_than: Only older snapshots expire; written in UTC.
        max_deletes: The maximum number of snapshots that expire in one call.
    """
    arguments = [] if retain_max is None else [f"retain_max => {retain_max}"]
    arguments += [
        f"retain_min => {retain_min}",
        f"older_than => '{older_than:%Y-%m-%d %H:%M:%S}.{older_than.microsecond // 1000:03d}'",
    ]
    rest = ", ".join([*arguments, f"max_deletes => {max_deletes}"])
    return (
        ("Spark SQL", f"CALL sys.expire_snapshots(table => '{name}', {rest})"),
        ("Flink SQL", f"CALL sys.expire_snapshots(`table` => '{name.replace('`', '')}', {rest})"),
    )


def used_paths(
    listing: Callable[[int], Listing], files: Callable[[int], pa.Table], changes: Callable[[Sequence[int]], pa.Table]
) -> frozenset[str] | str:
    """Return the paths of the data files that any version of a branch uses, or the reason why they are unknown.

    Reads the files of the earliest version and of each version after a gap, and the changes of the others.
    """
    try:
        listed = listing(0)
        states = sorted(set(listed.versions).difference(listed.without_files))
        firsts = [version for version in states if version - 1 not in states]
        tables = [files(version) for version in firsts]
        rest = changes([version for version in states if version not in firsts])
    except UNREADABLE as error:
        return error.message
    tables.append(rest.filter(pc.equal(rest["change"], "add")))
    return frozenset(path for rows in tables for path in rows["path"].to_pylist())
