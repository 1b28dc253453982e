"""Every public call of a table, as a function of the table; and what a call returns, in a form to be compared."""

import contextlib
import functools
import io
import tempfile
from dataclasses import dataclass, fields, is_dataclass

import pandas as pd
import pyarrow as pa

import snapshot_explorer
from snapshot_explorer.analysis.compare import Comparison
from snapshot_explorer.analysis.diff import RowDiff, RowDiffPlan
from snapshot_explorer.analysis.health import Health
from snapshot_explorer.analysis.retention import Retention
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.history import history_of
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.results import Frame
from snapshot_explorer.table import Snapshot, Table


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the calls of a table are given."""

    versions: tuple[int, ...]
    time: str | None
    """When the version in the middle was committed."""
    tags: tuple[str, ...]
    columns: tuple[str, ...]
    where: str | None
    manifests: tuple[str, ...]
    """Up to four, none of an index."""
    inspections: tuple[tuple[str, bool], ...]
    path: str
    format: str

    @property
    def middle(self):
        return self.versions[len(self.versions) // 2]

    @property
    def first(self):
        return self.versions[0]


def arguments_for(table):
    """Return the arguments of the calls of a table, which is read for them: it must be intact."""
    versions, newest = table.versions(), table.current
    columns = newest.schema.columns
    number = next(
        (one.name for one in columns if one.type.upper().split()[0] in ("INT", "INTEGER", "BIGINT", "LONG")), None
    )
    time = None
    if versions:
        time = history_of(table).committed_at([versions[len(versions) // 2]])[0].isoformat()
    manifests = newest.manifests().to_arrow().to_pylist() if versions else []
    return Arguments(
        versions=versions,
        time=time,
        tags=tuple(history_of(table).tags()),
        columns=tuple(column.name for column in columns),
        where=None if number is None else f'"{number}" >= 2',
        manifests=tuple(row["path"] for row in manifests if row["list"] != "index")[:4],
        inspections=tuple((one.name, one.at_version) for one in history_of(table).table_format.inspections),
        path=table.path,
        format=table.format,
    )


@dataclass(frozen=True, slots=True)
class Failed:
    """A part of a result that could not be read: an error of ours."""

    error: str
    """Its class."""


def _part(found, name):
    try:
        return getattr(found, name)
    except SnapshotExplorerError as error:
        return Failed(type(error).__name__)


_COMPARED = ("summary", "commits", "schema", "properties", "partitions", "files", "proof")
_FREED = ("versions", "unloadable", "freed", "holders", "freed_files", "freed_bytes", "notes")
_CHECKED = ("findings", "partitions", "levels", "manifests", "verdict")
PARTS = {
    Table: lambda found: (found.path, found.format, found.current),
    Snapshot: lambda found: (found.version, found.schema),
    FileLifetimes: lambda found: (found.frame, found.totals()),
    Comparison: lambda found: [_part(found, name) for name in _COMPARED],
    Retention: lambda found: [getattr(found, name) for name in _FREED],
    Health: lambda found: [getattr(found, name) for name in _CHECKED],
    RowDiff: lambda found: (found.counts, found.to_arrow(), found.plan),
    RowDiffPlan: lambda found: (found.announcement, found.most_deleted, found.most_inserted),
}
"""What is compared of results that compute their parts when they are first used."""


def comparable(value):
    """Return a value in a form that compares by what it holds: tables as their schema and rows, in no order."""
    if isinstance(value, Frame):
        value = (value.to_arrow(), value.notes)
    if parts := PARTS.get(type(value)):
        value = parts(value)
    if isinstance(value, pa.Table):
        rows = [tuple(map(repr, row.values())) for row in value.to_pylist()]
        return [str(value.schema), sorted(rows)]
    if isinstance(value, pd.DataFrame):
        return list(value.columns), sorted(map(repr, value.to_dict("records")))
    if isinstance(value, Failed):
        return value
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    if is_dataclass(value):
        return type(value).__name__, [comparable(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, str | int | float | bytes | type(None)):
        return value
    return repr(value)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A text to look at, which may hold an error in place of a part."""

    text: str


