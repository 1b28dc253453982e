"""`LakeTrace`: the rows of a condition in all tables of a lake, in files that no version names, and in shared files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.checks import matches
from snapshot_explorer.analysis.given import read_plain_file
from snapshot_explorer.analysis.repair import ErasureStatements, erasure_statements
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import format_utc, list_names, pluralize
from snapshot_explorer.engines.conditions import condition_names, parse_condition, with_names
from snapshot_explorer.engines.duckdb_ast import find_column
from snapshot_explorer.history import history_of
from snapshot_explorer.history.lifetimes import fingerprint_of
from snapshot_explorer.lake.certificate_documents import Document, hidden_condition, write_document
from snapshot_explorer.lake.names import find_by_name
from snapshot_explorer.lake.threads import concurrently
from snapshot_explorer.results import Frame, non_empty_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    from snapshot_explorer.analysis.rows import Trace
    from snapshot_explorer.history import History
    from snapshot_explorer.lake.tables import LakeTable
    from snapshot_explorer.table import Table

FOUND, ABSENT, NO_COLUMN, UNKNOWN = "found", "absent", "no column", "unknown"
OUTCOMES = (FOUND, UNKNOWN, ABSENT, NO_COLUMN)
"""The outcomes, in the order of the rows."""
ColumnNames = Mapping[str, str | Mapping[str, str]]
_AT_ONCE = 4
"""Tables whose files are read at the same time. Each is read in threads by itself."""
_WITHOUT_VALUES = (".crc", "/_SUCCESS")
"""The ends of names of files without values of rows: checksums of Hadoop, marks of finished jobs."""
_HIDDEN = "Left out together with the condition."


@dataclass(slots=True, kw_only=True)
class _Traced:
    """What is known about one table."""

    name: str
    condition: str | None = None
    """The condition with the table's own names; None if no version has the columns."""
    table: Table | None = None
    trace: Trace | None = None
    unnamed: list[dict[str, object]] = field(default_factory=list)
    """LAKE_TRACED_FILES of this table."""
    open_questions: list[str] = field(default_factory=list)
    """What was not examined, a sentence each."""
    shares_with: list[str] = field(default_factory=list)
    """Tables whose files with matching rows this one names, too."""

    @property
    def unnamed_with_rows(self) -> int:
        """The number of files with matching rows that no version names."""
        return sum(bool(row["rows"]) for row in self.unnamed)

    @property
    def outcome(self) -> str:
        """A word of OUTCOMES."""
        if self.unnamed_with_rows or (self.trace is not None and self.trace.is_found):
            return FOUND
        if self.open_questions or self.shares_with:
            return UNKNOWN
        return NO_COLUMN if self.condition is None else ABSENT

    def leave_open(self, what: str, error: SnapshotExplorerError) -> None:
        """Add what was not examined, and why."""
        self.open_questions.append(f"{what}: {without_period(str(error))}.")

    def row(self) -> dict[str, object]:
        """Return the row of LAKE_TRACE."""
        trace, table = self.trace, self.table
        none = 0 if self.outcome == NO_COLUMN else None
        return {
            "name": self.name,
            "outcome": self.outcome,
            "condition": self.condition,
            "versions": sum(bool(version.rows) for _, version in trace.traced_versions) if trace else none,
            "stored_files": trace.stored_files if trace else none,
            "unnamed_files": self.unnamed_with_rows if trace else None,
            "shares_with": self.shares_with or None,
            "holds": trace.holds if trace and trace.is_found else None,
            "open_questions": " ".join(self.open_questions) or None,
            "newest_version": None if table is None else table.current.version,
            "digest": trace.digest if trace else None,
            "format": None if table is None else table.format,
            "path": None if table is None else table.path,
        }


