"""The request for a repair, and the checks before a statement is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.analysis.repair.spark_sql import is_key_type, qualified_name, spark_identifier
from snapshot_explorer.analysis.rows.duplicates import row_counts
from snapshot_explorer.core.errors import (
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.core.hints import Hint, Message, python_call, without_period
from snapshot_explorer.engines import local
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.history import CommitFilter, read_history, unread_commit_notes
from snapshot_explorer.history.overview import last_part
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snapshot_explorer.analysis.retention import Retention
    from snapshot_explorer.core.refs import RefLike
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.formats.interface import Repairs
    from snapshot_explorer.history import History

_CHAR = re.compile(r"\bchar\(", re.IGNORECASE)
ELSEWHERE = "Restore it in the engine that writes the table, or load the rows and write them there."


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    """The rows to put back, and the table that gets them."""

    source: History
    now: TableVersion
    """The newest version."""
    then: TableVersion
    """The version whose rows are put back; for a commit that is undone, the version before it."""
    undone: TableVersion | None = None
    """The commit that is undone, and no later one; None if all changes since `then` are undone."""
    where: str | None = None
    key: Sequence[str] | str | None = None
    engine_name: str | None = None
    """The table's name in the engine; None for the default."""
    retention: Callable[[], Retention] | None = None
    """Returns the effect of the table's own retention settings; None if no earlier version is read."""

    @property
    def of_rows(self) -> bool:
        """Whether rows are put back one by one; otherwise the table as a whole."""
        return self.where is not None or self.undone is not None

    @property
    def versions(self) -> tuple[TableVersion, ...]:
        """The versions whose rows are compared, the newest first."""
        if self.now is self.then:
            return (self.now,)
        return (self.now, self.then) if self.undone is None else (self.now, self.undone, self.then)

    @property
    def path(self) -> str:
        """The location of the table, without secrets."""
        return self.source.path

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.source.name

    @property
    def format(self) -> TableFormat:
        """The format, bound to the branch."""
        return self.source.format


def restored_version(
    at: Callable[[RefLike], TableVersion], to: RefLike | None, undone: TableVersion | None
) -> TableVersion:
    """Return the version whose rows are put back: `to`, or the version before a commit to undo.

    Args:
        at: Returns the version of a ref.

    Raises:
        InvalidArgumentError: Neither or both are passed.
        SnapshotNotFoundError: There is no such version.
    """
    if (to is None) == (undone is None):
        raise InvalidArgumentError(
            Message(
                "repair needs either the commit to undo, ",
                Hint("", {"undo": 10}),
                ", or the version to put back, ",
                Hint("", {"to": 9}),
                ", which undoes every later commit too.",
            )
        )
    if to is not None or undone is None:
        return at("latest" if to is None else to)
    try:
        return at(f"{undone.number}^")
    except SnapshotNotFoundError as error:
        raise SnapshotNotFoundError(
            Message(
                f"Version {undone.number} cannot be undone: what it changed is unknown, because the version before it "
                "does not exist. ",
                error,
            )
        ) from error


def repair_syntax(request: RepairRequest) -> Repairs:
    """Return how the format's connector repairs tables. Raises UnsupportedFeatureError if it has no such statements."""
    syntax = request.format.repairs
    if syntax is None or (syntax.time_travel is None and request.of_rows):
        statements = "statements" if syntax is None else "statements on rows"
        raise UnsupportedFeatureError(f"No {statements} are written for {request.format.title} tables. {ELSEWHERE}")
    if request.source.branch is not None:
        raise UnsupportedFeatureError(
            f"No statements are written for the branch {request.source.branch}, only for the main one. {ELSEWHERE}"
        )
    return syntax


def check_request(request: RepairRequest, syntax: Repairs) -> None:
    """Raise UnsupportedFeatureError if no statement is certain to be exact."""
    of_rows = request.of_rows
    obstacle = syntax.obstacle(request.now, of_rows=of_rows)
    if obstacle is not None:
        raise UnsupportedFeatureError(f"No statement is certain to put these rows back. {obstacle} {ELSEWHERE}")
    changed = _changed_columns(request)
    if changed and (of_rows or not syntax.restores_schema):
        whole = (" ", Hint("table.repair", {"to": request.then.number}), " restores the schema too.")
        also = f" It also undoes every later commit. {ELSEWHERE}" if request.undone is not None else ""
        raise UnsupportedFeatureError(
            Message(
                f"The schema changed since version {request.then.number}, so that its rows do not fit: "
                f"{', '.join(changed)}.",
                *((*whole, also) if syntax.restores_schema else ()),
            )
        )
    if syntax.restores_only_tags and request.then.number not in request.format.tags().values():
        raise UnsupportedFeatureError(
            f"Version {request.then.number} has no savepoint, and {request.format.title} restores only to savepoints. "
            f"Savepoints: {', '.join(map(str, sorted(request.format.tags().values()))) or 'none'}."
        )
    folded = [name.lower() for name in request.now.arrow_schema.names]
    if of_rows and len(set(folded)) < len(folded):
        raise UnsupportedFeatureError(f"Columns whose names differ only in case are one column for Spark. {ELSEWHERE}")