def calls(given):
    """Return the calls that fit a table, by name. Each takes a table that is open."""
    found = {
        "table": lambda t: t,
        "current": lambda t: t.current,
        "versions": lambda t: t.versions(),
        "listing": lambda t: history_of(t).listing.versions,
        "history": lambda t: t.history(),
        "history limit": lambda t: t.history(limit=2),
        "history stat": lambda t: t.history(stat=True),
        "history kind": lambda t: t.history(kind="append"),
        "history operation": lambda t: t.history(operation="write"),
        "history user": lambda t: t.history(user="a"),
        "history text": lambda t: t.history(text="e"),
        "history without maintenance": lambda t: t.history(maintenance=False),
        "lifetimes": lambda t: t.lifetimes(),
        "lifetimes picture": lambda t: t.lifetimes().picture(),
        "lifetimes of files": lambda t: t.lifetimes().picture("files"),
        "duplicates": lambda t: t.current.duplicates(),
        "health over": lambda t: t.health(between=".."),
        "retention": lambda t: t.retention(keep="1000d"),
        "retention keep last": lambda t: t.retention(
            keep="200h" if given.format == "delta" else None, keep_last=None if given.format == "delta" else 1
        ),
        "usage": lambda t: t.usage(),
        "usage by version": lambda t: t.usage("version").groups,
        "usage by commit": lambda t: t.usage("commit").groups,
        "readability": lambda t: t.verify().versions,
        "tags": lambda t: t.tags(),
        "tag_versions": lambda t: history_of(t).tags(),
        "cached": lambda t: history_of(t).cached,
        "branches": lambda t: t.branches(),
        "to_arrow": lambda t: t.update().to_arrow(),
        "to_arrow limit": lambda t: t.update().to_arrow(limit=2).num_rows,
        "to_pandas": lambda t: t.update().to_pandas(),
        "count": lambda t: t.update().count(),
        "files": lambda t: t.current.files(),
        "files with statistics": lambda t: t.current.files(statistics=True),
        "manifests": lambda t: t.current.manifests(),
        "plan": lambda t: t.current.plan(),
        "schema and properties": lambda t: (t.at("latest").schema, dict(t.current.properties), t.current.arrow_schema),
        "sql": lambda t: t.sql("select count(*) as n from this"),
    }
    for name, at_version in given.inspections:
        ref = "latest" if at_version and given.versions else None
        found[f"inspect {name}"] = functools.partial(lambda name, ref, t: t.inspect(name, ref), name, ref)
    if given.columns:
        found["to_arrow columns"] = lambda t: t.current.to_arrow(columns=[given.columns[-1]])
    if given.where:
        found["to_arrow where"] = lambda t: t.current.to_arrow(where=given.where)
        found["count where"] = lambda t: t.current.count(given.where)
        found["plan where"] = lambda t: t.current.plan(given.where)
    if given.tags:
        found["at tag"] = lambda t: t.at(f"tag:{given.tags[0]}")
    if given.versions:
        found |= _of_versions(given)
    return found | {"update": lambda t: t.update()}


def drawings(given):
    """Return the calls whose results are looked at, by name: each draws one."""
    found = {
        "history stat drawn": lambda t: Drawn(repr(t.history(stat=True))),
        "table drawn": lambda t: Drawn(repr(t) + t._repr_mimebundle_()["text/html"]),
        "snapshot drawn": lambda t: Drawn(repr(t.current) + t.current._repr_mimebundle_()["text/plain"]),
    }
    if given.versions:
        found["compare drawn"] = lambda t: Drawn(repr(t.compare(given.middle, given.versions[-1])))
        found["row diff drawn"] = lambda t: Drawn(repr(t.diff_rows(given.first, given.versions[-1])))
    return found


def notebook_calls(given):
    """Return what a notebook calls, by name: the magics, the explorer, and lifetimes that are kept in a folder."""
    lines = {
        "status": "status t",
        "log": "log t -n 3",
        "files": "files t",
        "show schema": "show t --schema",
        "health": "health t",
        "tags": "tags t",
        "load": "load t --limit 3 --yes",
    }
    if given.versions:
        lines |= {
            "show": f"show t@{given.middle}",
            "diff": f"diff t@{given.first}..{given.versions[-1]}",
            "log picture": "log t --picture",
        }
    found = {f"%snapshot {name}": functools.partial(_shown, line) for name, line in lines.items()}
    return found | {"explorer": _explored, "lifetimes in a folder": _kept_lifetimes}


def proofs(given, copy):
    """Return the calls that prove something, by name, and what each claims: numbers by what they are of.

    Args:
        copy: The same table elsewhere, opened.
    """
    if not given.versions:
        return {}
    found = {f"verify {level}": functools.partial(_verified, level) for level in ("existence", "footers", "bytes")}
    found["orphans"] = lambda t: _claims(t.orphans("0d"), {"files": (("path",), ("is_orphan",))})
    found["diff of tables"] = lambda t: snapshot_explorer.diff(copy.at(given.first), t.at(given.versions[-1]))
    found["preview of tables"] = lambda t: snapshot_explorer.diff(copy.current, t.current, preview=True).proof
    found["twins"] = lambda t: Drawn(repr(snapshot_explorer.twins(copy, t)))
    found["repair"] = lambda t: _planned(t.repair(given.first))
    found["undo"] = lambda t: _planned(t.repair(undo=given.versions[-1], name="a.b"))
    if given.where:
        columns = {
            "versions": (("branch", "version"), ("rows", "stored_rows")),
            "files": (("path",), ("evidence", "stored_rows")),
            "changelogs": (("branch", "version", "path"), ("rows",)),
            "metadata": (("branch", "path"), ("columns",)),
        }
        found["trace"] = lambda t: _claims(t.trace(given.where), columns)
        found["repair rows"] = lambda t: _planned(t.repair(given.first, given.where, key=given.columns[0], name="a.b"))
    return found


