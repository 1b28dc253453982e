"""Tables read together with one of their branches: partitions of the one, and of the other those that the first lacks.

Which of the two comes first is what the options `scan.fallback-branch` and `scan.primary-branch` say. Each is read
under its own schema and options. Only rows are read together: files, manifests and changes of a version are those of
its own branch, and `plan` tells what is read of both. A tag stands for its version here; Paimon looks the tag up in
both branches.

Source: paimon docs, "Manage Branches"; paimon FallbackReadFileStoreTable, compared with releases 1.4.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.features import refused
from snapshot_explorer.formats.paimon.metadata.contents import read_state
from snapshot_explorer.formats.paimon.metadata.data_types import DataType
from snapshot_explorer.formats.paimon.metadata.history import History
from snapshot_explorer.formats.paimon.metadata.layout import MAIN, Layout
from snapshot_explorer.formats.paimon.metadata.partitions import partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import Field, Schema, Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import Snapshot
from snapshot_explorer.formats.paimon.scan.plans import Plan
from snapshot_explorer.formats.paimon.scan.visibility import visible
from snapshot_explorer.model import ReadPlan, Split
from snapshot_explorer.storage import Storage

FALLBACK, PRIMARY = "scan.fallback-branch", "scan.primary-branch"
OPTIONS = frozenset((FALLBACK, PRIMARY))


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackLink:
    """The branch that a table is read together with."""

    branch: str
    """Its name."""
    is_first: bool
    """Whether its partitions count where both have one."""

    @property
    def option(self) -> str:
        """What says so, for messages."""
        return f"the option {PRIMARY if self.is_first else FALLBACK}={self.branch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReader:
    """One of two branches."""

    branch: str | None
    """Its name; None for the main one."""
    history: History
    """Its versions."""
    schemas: Schemas
    """Its schemas."""

    def schema(self, snapshot: Snapshot) -> Schema:
        """Return the schema of a version."""
        return self.schemas.by_id([snapshot.schema_id])[snapshot.schema_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedPartitions:
    """The partitions of the branch that comes first."""

    keys: frozenset[str]
    """Their values."""
    hidden: frozenset[str]
    """The values of those of whose files a batch read shows none."""
    texts: frozenset[tuple[tuple[str, str | None], ...]]
    """The same partitions as pairs of text."""


def plan(
    storage: Storage, here: BranchReader, snapshot: Snapshot, alone: Callable[[Schemas, Snapshot], ReadPlan]
) -> ReadPlan:
    """Return the plan of a version, together with what its newest options fall back on.

    Args:
        storage: The table's storage.
        here: The branch that is read.
        snapshot: The version.
        alone: Returns the plan of a version of one branch, given the branch's schemas.

    Raises:
        UnsupportedFeatureError: A feature is not read, or what Paimon reads is not certain.
    """
    link = beside(here)
    schemas = here.schemas.without(OPTIONS)
    if link is None:
        return alone(schemas, snapshot)
    there = _there(storage, link, snapshot.id)
    version = version_beside(snapshot, here.history, there.history, link)
    if version is None:
        return alone(schemas, snapshot)
    other = there.history.snapshots([version])[0]
    check_alike(here.schema(snapshot), there.schema(other), snapshot.id, link)
    sides = [(there, other), (here, snapshot)] if link.is_first else [(here, snapshot), (there, other)]
    first, its = sides[0]
    entries = read_state(storage, its, with_indexes=False).entries
    taken = partitions_taken(entries, first.schema(its), first.schemas.newest().options, snapshot.id)
    plans = [alone(side.schemas.without(OPTIONS), one) for side, one in sides]
    return joined(plans[0], plans[1], taken, snapshot.id, link)


def check_empty(storage: Storage, here: BranchReader) -> None:
    """Refuse the rows of a branch without versions that is read together with one that has some.

    Raises:
        UnsupportedFeatureError: It is; the message names the other branch.
    """
    link = beside(here)
    if link is not None and _there(storage, link, 0).history.newest().versions and not here.history.newest().versions:
        raise UnsupportedFeatureError(
            f"{storage.root} has no version here, but is read together with the branch {link.branch!r} "
            f"({link.option}), which has some. Open that branch."
        )


def beside(here: BranchReader) -> FallbackLink | None:
    """Return what a branch is read together with, None for nothing or itself. A fallback goes before a primary branch.

    Source: paimon FileStoreTableFactory.create.
    """
    options = here.schemas.newest().options
    fallback, primary = (options.get(name, "").strip() for name in (FALLBACK, PRIMARY))
    name = fallback or primary
    if not name or name == (here.branch or MAIN):
        return None
    return FallbackLink(branch=name, is_first=not fallback)


def _there(storage: Storage, link: FallbackLink, version: int) -> BranchReader:
    folders = {entry.name for entry in storage.list("branch") if entry.is_folder}
    if link.branch != MAIN and f"branch-{link.branch}" not in folders:
        raise refused(version, f"the branch {link.branch!r}, which is not there", link.option)
    layout = Layout(link.branch)
    return BranchReader(branch=layout.branch, history=History(storage, layout), schemas=Schemas(storage, layout))


def version_beside(snapshot: Snapshot, history: History, other: History, link: FallbackLink) -> int | None:
    """Return the version of the other branch that belongs to a version; None if the other has none at all.

    To the newest version belongs the other's newest. To an older one belongs what the other was when it was committed,
    or the other's version 1 if it had none then. Reads the hints, and for an older version all snapshots of the other.

    Raises:
        UnsupportedFeatureError: Paimon cannot read the version so, or which version belongs to it is not certain.

    Source: paimon FallbackReadFileStoreTable.rewriteOtherOptions, SnapshotManager.earlierOrEqualTimeMills.
    """
    if snapshot.held != "snapshot":
        raise refused(snapshot.id, "a branch beside a version that has expired and only a tag holds", link.option)
    if history.newest().versions[-1:] == (snapshot.id,):
        return next(iter(other.newest().versions[-1:]), None)
    found = [one for one in other.snapshots(other.all_from(0).versions) if one.held == "snapshot"]
    if not found:
        return None
    times = [one.committed_at for one in found]
    if times != sorted(times) or times.count(snapshot.committed_at) > 1:
        where = f"{link.option}, whose versions were committed at the same time or out of order"
        raise refused(snapshot.id, "a branch beside it as it was then", where)
    before = [one.id for one in found if one.committed_at <= snapshot.committed_at]
    if not before and found[0].id != 1:
        where = f"{link.option}, whose versions of that time have expired"
        raise refused(snapshot.id, "a branch beside it as it was then", where)
    return before[-1] if before else 1


def check_alike(mine: Schema, theirs: Schema, version: int, link: FallbackLink) -> None:
    """Refuse branches whose rows have other columns: Paimon takes them by their places, whatever they are called.

    Raises:
        UnsupportedFeatureError: The message names the first column that differs.
    """
    if mine.partition_keys != theirs.partition_keys or len(mine.fields) != len(theirs.fields):
        raise refused(version, "a branch of other columns or partition keys", link.option)
    for left, right in zip(mine.fields, theirs.fields, strict=True):
        if left.name != right.name or not _alike(left.type, right.type):
            raise refused(version, f"a branch of other columns, such as {right.name!r}", link.option)


def _alike(left: DataType, right: DataType) -> bool:
    """Return whether two types are equal but for nulls and the ids of fields."""
    if (left.root, left.length, left.precision, left.scale) != (right.root, right.length, right.precision, right.scale):
        return False
    parts = [(left.key, right.key), (left.element, right.element)]
    if any((one is None) != (other is None) or (one and other and not _alike(one, other)) for one, other in parts):
        return False
    pairs: list[tuple[Field, Field]] = list(zip(left.fields, right.fields, strict=False))
    return len(left.fields) == len(right.fields) and all(
        one.name == other.name and _alike(one.type, other.type) for one, other in pairs
    )


def partitions_taken(entries: pa.Table, schema: Schema, options: Mapping[str, str], version: int) -> ClaimedPartitions:
    """Return the partitions of live files."""
    keys, texts = _partitions(entries, schema)
    shown, _ = _partitions(entries.filter(visible(entries, schema, options, version)), schema)
    return ClaimedPartitions(keys=keys, hidden=keys - shown, texts=texts)


def _partitions(
    entries: pa.Table, schema: Schema
) -> tuple[frozenset[str], frozenset[tuple[tuple[str, str | None], ...]]]:
    found = partitions_of(entries.column("partition"), schema)
    values = found.values.to_pylist() if schema.partition_keys else [{}] * min(len(entries), 1)
    return frozenset(_key(row) for row in values), frozenset(tuple(text.items()) for text in found.texts)


def _key(values: Mapping[str, object]) -> str:
    return repr(list(values.values()))


def joined(first: ReadPlan, second: ReadPlan, taken: ClaimedPartitions, version: int, link: FallbackLink) -> ReadPlan:
    """Return one plan out of two: all of the first, and of the second the partitions that the first lacks.

    Args:
        first: The plan of the branch that comes first.
        second: That of the other.
        taken: The partitions of the first.
        version: For messages.
        link: For messages.

    Raises:
        UnsupportedFeatureError: Both have a partition of which the first shows nothing: releases differ over it.
    """
    keys = [_of_split(split) for split in second.splits]
    if not taken.hidden.isdisjoint(keys):
        raise refused(version, "partitions of a branch beside ones whose files wait for a compaction", link.option)
    more = tuple(split for split, key in zip(second.splits, keys, strict=True) if key not in taken.keys)
    # A row without a partition stands for several, which need not be of those that count.
    texts = second.skipped.column("partition").to_pylist()
    spared = [pairs is not None and tuple(pairs) not in taken.texts for pairs in texts]
    skipped = pa.concat_tables([first.skipped, second.skipped.filter(pa.array(spared, pa.bool_()))])
    return ReadPlan(splits=(*first.splits, *more), skipped=skipped)


def _of_split(split: Split) -> str:
    plan = split.detail
    if not isinstance(plan, Plan) or plan.partition is None:
        return _key({})
    return _key(plan.partition.to_pylist()[0])