def _changed_columns(request: RepairRequest) -> list[str]:
    """Return the columns that a version lacks, or has with another id or type."""
    sides = []
    for version in request.versions:
        ids = version.field_ids
        sides.append({field.name: (field.type, ids.get(field.name)) for field in version.arrow_schema})
    now, *others = sides
    return sorted(name for name in set().union(*sides) if any(now.get(name) != side.get(name) for side in others))


def check_key(request: RepairRequest, key: Sequence[str]) -> None:
    """Raise InvalidArgumentError if a key does not identify the rows of each version. Reads its columns."""
    for version in request.versions:
        for name in key:
            dtype = version.arrow_schema.field(name).type
            if not is_key_type(dtype):
                raise UnsupportedFeatureError(
                    Message(
                        f"The key column {name} is {dtype}, whose values are not compared in the same way everywhere. "
                        "Choose another key, or ",
                        Hint("", {"key": []}),
                        " to replace whole rows.",
                    )
                )
        if version.schema.is_merged and frozenset(key) == frozenset(version.schema.primary_keys):
            continue
        names = ", ".join(key)
        rows = local.to_arrow(version, version.plan().splits, scan_of(version.arrow_schema, list(key), None))
        has_nulls = any(column.null_count for column in rows.columns)
        if has_nulls or len(row_counts(rows)) < len(rows):
            problem = "is null in rows" if has_nulls else "is the same in several rows"
            raise InvalidArgumentError(
                Message(
                    f"The key {names} {problem} of version {version.number}, so that rows cannot be put back by it. "
                    "Choose another key, or ",
                    Hint("", {"key": []}),
                    " to replace all rows that match.",
                )
            )


def name_in_engine(request: RepairRequest, syntax: Repairs) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parts of the table's name in the engine, and a note if the name is only assumed."""
    if request.engine_name is not None:
        return qualified_name(request.engine_name), ()
    if request.name != last_part(request.path):
        return qualified_name(request.name), ()  # opened by its name in a catalog
    if syntax.path_schema is not None:
        return (syntax.path_schema, request.path), ()
    name = spark_identifier(request.name)
    note = Message(
        f"{name} stands for the table's name in your catalog. Name it with ", Hint("", {"name": "shop.orders"}), "."
    )
    return (request.name,), (note,)


def with_settings(request: RepairRequest, written: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return statements after the settings that they need, and a note on them."""
    is_merge = any(statement.startswith("MERGE") for statement in written)
    settings = repair_syntax(request).settings(request.now, merges=is_merge)
    if not settings:
        return written, ()
    which = "statement changes a setting" if len(settings) == 1 else f"{len(settings)} statements change settings"
    result = "the MERGE fails" if is_merge else "rows are missed"
    note = f"The first {which} of the session, without which {result}."
    return (*(f"SET {setting}" for setting in settings), *written), (note,)


def texts_with_padding(request: RepairRequest) -> list[str]:
    """Return the columns that are or contain a CHAR, which Spark pads with spaces."""
    return [column.name for column in request.now.schema.columns if _CHAR.search(column.type)]


def check_texts(request: RepairRequest, where: Condition) -> None:
    """Raise UnsupportedFeatureError if a condition compares a column of type CHAR, which Spark pads."""
    padded = [name for name in texts_with_padding(request) if name in where.columns]
    if padded:
        raise UnsupportedFeatureError(
            f"The condition compares {', '.join(padded)} of type CHAR, which Spark pads with spaces. Name a key, or "
            "compare other columns."
        )


def time_travel(request: RepairRequest, syntax: Repairs, version: TableVersion) -> str:
    """Return the clause with which the engine reads a version, which has a number."""
    number = version.number
    identifier = None if number is None else request.source.commit(number).identifier
    return (syntax.time_travel or "").format(version=number, identifier=identifier)


def later_commits(request: RepairRequest, then: int) -> Frame:
    """Return the COMMITS since a version that changed data."""
    versions = [version for version in request.source.versions() if version > then]
    rows, unread = read_history(request.format, versions[::-1], CommitFilter(maintenance=False), None)
    return Frame(rows, title=f"Commits since version {then}", noun="commits", notes=unread_commit_notes(unread))


def same_version(now: int | None) -> str:
    """Return the note on the version that a plan was made at."""
    return f"The numbers hold while version {now} is the newest: after another commit, plan again."


def retention_notes(request: RepairRequest, then: int) -> tuple[str, ...]:
    """Return notes on the retention of a version."""
    if request.retention is None:
        return ()
    try:
        lost = request.retention().unloadable.to_arrow()["version"].to_pylist()
    except SnapshotExplorerError as error:
        return (Message(f"Whether a clean-up removes version {then} is unknown: ", without_period(error.message), "."),)
    return (f"The next clean-up by the table's own settings removes version {then}.",) if then in lost else ()


def call_of(request: RepairRequest, *, to: int | None = None, undo: int | None = None) -> str:
    """Return the Python call that plans a repair to a version, or the undoing of a commit."""
    return f"{request.source.open_expression}{python_call(hint_of(request, to=to, undo=undo)).removeprefix('table')}"


def hint_of(request: RepairRequest, *, to: int | None = None, undo: int | None = None) -> Hint:
    """Return the call that plans a repair to a version, or the undoing of a commit."""
    key = [request.key] if isinstance(request.key, str) else request.key
    arguments = {"to": to, "undo": undo, "where": request.where, "key": key, "name": request.engine_name}
    return Hint("table.repair", {name: value for name, value in arguments.items() if value is not None})