def _planned(repair):
    """Return what a repair would do, once it has been drawn: what it notes depends on more than the rows."""
    repr(repair)
    return repair.statement, repair.counts, dict(repair.left_counts)


def _verified(level, table):
    return _claims(table.verify(level), {"files": (("path",), ("state",))})


def _claims(result, columns):
    """Return what a result says of each thing, and whether it says that everything was looked at."""
    claims = {"complete": {(): (result.is_ok if hasattr(result, "is_ok") else result.is_complete,)}}
    for name, (keys, values) in columns.items():
        rows = getattr(result, name).to_arrow().to_pylist()
        claims[name] = {
            tuple(row[key] for key in keys): tuple(
                ", ".join(row[value]) if isinstance(row[value], list) else row[value] for value in values
            )
            for row in rows
        }
    return claims


@functools.cache
def _magics():
    from IPython.core.interactiveshell import InteractiveShell

    from tests.inner.jupyter import SnapshotMagics

    return SnapshotMagics(InteractiveShell())


def _shown(line, table):
    """Return what a line of %snapshot shows. An error that the user sees is one of ours."""
    from IPython.core.error import UsageError

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return Drawn(repr(_magics().snapshot(line, {"t": table})))
    except UsageError as error:
        raise SnapshotExplorerError(str(error)) from error


def _explored(table):
    explorer = snapshot_explorer.explore(table).wait(30)
    try:
        return Drawn(explorer._repr_mimebundle_()["text/plain"])
    finally:
        explorer.close()


def _kept_lifetimes(table):
    with tempfile.TemporaryDirectory() as folder:
        return table.lifetimes(cache_dir=folder)


def _changes(cursor):
    batches = [pa.Table.from_batches([batch]) for batch in cursor]
    return [cursor.version, *batches]


def _of_versions(given):
    middle, first, last = given.middle, given.first, given.versions[-1]
    return {
        "at version": lambda t: t.at(middle),
        "at latest~1": lambda t: t.at("latest~1"),
        "at earliest": lambda t: t.at("earliest"),
        "at time": lambda t: t.at(f"@{given.time}"),
        "history since": lambda t: t.history(since=f"@{given.time}"),
        "history until": lambda t: t.history(until=f"@{given.time}"),
        "history between": lambda t: t.history(f"{first}..{middle}"),
        "commits": lambda t: history_of(t).commits_frame([last, first]),
        "commit": lambda t: t.at(middle).commit,
        "commit of the newest": lambda t: t.current.commit,
        "entries": lambda t: [t.current.entries(one) for one in given.manifests],
        "changes": lambda t: t.at("latest").file_changes(since="earliest"),
        "changes between versions": lambda t: t.at(last).file_changes(since=middle),
        "changes of a version": lambda t: t.at(middle).file_changes(),
        "files of a version": lambda t: t.at(middle).files(),
        "rows of a version": lambda t: t.at(middle).to_arrow(),
        "changelog": lambda t: t.at(middle).changelog(),
        "row_changes": lambda t: t.row_changes(first, last),
        "row_changes delta": lambda t: t.row_changes(first, last, mode="delta"),
        "row_changes diff": lambda t: t.row_changes(first, last, mode="diff"),
        "changes_since": lambda t: _changes(t.changes_since(first)),
        "diff_rows": lambda t: t.diff_rows(first, last),
        "diff_rows preview": lambda t: t.diff_rows(last, first, preview=True),
        "health": lambda t: t.health(middle, metadata_only=True),
        "compare": lambda t: t.compare(first, last),
        "compare backwards": lambda t: t.compare(last, first),
        "compare manifests": lambda t: t.compare(first, last).manifests,
        "bisect metadata": lambda t: t.bisect("files > 1", good=first, bad=last) if first < last else None,
        "bisect rows": lambda t: t.bisect("count(*) >= 0"),
        "anomalies": lambda t: t.anomalies(),
        "blame": lambda t: [list((found := t.blame(given.where)).notes), found.to_arrow()],
        "row_history": lambda t: [list((found := t.row_history(given.where)).plan.notes), found.to_arrow()],
        "row_history preview": lambda t: [
            list((planned := t.row_history(given.where, preview=True)).notes),
            planned.reading,
        ],
        "profile": lambda t: t.profile_over().frame,
        "profile exact": lambda t: t.profile_over(exact=True).frame,
        "doctor": lambda t: t.health(),
        "sql as of": lambda t: t.sql(f"select * from this version as of {middle}"),
    }


def opened(store):
    """Return the table of a `Store`, opened."""
    return snapshot_explorer.open_table(f"{store.url}{store.table}", storage_options={"store": store})


def answer(call, *table):
    """Return what a call gives, in a form to be compared; of an error of ours its class."""
    try:
        return comparable(call(*table))
    except SnapshotExplorerError as error:
        return error
