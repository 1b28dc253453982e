"""Fallback branches: a read returns the partitions of one branch, and from a second branch the partitions it lacks.

The options `scan.fallback-branch` and `scan.primary-branch` define which branch comes first. Each is read under its
own schema and options. Only rows are combined: files, manifests and changes of a version come from its own branch, and
`plan` returns the splits of both. A tag refers to the version of this branch; Paimon resolves the tag in both.

Source: paimon docs, "Manage Branches"; paimon FallbackReadFileStoreTable, compared with releases 1.4.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from snapshot_explorer.core.records import ReadPlan, Split
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.files import evolution
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.contents import read_state
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import MAIN, Layout
from snapshot_explorer.formats.paimon.metadata.manifests import FILE_COLUMNS
from snapshot_explorer.formats.paimon.metadata.partitions import partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.metadata.supported import FALLBACK, PRIMARY
from snapshot_explorer.formats.paimon.scan.plans import PaimonPlan
from snapshot_explorer.formats.paimon.scan.visibility import is_included
from snapshot_explorer.storage import Storage

_MAX_GUESSES = 4
"""The maximum number of branches whose hints are read before the options are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackLink:
    """The other branch of a combined read."""

    branch: str
    is_first: bool
    """Whether its partitions take precedence."""

    @property
    def option(self) -> str:
        """The option that defines it, for messages."""
        return f"the option {PRIMARY if self.is_first else FALLBACK}={self.branch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedPartitions:
    """The partitions of the first branch."""

    keys: frozenset[str]
    hidden: frozenset[str]
    """The values of partitions that a batch read skips."""
    texts: frozenset[tuple[tuple[str, str | None], ...]]
    """The same partitions as pairs of text."""


def plan(
    own: BranchMetadata,
    snapshot: PaimonSnapshot,
    plan_branch: Callable[[Schemas, PaimonSnapshot], ReadPlan],
    hints: Mapping[str, bytes | None],
) -> ReadPlan:
    """Return the plan of a version, combined with the branch in its newest options.

    Args:
        plan_branch: Returns the plan of a version of one branch, given the branch's schemas.
        hints: The hints of branches that were read early, by name.
    """
    storage, link = own.storage, fallback_link(own, snapshot.schema_id)
    if link is None:
        return plan_branch(own.schemas, snapshot)
    other_branch = BranchMetadata.of(storage, link.branch).pinned()
    other_branch.history.expect(hints.get(link.branch))
    _, version = storage.together(
        partial(_check_exists, storage, link, snapshot.id),
        partial(fallback_version, storage, snapshot, own.history, other_branch.history, link),
    )
    if version is None:
        return plan_branch(own.schemas, snapshot)
    other = other_branch.history.snapshots([version])[0]
    sides = [(other_branch, other), (own, snapshot)] if link.is_first else [(own, snapshot), (other_branch, other)]
    first, its = sides[0]
    plans = [partial(plan_branch, side.schemas, item) for side, item in sides]
    _, state, first_plan, second_plan = storage.together(
        lambda: check_same_columns(own.schema(snapshot), other_branch.schema(other), snapshot.id, link),
        partial(read_state, storage, its, with_indexes=False, columns=FILE_COLUMNS),
        plans[0],
        plans[1],
    )
    claimed = claimed_partitions(state.entries, first.schema(its), first.schemas.newest().options, snapshot.id)
    return combine_plans(first_plan, second_plan, claimed, snapshot.id, link)


def early_hints(own: BranchMetadata) -> dict[str, bytes | None]:
    """Return the hints of the branches that existed when the table was opened: the options may name one of them.

    Empty if there are more than a few branches.
    """
    branches = own.history.branches_seen
    if len(branches) > _MAX_GUESSES:
        return {}
    paths = [Layout(branch).hint("snapshot", "LATEST") for branch in branches]
    return dict(zip(branches, own.storage.read_present(paths), strict=True))


def check_empty(own: BranchMetadata) -> None:
    """Raise if a branch has no versions, but the branch it is combined with has some."""
    storage, link = own.storage, fallback_link(own)
    if link is None:
        return
    _check_exists(storage, link, 0)
    if BranchMetadata.of(storage, link.branch).history.newest().versions and not own.history.newest().versions:
        raise refusal(features.EMPTY_BRANCH, root=storage.root, branch=link.branch, option=link.option)


def fallback_link(own: BranchMetadata, existing: int = 0) -> FallbackLink | None:
    """Return the other branch of a combined read, or None. A fallback precedes a primary branch.

    Source: paimon FileStoreTableFactory.create.
    """
    options = own.schemas.newest(existing).options
    fallback, primary = (options.get(name, "").strip() for name in (FALLBACK, PRIMARY))
    name = fallback or primary
    if not name or name == own.name:
        return None
    return FallbackLink(branch=name, is_first=not fallback)


