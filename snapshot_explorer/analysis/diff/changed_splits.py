"""The splits of two versions that can contain different rows. No data file is opened."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.records import PlannedPair, Predicate, Split
from snapshot_explorer.engines.scan import missing_files
from snapshot_explorer.formats import TableVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSplits:
    """The splits to read to find the rows that differ between a version A and a version B.

    All other splits are in both versions and have the same rows in both. Rows of `before` and `after` may still be
    equal: a compaction writes the same rows into other files.
    """

    before: tuple[Split, ...]
    """Splits for `a.read`: rows of A. A file that differs only in its deletion vector has the rows that B deletes."""
    after: tuple[Split, ...]
    """Splits for `b.read`: rows of B. A file that differs only in its deletion vector has the rows that A deletes."""
    shared_files: int
    """The number of data files that both versions have with the same rows. They are not read."""
    shared: tuple[Split, ...] = ()
    """The splits of B with these files; not listed for versions of one table."""


def changed_splits(
    a: TableVersion,
    b: TableVersion,
    *,
    where_a: Predicate | None = None,
    where_b: Predicate | None = None,
    columns: Sequence[tuple[str | None, str]] | None = None,
) -> ChangedSplits:
    """Return the splits of two versions that can contain different rows. Plans both versions; opens no data file.

    Args:
        where_a: A condition on the rows of `a`, in its column names: files in which no row can pass are left out. Rows
            that do not pass are not filtered.
        where_b: The same for `b`.
        columns: The columns that matter: the name of each in `a`, None if `a` lacks it, and the name in `b`. Files
            whose schemas differ only in other columns then count as the same. By default all columns matter, and no
            file is the same under two schemas.
    """
    planned = _planned_pair(a, b, where_a, where_b)
    differing = differing_splits(*planned.splits, a, b, columns=columns)
    return replace(differing, shared_files=differing.shared_files + planned.shared_files)


def _planned_pair(
    a: TableVersion, b: TableVersion, where_a: Predicate | None, where_b: Predicate | None
) -> PlannedPair:
    pair = a.row_identity.plan_pair(b.row_identity, (where_a, where_b))
    if pair is not None:
        return pair
    first, last = a.storage.together(lambda: a.plan(where_a), lambda: b.plan(where_b))
    return PlannedPair(splits=(first.splits, last.splits), shared_files=0)


def differing_splits(
    splits_a: Sequence[Split],
    splits_b: Sequence[Split],
    a: TableVersion,
    b: TableVersion,
    *,
    columns: Sequence[tuple[str | None, str]] | None = None,
) -> ChangedSplits:
    """Return the splits in which two planned versions can differ; see `changed_splits`. Reads nothing.

    Splits are compared as multisets of `Split.identity`: whole ones first, then file by file, because two versions may
    pack the same files into different splits.
    """
    total = sum(len(split.files) for split in splits_a)
    only_a, only_b = _unshared(splits_a, splits_b)
    files_a, files_b = _unshared(_by_file(only_a, a), _by_file(only_b, b))
    if columns is not None:
        files_a, files_b = _unshared_in(files_a, files_b, a, b, columns)
    shared = total - sum(len(split.files) for split in files_a)
    before, after = _without_shared_rows(files_a, files_b, a, b)
    return ChangedSplits(before=tuple(before), after=tuple(after), shared_files=shared)


def _unshared(left: Sequence[Split], right: Sequence[Split]) -> tuple[list[Split], list[Split]]:
    """Return the splits whose identity the other side lacks, as multisets, in order."""
    lefts, rights = ([split.identity for split in side] for side in (left, right))
    return _surplus(left, lefts, Counter(rights)), _surplus(right, rights, Counter(lefts))


def _unshared_in(
    left: list[Split], right: list[Split], a: TableVersion, b: TableVersion, columns: Sequence[tuple[str | None, str]]
) -> tuple[list[Split], list[Split]]:
    """Return the splits of files whose rows may differ in some columns, whatever their schemas."""
    if not (left and right):
        return left, right
    of_a, of_b = a.row_identity, b.row_identity
    absent = of_b.columns_added_since(of_a)
    lefts = [_unique_if_unknown(of_a.in_columns(split, [item for item, _ in columns], frozenset())) for split in left]
    rights = [_unique_if_unknown(of_b.in_columns(split, [item for _, item in columns], absent)) for split in right]
    return _surplus(left, lefts, Counter(rights)), _surplus(right, rights, Counter(lefts))


def _unique_if_unknown(identity: Hashable | None) -> Hashable:
    """Return the identity; for an unknown one a value that equals nothing else."""
    return object() if identity is None else identity


def _surplus(splits: Sequence[Split], identities: Sequence[Hashable], others: Counter[Hashable]) -> list[Split]:
    result = []
    for split, identity in zip(splits, identities, strict=True):
        if others[identity]:
            others[identity] -= 1
        else:
            result.append(split)
    return result


def _by_file(splits: Sequence[Split], version: TableVersion) -> list[Split]:
    return [part for split in splits for part in version.split_by_file(split)]


def _without_shared_rows(
    only_a: Sequence[Split], only_b: Sequence[Split], a: TableVersion, b: TableVersion
) -> tuple[Sequence[Split], Sequence[Split]]:
    """Return the splits. Splits that differ only in deletion vectors are reduced to the rows that these delete."""
    of_a, of_b = a.row_identity, b.row_identity
    partners: defaultdict[Hashable, list[Split]] = defaultdict(list)
    for split in only_b:
        partners[of_b.without_vector(split)].append(split)
    before: list[Split] = []
    after: list[Split] = []
    paired: set[int] = set()
    for split in only_a:
        key = of_a.without_vector(split)
        partner = partners[key].pop(0) if key is not None and partners.get(key) else None
        if partner is None:
            before.append(split)
            continue
        paired.add(id(partner))
        deleted, restored = of_a.rows_deleted(split, partner), of_b.rows_deleted(partner, split)
        before += [deleted] if deleted else []
        after += [restored] if restored else []
    after = [*(split for split in only_b if id(split) not in paired), *after]
    return before, after


def can_load(version: TableVersion) -> bool:
    """Return whether no data file of a version is missing, where a check is fast. Plans it; opens no data file."""
    try:
        return not missing_files(version.storage, version.plan(None).splits)
    except UNREADABLE:
        return False


def can_diff(a: TableVersion, b: TableVersion) -> bool:
    """Return whether all data files in which two versions differ exist, as `can_load`."""
    try:
        splits = changed_splits(a, b)
        return not missing_files(a.storage, splits.before) and not missing_files(b.storage, splits.after)
    except UNREADABLE:
        return False
