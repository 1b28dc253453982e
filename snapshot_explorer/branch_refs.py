"""Refs to versions of other branches, such as `branch:audit`: which table has them, and which history has two refs."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, Self, TypeVar

from snapshot_explorer.branches import PartedBranches
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.refs import MAIN, Earliest, OfBranch, Ref, Version, parse_range, parse_ref
from snapshot_explorer.snapshot import Snapshot

AnyRef = int | str | datetime | Ref

_MAX_NAMED = 20
"""Branches that a message names."""


class BranchTable(Protocol):
    """A table that is bound to a branch, and opens others."""

    name: str
    branch: str | None
    bound: TableFormat

    def at(self, ref: AnyRef) -> Snapshot:
        """Return the snapshot at a ref."""
        ...

    def at_each(self, *refs: Ref) -> Sequence[Snapshot]:
        """Return the snapshots at refs of its history."""
        ...

    def on_branch(self, name: str) -> Self:
        """Return the table bound to a branch."""
        ...

    def branch_names(self) -> Sequence[str]:
        """Return the names of all branches."""
        ...

    def tag_versions(self) -> Mapping[str, int]:
        """Return the version of each tag."""
        ...


T = TypeVar("T", bound=BranchTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides(Generic[T]):
    """Versions A and B, each in the history of a table."""

    a: T
    ref_a: Ref
    b: T
    """The table of B: the same object if one history has both."""
    ref_b: Ref

    def resolved(self) -> tuple[TableVersion, TableVersion]:
        """Return the versions."""
        if self.a is self.b:
            first, last = self.a.at_each(self.ref_a, self.ref_b)
            return first.resolved, last.resolved
        return self.a.at(self.ref_a).resolved, self.b.at(self.ref_b).resolved

    def parted(self, first: TableVersion, last: TableVersion) -> PartedBranches | None:
        """Return the branches of the two versions; None if one history has both."""
        if self.a is self.b or first.number is None or last.number is None:
            return None
        self.a.bound.check_comparable(self.b.bound, (first.number, last.number))
        shared = max(_shared_versions(self.a, self.b).items(), default=(None, None))
        return PartedBranches(
            name_a=branch_name(self.a),
            name_b=branch_name(self.b),
            format_a=self.a.bound,
            shared_a=shared[0],
            shared_b=shared[1],
        )


def branch_name(table: BranchTable) -> str:
    """Return the name of the branch that a table is bound to."""
    return table.branch or MAIN


def format_on_branch(table: BranchTable, name: str) -> TableFormat:
    """Return a table in its format, bound to another branch."""
    _check_has_branches(table)
    names = table.branch_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        raise SnapshotNotFoundError(
            f"The table has no branch {name!r}. Branches: {', '.join(names[:_MAX_NAMED])}{more}."
            + (f" Did you mean {OfBranch(name=near[0])}?" if near else "")
        )
    return table.bound.on_branch(name)


def in_branch(table: T, ref: AnyRef) -> tuple[T, Ref]:
    """Return the table bound to the branch that a ref names, or the table itself, and the ref in its history."""
    parsed = parse_ref(ref, tags=table.tag_versions, branches=table.branch_names)
    if not isinstance(parsed, OfBranch):
        return table, parsed
    _check_has_branches(table)
    if parsed.written and parsed.written in table.tag_versions():
        raise InvalidArgumentError(
            f"{parsed.written!r} is ambiguous: it is a tag as well as a branch. Write tag:{parsed.written} or "
            f"branch:{parsed.written}."
        )
    return table.on_branch(parsed.name), parsed.own_ref


def version_in_history(table: T, ref: AnyRef) -> int | None:
    """Return the version of a ref in the table's own history."""
    other, own_ref = in_branch(table, ref)
    version = other.at(own_ref).version
    if other is table or version is None:
        return version
    shared = _shared_versions(other, table)
    if version not in shared:
        raise SnapshotNotFoundError(
            f"{parse_ref(ref)} is version {version} of branch {branch_name(other)}, which branch {branch_name(table)} "
            f"does not have. Open that branch: open_table(path, branch={branch_name(other)!r})."
        )
    return shared[version]


def sides_of(table: T, a: AnyRef, b: AnyRef) -> Sides[T]:
    """Return two refs with the tables whose histories have them: one table if one history has both."""
    (table_a, ref_a), (table_b, ref_b) = in_branch(table, a), in_branch(table, b)
    if table_a is table_b or ref_a == Earliest():
        return Sides(a=table_b, ref_a=ref_a, b=table_b, ref_b=ref_b)
    version_a, version_b = table_a.at(ref_a).version, table_b.at(ref_b).version
    of_a, of_b = _shared_versions(table_a, table_b), _shared_versions(table_b, table_a)
    if version_a in of_a:
        return Sides(a=table_b, ref_a=Version(number=of_a[version_a]), b=table_b, ref_b=ref_b)
    if version_b in of_b:
        return Sides(a=table_a, ref_a=ref_a, b=table_a, ref_b=Version(number=of_b[version_b]))
    return Sides(a=table_a, ref_a=ref_a, b=table_b, ref_b=ref_b)


def one_history(table: T, *refs: AnyRef) -> tuple[T, Sequence[Ref]]:
    """Return the table whose history has these refs, at most two, and the refs in it."""
    if not refs:
        return table, ()
    if len(refs) == 1:
        result, ref = in_branch(table, refs[0])
        return result, (ref,)
    a, b = refs
    sides = sides_of(table, a, b)
    if sides.a is sides.b:
        return sides.a, (sides.ref_a, sides.ref_b)
    shared = max(_shared_versions(sides.b, sides.a), default=None)
    share = "They have no version in common" if shared is None else f"The newest version of both is {shared}"
    raise InvalidArgumentError(
        f"{parse_ref(a)} and {parse_ref(b)} are on two branches, and neither has both versions, so none lie between "
        f"them. {share}. Use a range of one branch, such as earliest..{parse_ref(b)}, or compare the two versions."
    )


def range_in_history(table: T, between: str | tuple[Ref, Ref] | None) -> tuple[T, tuple[Ref, Ref] | None]:
    """Return the table whose history has the range `A..B`, and the range there; the table itself without a range."""
    if between is None:
        return table, None
    bounds = between if isinstance(between, tuple) and len(between) == 2 else parse_range(between)  # noqa: PLR2004 - A, B
    result, (first, last) = one_history(table, *bounds)
    return result, (first, last)


def _check_has_branches(table: BranchTable) -> None:
    """Check that tables of the format have branches."""
    if table.bound.main_branch is None:
        raise InvalidArgumentError(
            f"{table.name} is a {table.bound.name.capitalize()} table, and this format has no branches. Use a version, "
            "such as 17, latest~2 or @2h."
        )


def _shared_versions(table: BranchTable, other: BranchTable) -> Mapping[Any, int]:
    return table.bound.shared_versions(other.bound)