def _check_exists(storage: Storage, link: FallbackLink, version: int) -> None:
    folders = {entry.name for entry in storage.list("branch") if entry.is_folder}
    if link.branch != MAIN and f"branch-{link.branch}" not in folders:
        raise refusal(features.ABSENT_BRANCH, version=version, branch=link.branch, option=link.option)


def fallback_version(
    storage: Storage, snapshot: PaimonSnapshot, history: PaimonHistory, other: PaimonHistory, link: FallbackLink
) -> int | None:
    """Return the version of the other branch to combine with a version; None if the other has no versions.

    The newest version is combined with the other's newest. An older one is combined with the other's version at its
    commit time, or version 1 if there was none. Reads the hints, and for an older version all snapshots of the other.

    Source: paimon FallbackReadFileStoreTable.rewriteOtherOptions, SnapshotManager.earlierOrEqualTimeMills.
    """
    if snapshot.file_kind != "snapshot":
        raise refusal(features.EXPIRED_VERSION_WITH_BRANCH, version=snapshot.id, option=link.option)
    own_newest, other_newest = storage.together(history.newest, other.newest)
    if own_newest.versions[-1:] == (snapshot.id,):
        return next(iter(other_newest.versions[-1:]), None)
    snapshots = [item for item in other.snapshots(other.all_from(0).versions) if item.file_kind == "snapshot"]
    if not snapshots:
        return None
    times = [item.committed_at for item in snapshots]
    if times != sorted(times) or times.count(snapshot.committed_at) > 1:
        reason = "whose versions were committed at the same time or out of order"
        raise refusal(features.AMBIGUOUS_BRANCH_VERSION, version=snapshot.id, option=link.option, reason=reason)
    before = [item.id for item in snapshots if item.committed_at <= snapshot.committed_at]
    if not before and snapshots[0].id != 1:
        reason = "whose versions of that time have expired"
        raise refusal(features.AMBIGUOUS_BRANCH_VERSION, version=snapshot.id, option=link.option, reason=reason)
    return before[-1] if before else 1


def check_same_columns(schema: PaimonSchema, other: PaimonSchema, version: int, link: FallbackLink) -> None:
    """Raise if the columns of two branches differ: Paimon matches them by position, whatever their names."""
    if schema.partition_keys != other.partition_keys or len(schema.fields) != len(other.fields):
        raise refusal(features.OTHER_BRANCH_COLUMNS, version=version, option=link.option, what=" or partition keys")
    for left, right in zip(schema.fields, other.fields, strict=True):
        if left.name != right.name or not evolution.same(left.type, right.type, with_ids=False):
            raise refusal(
                features.OTHER_BRANCH_COLUMNS, version=version, option=link.option, what=f", such as {right.name!r}"
            )


def claimed_partitions(
    entries: pa.Table, schema: PaimonSchema, options: Mapping[str, str], version: int
) -> ClaimedPartitions:
    """Return the partitions of live files."""
    keys, texts = _partitions(entries, schema)
    shown, _ = _partitions(entries.filter(is_included(entries, schema, options, version)), schema)
    return ClaimedPartitions(keys=keys, hidden=keys - shown, texts=texts)


def _partitions(
    entries: pa.Table, schema: PaimonSchema
) -> tuple[frozenset[str], frozenset[tuple[tuple[str, str | None], ...]]]:
    partitions = partitions_of(entries.column("partition"), schema)
    values = partitions.values.to_pylist() if schema.partition_keys else [{}] * min(len(entries), 1)
    return frozenset(_key(row) for row in values), frozenset(tuple(text.items()) for text in partitions.texts)


def _key(values: Mapping[str, object]) -> str:
    return repr(list(values.values()))


def combine_plans(
    first: ReadPlan, second: ReadPlan, claimed: ClaimedPartitions, version: int, link: FallbackLink
) -> ReadPlan:
    """Return the combined plan: the first branch's splits, and the second's for partitions that the first lacks."""
    keys = [_of_split(split) for split in second.splits]
    if not claimed.hidden.isdisjoint(keys):
        raise refusal(features.HIDDEN_BRANCH_PARTITIONS, version=version, option=link.option)
    more = tuple(split for split, key in zip(second.splits, keys, strict=True) if key not in claimed.keys)

    def skipped() -> pa.Table:
        # A row without a partition stands for several partitions, which may not be part of the result.
        others = second.skipped()
        kept = [pairs is not None and tuple(pairs) not in claimed.texts for pairs in others["partition"].to_pylist()]
        return pa.concat_tables([first.skipped(), others.filter(pa.array(kept, pa.bool_()))])

    return ReadPlan(splits=(*first.splits, *more), skipped=skipped)


def _of_split(split: Split) -> str:
    plan = split.detail
    if not isinstance(plan, PaimonPlan) or plan.partition is None:
        return _key({})
    return _key(plan.partition.to_pylist()[0])
