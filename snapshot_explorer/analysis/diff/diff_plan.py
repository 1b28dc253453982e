"""`RowDiffPlan`: the reads of a row diff, and the bound that metadata sets on its result. No data file is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns, align_columns, check_names
from snapshot_explorer.analysis.diff.changed_splits import changed_splits
from snapshot_explorer.analysis.diff.comparison_rules import EXACT, ComparisonRules
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.records import Gap, Split
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import format_size, format_utc, list_names, pluralize
from snapshot_explorer.engines.conditions import Condition, parse_condition
from snapshot_explorer.engines.scan import check_files
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.history import Divergence, call_text, open_expression
from snapshot_explorer.history.lifetimes import time_of
from snapshot_explorer.results import Frame


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two versions of a row diff, and the splits that are read from it."""

    version: TableVersion
    committed_at: datetime | None
    """When it was committed, aware, UTC; None if not recorded."""
    splits: tuple[Split, ...]
    branch: str | None = None
    """The branch of the version if the other version is on another branch; otherwise None."""
    table: str | None = None
    """The name of the version's table if the other version is of another table; otherwise None."""
    given: str | None = None
    """What was passed in place of a version, such as `pandas DataFrame`, or the path of files; None for a version."""

    @cached_property
    def unreadable(self) -> str | None:
        """Why the side cannot be read: a data file is missing. None also for many remote files, which are not checked.

        A request for each remote file.
        """
        try:
            check_files(self.version, self.splits)
        except (CorruptTableError, SnapshotNotFoundError) as error:
            return Message(f"{self.title[0].upper()}{self.title[1:]} cannot be read: ", error)
        return None

    @property
    def number(self) -> int | None:
        """The version's number."""
        return self.version.number

    @property
    def label(self) -> str:
        """The number, with the branch or the table if the other version is on another one."""
        branch = f" of branch {self.branch}" if self.branch else ""
        return f"{self.number}{branch}{f' of {self.table}' if self.table else ''}"

    @property
    def title(self) -> str:
        """The version with its number, or what was passed in place of one."""
        return f"version {self.label}" if self.given is None else self.given

    @property
    def files(self) -> int:
        """The number of data files that are read."""
        return len({path for split in self.splits for path in split.files})

    @property
    def rows(self) -> int | None:
        """The maximum number of rows to read, before merges and deletes; None if the metadata does not contain it."""
        known = [split.rows for split in self.splits]
        return None if None in known else sum(rows or 0 for rows in known)

    @property
    def size_bytes(self) -> int:
        """The bytes of the data files that are read."""
        return sum(split.size_bytes for split in self.splits)

    @property
    def reading(self) -> str:
        """What is read: files, rows and bytes; of rows in memory their number."""
        rows = pluralize(self.rows, "row")
        return f"{pluralize(self.files, 'file')}, {rows} and {format_size(self.size_bytes)}" if self.files else rows

    @property
    def named(self) -> str:
        """The version and its time, as display text."""
        if self.given is not None:
            return self.given
        time = "a time that was not recorded" if self.committed_at is None else format_utc(self.committed_at)
        separator = "," if self.branch or self.table else ""
        return f"version {self.label}{separator} of {time}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RowDiffPlan(Shown):
    """The plan of a row diff. Draws itself."""

    path: str
    """The table's location."""
    name: str
    """The table's name."""
    format: str
    """The table's format."""
    a: Side
    """The version to compare with."""
    b: Side
    """The version whose rows are explained."""
    key: tuple[str, ...]
    """The columns that identify a row; empty if whole rows are compared."""
    columns: tuple[str, ...]
    """The columns that are compared, the key included, in the order of B."""
    columns_only_a: tuple[str, ...]
    """Columns that A has and B lacks; they are not compared."""
    where: str | None
    """The condition on the rows of both versions."""
    shared_files: int
    """Data files that both versions have with the same rows; they are not read."""
    call: str
    aligned: AlignedColumns
    """The mapping between the columns of the versions."""
    condition: Condition | None
    is_declared_key: bool
    """Whether the key is the table's primary key, whose values are unique and not null."""
    gaps: tuple[Gap, ...] = ()
    """The versions between the two that are missing."""
    columns_only_b: tuple[str, ...] = ()
    """Columns of B that are not compared because A is another table and lacks them."""
    rules: ComparisonRules = EXACT
    """Which values count as equal."""
    conversions: tuple[str, ...] = ()
    """The columns that the versions store in different types, and the types in which they are compared."""
    partition_columns: tuple[str, ...] = ()
    """The partition columns of B that are compared."""
    proof: str | None = None
    """Sentences on what the metadata proves about the rows; None if it proves nothing."""
    partition_rows: pa.Table | None = None
    """PLANNED_PARTITIONS, for the preview of a diff of two tables; None if partitions are not compared."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that are compared, with the types in which they are compared."""
        return pa.schema([self.aligned.schema.field(name) for name in self.columns])

    @property
    def key_first(self) -> tuple[str, ...]:
        """The compared columns, key columns first: the order in which they are drawn."""
        return (*self.key, *(name for name in self.columns if name not in self.key))

    @property
    def most_deleted(self) -> int | None:
        """The maximum number of rows of A that can be deleted or updated; None if the metadata does not contain it."""
        return self.a.rows

    @property
    def most_inserted(self) -> int | None:
        """The maximum number of rows of B that can be inserted or updated; None if the metadata does not contain it."""
        return self.b.rows

    @property
    def size_bytes(self) -> int:
        """The bytes of the data files that are read of both versions."""
        return self.a.size_bytes + self.b.size_bytes

    @property
    def title(self) -> str:
        """The versions that are compared."""
        table = "" if self.a.table else f" of {self.name}"
        b = self.b.label if self.a.given is None and self.b.given is None else self.b.title
        return f"Row diff{table}: {self.a.title} to {b}"

    @property
    def announcement(self) -> str:
        """A sentence on the data to read; or the reason why it cannot be read."""
        unreadable = [side.unreadable for side in (self.a, self.b) if side.unreadable is not None]
        if unreadable:
            return " ".join(unreadable)
        sides = [f"{side.reading} of {side.title}" for side in (self.a, self.b)]
        proof = f"{self.proof} " if self.proof else ""
        shared = f" Not read: {pluralize(self.shared_files, 'file')} that both have." if self.shared_files else ""
        return f"{proof}Reads {', and '.join(sides)}.{shared}"

    @property
    def by_partition(self) -> Frame | None:
        """The size of the reads of each partition that both tables have, and the proofs about it.

        Only in the preview of a diff of two tables with a partition column in common; otherwise None.
        """
        if self.partition_rows is None:
            return None
        return Frame(self.partition_rows, title=f"{self.title}, by partition, not read", noun="partitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """The arguments of a row diff."""

    key: Sequence[str] | str | None = None
    """The columns that identify a row; None for the primary key, empty to compare whole rows."""
    columns: Sequence[str] | None = None
    """The columns to compare; None for all."""
    where: str | None = None
    """A condition in SQL."""
    branch: str | None = None
    """The branch of the table, for `RowDiffPlan.call`."""
    refs: tuple[str, str] | None = None
    """The refs of the versions for `RowDiffPlan.call`, if they are on two branches; otherwise it has their numbers."""
    name: str = ""
    """The name of the table, for titles."""


def plan_diff(
    path: str,
    table_format: TableFormat,
    a: TableVersion,
    b: TableVersion,
    request: DiffRequest,
    *,
    divergence: Divergence | None = None,
    are_adjacent: bool = False,
) -> RowDiffPlan:
    """Return the plan of the row diff of two versions. Plans both versions and lists the log; opens no data file.

    Args:
        divergence: The branches of the versions, if no history has both.
        are_adjacent: Whether no version between them is missing. The log is then not listed.
    """
    if a.number is None or b.number is None:
        raise SnapshotNotFoundError(f"{path} has no version yet: nothing has been committed to it.")
    a.storage.together(lambda: a.arrow_schema, lambda: b.arrow_schema)  # which both keep
    names = b.arrow_schema.names
    key = (request.key,) if isinstance(request.key, str) else request.key
    selected = check_names(request.columns, names, "columns")
    checked_key = None if key is None else check_names(key, names, "key") or ()
    where = None if request.where is None else parse_condition(request.where, b.arrow_schema)
    needed = (
        None
        if selected is None
        else [*selected, *(checked_key or b.schema.primary_keys), *(where.columns if where else ())]
    )
    columns = align_columns(a, b, needed)
    where = where and parse_condition(request.where or "", columns.schema)
    chosen_key = columns.primary_key if checked_key is None else checked_key
    _check_key(chosen_key, columns, a)
    compared = frozenset(names if selected is None else (*selected, *chosen_key))
    read = [name for name in names if name in compared or (where is not None and name in where.columns)]
    numbers = a.number, b.number
    time_a, time_b, gaps, differing = a.storage.together(
        lambda: time_of(divergence.format_a if divergence else table_format, numbers[0]),
        lambda: time_of(table_format, numbers[1]),
        lambda: () if divergence or are_adjacent else table_format.listing(0).gaps_between(*sorted(numbers)),
        lambda: changed_splits(
            a,
            b,
            where_a=predicate_of(where, columns, a, of_a=True),
            where_b=predicate_of(where, columns, b, of_a=False),
            columns=[(columns.names_a.get(name), name) for name in read],
        ),
    )
    branches = (divergence.name_a, divergence.name_b) if divergence else (None, None)
    return RowDiffPlan(
        path=path,
        name=request.name,
        format=table_format.name,
        a=_side(a, time_a, differing.before, branches[0]),
        b=_side(b, time_b, differing.after, branches[1]),
        key=tuple(name for name in names if name in chosen_key),
        columns=tuple(name for name in names if name in compared),
        columns_only_a=columns.only_a if selected is None else (),
        where=request.where,
        shared_files=differing.shared_files,
        call=_call(path, request, numbers),
        aligned=columns,
        condition=where,
        is_declared_key=frozenset(chosen_key) == frozenset(columns.primary_key),
        gaps=gaps,
        partition_columns=tuple(name for name in b.schema.partition_keys if name in compared),
    )


def _side(version: TableVersion, committed_at: datetime | None, splits: Sequence[Split], branch: str | None) -> Side:
    return Side(version=version, committed_at=committed_at, splits=tuple(splits), branch=branch)


def _check_key(key: Sequence[str], columns: AlignedColumns, a: TableVersion) -> None:
    for name in key:
        if name not in columns.names_a:
            raise InvalidArgumentError(
                f"The key column {name!r} does not exist at version {a.number}, so it cannot identify its rows. "
                f"Columns that both versions have: {list_names(list(columns.names_a))}."
            )


def predicate_of(
    where: Condition | None, columns: AlignedColumns, version: TableVersion, *, of_a: bool
) -> Condition | None:
    """Return the condition as a predicate on files of a version; None if it does not apply to the version's columns."""
    if where is None:
        return None
    schema = version.arrow_schema
    for name in where.columns:
        own = columns.names_a.get(name) if of_a else name
        if own != name or schema.field(name).type != columns.schema.field(name).type:
            return None
    return parse_condition(where.text, schema)


def _call(path: str, request: DiffRequest, numbers: tuple[int, int]) -> str:
    key = [request.key] if isinstance(request.key, str) else request.key
    key, columns = (None if names is None else list(names) for names in (key, request.columns))
    call = call_text("diff_rows", *(request.refs or numbers), key=key, columns=columns, where=request.where)
    return f"{open_expression(path, request.branch)}.{call}"