class LakeTrace(Shown):
    """The rows of a condition in the tables of a lake, and what was not examined. Displays itself."""

    def __init__(self, traced: Sequence[_Traced], *, lake: str, where: str, columns: ColumnNames, at: datetime) -> None:
        """Sum up the tables. Use `Lake.trace` to get one."""
        self.name, self.where, self.columns = lake, where, columns
        self.examined_at = at
        """When the examination began, aware, UTC."""
        traced = sorted(traced, key=lambda item: (OUTCOMES.index(item.outcome), item.name))
        rows = pa.Table.from_pylist([item.row() for item in traced], frames.LAKE_TRACE)
        self.tables = Frame(
            rows,
            title=f"Tables of {lake} and rows where {where}",
            noun="tables",
            drawn=non_empty_columns(rows, exclude=("digest", "open_questions", "holds")),
            limit=len(rows),
        )
        """LAKE_TRACE: every table, those with matching rows first, then those that could not be examined whole."""
        unnamed = [{"name": item.name, **row} for item in traced for row in item.unnamed]
        files = pa.Table.from_pylist(unnamed, frames.LAKE_TRACED_FILES)
        self.files = Frame(files, title="Files that no version names", noun="files")
        """LAKE_TRACED_FILES: every file that no version of its table names, and may have rows."""
        self.traces: Mapping[str, Trace] = {item.name: item.trace for item in traced if item.trace is not None}
        """The result of `Table.trace` for each table that was traced, by name."""
        self.opened: Mapping[str, Table] = {item.name: item.table for item in traced if item.table is not None}
        """The tables that could be opened, by name."""
        unsearched = {
            f"in {table_format.title} tables {table_format.maintenance.unsearched_values}"
            for table_format in (history_of(table).format for table in self.opened.values())
            if table_format.maintenance.unsearched_values
        }
        self.notes = (
            f"Not looked at: {'; '.join([*sorted(unsearched), 'copies outside of this lake'])}.",
            (
                "Files that no version names are read in tables that have the columns now. Where these have other "
                "names, columns={TABLE: NAME} says which."
            ),
        )
        """Sentences on what is never looked at."""
        open_questions = any(item.open_questions for item in traced)
        self.is_complete = UNKNOWN not in rows["outcome"].to_pylist() and not open_questions
        """Whether every table was examined whole, apart from `notes`."""

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        rows = self.tables.to_arrow().to_pylist()
        names = {outcome: [row["name"] for row in rows if row["outcome"] == outcome] for outcome in OUTCOMES}
        whole = "" if self.is_complete else " Not all could be examined whole, so this proves no absence elsewhere."
        if names[FOUND]:
            verb = "has" if len(names[FOUND]) == 1 else "have"
            of_all = f"{len(names[FOUND]):,} of {pluralize(len(rows), 'table')}"
            return f"{of_all} {verb} matching rows: {list_names(names[FOUND])}.{whole}"
        if not self.is_complete:
            open_names = list_names(names[UNKNOWN])
            found = "No matching row was found, but not everything could be examined"
            return f"{found}: {open_names}. This proves nothing."
        examined, without = (pluralize(len(names[outcome]), "table") for outcome in (ABSENT, NO_COLUMN))
        return f"No version and no file of {examined} has a matching row; {without} never had the columns."

    @property
    def digest(self) -> str:
        """SHA-256, as hexadecimal text, of the request and of all results, without the time."""
        # What holds the rows says until when, which depends on the time.
        tables = self.tables.to_arrow().drop_columns(["holds"])
        content = [self.where, tables.to_pylist(), self.files.to_arrow().to_pylist()]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    def certificate(
        self,
        path: str | PathLike[str],
        *,
        hide_condition: bool = False,
        key: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the result as one JSON document, and return its path; `verify_certificate` examines the lake again.

        It has the condition, the time, the verdict, and of each table the outcome, its evidence and its digest, the
        newest version with the identity of its commit, what keeps the rows, and what was not examined.
        `report(path, trace)` writes the same for people, as a page to print.

        Args:
            path: The file, on the local disk, outside of any table.
            hide_condition: Whether to write only a salted hash of the condition, and no message that may quote it.
                Paths stay, in which partitions have values. A reader who has the condition can verify the document; a
                short one can be guessed.
            key: A file with an Ed25519 key in PEM, which signs the document. Needs cryptography.
            overwrite: Whether to replace an existing file.

        Raises:
            InvalidArgumentError: The file exists or is in a table, or the key cannot be used.
            MissingDependencyError: A key is given, and cryptography is not installed.
        """
        return write_document(self._document(hide_condition=hide_condition), path, key=key, overwrite=overwrite)

    def statements(self, names: Mapping[str, str] | None = None) -> ErasureStatements:
        """Return the statements with which engines erase the rows from each table that has them. Nothing is run.

        They delete the rows, rewrite files that store them, drop tags and branches that keep them, expire all other
        versions, and delete unused files: earlier versions can no longer be read. Trace again afterwards.

        Args:
            names: The names of tables in their engine, by their names in the lake: `{"orders": "shop.orders"}`.

        Raises:
            InvalidArgumentError: `names` is not such a dict.
            TableNotFoundError: It names a table that was not traced.
        """
        rows = self.tables.to_arrow().to_pylist()
        given: object = {} if names is None else names
        if not isinstance(given, Mapping) or not all(isinstance(own, str) for own in given.values()):
            raise InvalidArgumentError(f"names is a dict such as {{'orders': 'shop.orders'}}, got {brief_repr(given)}.")
        tables = {row["name"]: row["name"] for row in rows}
        own_names = {find_by_name(name, tables, self.name): own for name, own in given.items()}
        statements, engines = {}, {}
        notes, assumed = [], []
        for row in rows:
            name, trace = row["name"], self.traces.get(row["name"])
            if row["shares_with"]:
                others = list_names(row["shares_with"])
                notes.append(f"{name} was not traced, and needs files of {others}: erase its rows before those.")
            elif row["outcome"] == UNKNOWN:
                notes.append(f"{name} may have such rows: not everything of it could be examined.")
            if row["outcome"] != FOUND or trace is None:
                continue
            try:
                statements[name], is_assumed = erasure_statements(trace, row["newest_version"], own_names.get(name))
            except SnapshotExplorerError as error:
                notes.append(Message(f"No statements for {name}: ", error))
                continue
            is_spark = trace.source.format.repairs is not None
            engines[name] = "Spark SQL" if is_spark else "DuckDB, with the catalog as lake"
            assumed += [name] if is_assumed else []
        if assumed:
            named = "write yours in their place, or call statements(names={'orders': 'shop.orders'})"
            notes.append(f"Names in your catalog are unknown, and assumed for {list_names(assumed)}: {named}.")
        return ErasureStatements(where=self.where, statements=statements, engines=engines, notes=notes)

    def _document(self, *, hide_condition: bool) -> Document:
        tables, files = self.tables.to_arrow().to_pylist(), self.files.to_arrow().to_pylist()
        for row in tables:
            row["commit"] = commit_of(self.opened.get(row["name"]), row["newest_version"])
        if hide_condition:  # texts on what was not examined may quote it
            tables = [row | {"condition": None, "open_questions": row["open_questions"] and _HIDDEN} for row in tables]
            files = [row | {"reason": row["reason"] and _HIDDEN} for row in files]
        return {
            "lake": self.name,
            **(hidden_condition(self.where) if hide_condition else {"where": self.where}),
            "columns": dict(self.columns),
            "examined_at": format_utc(self.examined_at),
            "verdict": self.verdict,
            "is_complete": self.is_complete,
            "tables": tables,
            "files_that_no_version_names": files,
            "not_looked_at": list(self.notes),
        }

    @property
    def call(self) -> str:
        """The Python that returns the same."""
        columns = f", columns={dict(self.columns)!r}" if self.columns else ""
        return f"open_lake({self.name!r}).trace({self.where!r}{columns})"


def commit_of(table: Table | None, version: int | None) -> str | None:
    """Return the identity of a version's commit; None if it cannot be read."""
    return None if table is None or version is None else fingerprint_of(history_of(table).format, version) or None


def trace_tables(name: str, tables: Sequence[LakeTable], where: str, columns: ColumnNames) -> LakeTrace:
    """Return the rows of a condition in all tables of a lake; see `Lake.trace`."""
    names = condition_names(where)
    if not names:
        raise InvalidArgumentError(f"The condition {where!r} names no column. Name one, such as customer_id = 42.")
    own_columns = _own_columns(columns, names, name, [table.name for table in tables])
    at = datetime.now(UTC)

    def work(entry: LakeTable) -> _Traced:
        return _traced(entry, with_names(where, own_columns[entry.name]))

    traced = []
    for entry, result in concurrently(tables, work, what="Tracing rows", threads=_AT_ONCE):
        if isinstance(result, SnapshotExplorerError):
            traced.append(_Traced(name=entry.name))
            traced[-1].leave_open("It could not be read", result)
        else:
            traced.append(result)
    _add_shared(traced)
    return LakeTrace(traced, lake=name, where=where, columns=columns, at=at)


def _own_columns(columns: object, names: frozenset[str], lake: str, tables: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return what the condition's columns are called in each table; the last pattern that matches it counts."""
    if not isinstance(columns, Mapping):
        raise InvalidArgumentError(f"columns is a dict such as {{'crm.*': 'cust_no'}}, got {brief_repr(columns)}.")
    result: dict[str, dict[str, str]] = {table: {} for table in tables}
    for pattern, own in columns.items():
        if not all(isinstance(name, str) for name in (pattern, *(own.values() if isinstance(own, Mapping) else [own]))):
            raise InvalidArgumentError(
                f"columns has patterns of tables and names of columns as text, got {pattern!r}: {brief_repr(own)}."
            )
        matching = [table for table in tables if matches(table, pattern)]
        if not matching:
            raise InvalidArgumentError(f"columns names {pattern!r}, and no table of {lake} is called so.")
        if isinstance(own, str) and len(names) > 1:
            raise InvalidArgumentError(
                f"The condition has {len(names)} columns, so that columns[{pattern!r}] must say which of them is "
                f"called {own!r}: {{{min(names)!r}: {own!r}}}."
            )
        mapped = dict.fromkeys(names, own) if isinstance(own, str) else dict(own)
        if unknown := mapped.keys() - names:
            raise InvalidArgumentError(
                f"columns[{pattern!r}] names {min(unknown)!r}, which is not in the condition. Its columns: "
                f"{', '.join(sorted(names))}."
            )
        result |= dict.fromkeys(matching, mapped)
    return result


def _traced(entry: LakeTable, where: str) -> _Traced:
    """Return what is known about a table whose condition has its own names."""
    table = entry.open()
    result = _Traced(name=entry.name, table=table, condition=where)
    names, schema = condition_names(where), table.current.arrow_schema
    lacking = sorted(name for name in names if find_column(name, schema) is None)
    if lacking:
        having = list(_versions_with(names, history_of(table), result))
        if having:
            result.open_questions.append(
                f"Its newest version has no column {lacking[0]}, but columns of the condition are in "
                f"{'; '.join(having)}: their values were not examined."
            )
        else:
            result.condition = None
        return result
    if table.current.version is None:
        parse_condition(where, schema)
    else:
        result.trace = table.trace(where)
        if not result.trace.is_complete:  # otherwise notes are about the future
            questions = [*map(str, result.trace.unknown_reasons), *map(str, result.trace.notes)]
            result.open_questions += questions or ["Not every file could be examined; see traces."]
    _read_unnamed(table, where, names, result)
    return result


def _versions_with(names: frozenset[str], past: History, result: _Traced) -> Iterator[str]:
    """Yield which versions of each branch have a column of one of these names, in words."""
    folded = {name.lower() for name in names}
    branches = past.format.branches
    for branch in (None, *branches.names(), *branches.detached_heads()):
        where = "" if branch is None else f" of {branch}"
        try:
            own = past if branch is None else past.on_branch(branch)
            numbers = own.listing.reachable
            schemas = own.schemas(numbers)
        except SnapshotExplorerError as error:
            result.leave_open(f"The columns of its versions{where} could not be read", error)
            continue
        having = [
            number
            for number, schema in zip(numbers, schemas, strict=True)
            if not folded.isdisjoint(column.name.lower() for column in schema.columns)
        ]
        if having:
            yield f"{runs_text(runs_of(having))}{where}"


def _read_unnamed(table: Table, where: str, names: frozenset[str], result: _Traced) -> None:
    """Add the files that no version names, each with its matching rows."""
    past, like = history_of(table), table.current.arrow_schema
    try:
        orphans, is_stable = table.orphans("0d"), _has_stable_names(past, names)
    except SnapshotExplorerError as error:
        result.leave_open("Files that no version names were not read", error)
        return
    result.open_questions += map(str, orphans.unread)
    for row in orphans.files.to_arrow().select(["path", "kind", "size_bytes"]).to_pylist():
        path, size = row["path"], row["size_bytes"]
        if size == 0 or row["kind"] == "deletion vector" or f"/{path}".endswith(_WITHOUT_VALUES):
            continue
        rows, reason = None, None
        try:
            rows = sum(
                int(pc.sum(parse_condition(where, part.schema).mask(part), min_count=0).as_py())
                for part in read_plain_file(past.format.storage, path, size, sorted(names), like)
            )
        except SnapshotExplorerError as error:
            reason = str(error)
        if rows == 0 and not is_stable:
            rows, reason = None, "columns were renamed, and the names in this file may mean other ones"
        result.unnamed.append({"path": path, "rows": rows, "reason": reason})
    if unread := [str(row["path"]) for row in result.unnamed if row["rows"] is None]:
        files = f"{pluralize(len(unread), 'file')} that no version names"
        result.open_questions.append(f"{files} could not be searched: {list_names(unread)}; see files.")


def _has_stable_names(past: History, names: frozenset[str]) -> bool:
    """Return whether columns of these names never had others, and no other column had theirs."""
    folded = {name.lower() for name in names}
    columns = {
        (column.name.lower(), column.id) for schema in past.schemas(past.listing.reachable) for column in schema.columns
    }
    ids = {number for name, number in columns if name in folded}
    named = {(name, number) for name, number in columns if name in folded or (number is not None and number in ids)}
    return len(named) == len(folded)


def _add_shared(traced: Sequence[_Traced]) -> None:
    """Add to tables that were not traced which files with matching rows they share with others that were."""
    storing: dict[str | None, str] = {}
    for item in traced:
        if item.trace is not None and item.table is not None:
            files = item.trace.files.to_arrow()
            paths = files.filter(pc.fill_null(pc.greater(files["stored_rows"], 0), fill_value=False))["path"]
            storing |= dict.fromkeys(_addresses(item.table, paths), item.name)
    storing.pop(None, None)
    for item in traced if storing else ():
        if item.trace is None and item.table is not None:
            try:
                lifetimes = item.table.lifetimes()
            except SnapshotExplorerError as error:
                item.leave_open("Its files could not be listed", error)
                continue
            item.open_questions += map(str, lifetimes.unread_notes)
            addresses = _addresses(item.table, lifetimes.recorded()["path"])
            item.shares_with = sorted({storing[address] for address in addresses if address in storing})


def _addresses(table: Table, paths: pa.ChunkedArray) -> Sequence[str | None]:
    """Return the addresses of a table's files, equal for the same file of another table; None if unknown."""
    return history_of(table).format.storage.addresses(paths.to_pylist())
