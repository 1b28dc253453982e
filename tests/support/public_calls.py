"""Every public call of a table, each as a function of the table, and what it returns in a form to be compared."""

import functools
from dataclasses import dataclass, fields, is_dataclass

import pandas as pd
import pyarrow as pa

import snapshot_explorer
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.frames import Frame


@dataclass(frozen=True, slots=True)
class Sight:
    """What a call may ask a table for."""

    versions: tuple[int, ...]
    time: str | None
    """When the version in the middle was committed."""
    tags: tuple[str, ...]
    columns: tuple[str, ...]
    where: str | None
    manifest: str | None
    inspections: tuple[tuple[str, bool], ...]
    path: str
    format: str

    @property
    def middle(self):
        return self.versions[len(self.versions) // 2]

    @property
    def first(self):
        return self.versions[0]


def sight_of(table):
    """Return what the calls may ask of a table; read where nothing fails."""
    versions, newest = table.versions(), table.current
    columns = newest.schema.columns
    number = next(
        (one.name for one in columns if one.type.upper().split()[0] in ("INT", "INTEGER", "BIGINT", "LONG")), None
    )
    time = None
    if versions:
        time = table.committed_at([versions[len(versions) // 2]])[0].isoformat()
    manifests = newest.manifests() if versions else []
    return Sight(
        versions=versions,
        time=time,
        tags=tuple(table.tag_versions()),
        columns=tuple(column.name for column in columns),
        where=None if number is None else f'"{number}" >= 2',
        manifest=next(
            (
                path
                for path, kind in zip(manifests["path"].to_pylist(), manifests["list"].to_pylist(), strict=True)
                if kind != "index"
            ),
            None,
        )
        if len(manifests)
        else None,
        inspections=tuple((one.name, one.at_version) for one in table.inspections),
        path=table.path,
        format=table.format,
    )


def told(value):
    """Return a value in a form that compares by what it holds: tables as their schema and rows, in no order."""
    if isinstance(value, Frame):
        value = value.to_arrow()
    if isinstance(value, pa.Table):
        rows = [tuple(map(repr, row.values())) for row in value.to_pylist()]
        return [str(value.schema), sorted(rows)]
    if isinstance(value, pd.DataFrame):
        return list(value.columns), sorted(map(repr, value.to_dict("records")))
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    if is_dataclass(value):
        return type(value).__name__, [told(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, str | int | float | bytes | type(None)):
        return value
    return repr(value)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A text to look at, which may hold an error in place of a part."""

    text: str


def calls(sight):
    """Return the calls that fit a table, by name. Each takes a table that is open."""
    found = {
        "update": lambda t: _seen(t.update()),
        "versions": lambda t: t.versions(),
        "listing": lambda t: t.listing().versions,
        "history": lambda t: t.history(),
        "history limit": lambda t: t.history(limit=2),
        "history stat": lambda t: Drawn(repr(t.history(stat=True))),
        "history kind": lambda t: t.history(kind="append"),
        "history operation": lambda t: t.history(operation="write"),
        "history user": lambda t: t.history(user="a"),
        "history text": lambda t: t.history(text="e"),
        "history without maintenance": lambda t: t.history(maintenance=False),
        "lifetimes": lambda t: _lifetimes(t.lifetimes()),
        "health over": lambda t: t.health_history(),
        "retention": lambda t: _retention(t.retention(keep="1000d")),
        "retention keep last": lambda t: _retention(
            t.retention(
                keep="200h" if sight.format == "delta" else None, keep_last=None if sight.format == "delta" else 1
            )
        ),
        "readability": lambda t: t.readability(),
        "tags": lambda t: t.tags(),
        "branches": lambda t: t.branches(),
        "to_arrow": lambda t: t.update().to_arrow(),
        "to_arrow limit": lambda t: t.update().to_arrow(limit=2).num_rows,
        "to_pandas": lambda t: t.update().to_pandas(),
        "count": lambda t: t.update().count(),
        "files": lambda t: t.current.files(),
        "files with statistics": lambda t: t.current.files(statistics=True),
        "manifests": lambda t: t.current.manifests(),
        "plan": lambda t: t.current.plan(),
        "schema and properties": lambda t: (t.schema(), dict(t.current.properties), t.current.arrow_schema),
        "table drawn": lambda t: Drawn(repr(t) + t._repr_mimebundle_()["text/html"]),
        "snapshot drawn": lambda t: Drawn(repr(t.current) + t.current._repr_mimebundle_()["text/plain"]),
        "sql": lambda t: t.sql("select count(*) as n from this"),
    }
    for name, at_version in sight.inspections:
        ref = "latest" if at_version and sight.versions else None
        found[f"inspect {name}"] = functools.partial(lambda name, ref, t: t.inspect(name, ref), name, ref)
    if sight.columns:
        found["to_arrow columns"] = lambda t: t.current.to_arrow(columns=[sight.columns[-1]])
    if sight.where:
        found["to_arrow where"] = lambda t: t.current.to_arrow(where=sight.where)
        found["count where"] = lambda t: t.current.count(sight.where)
        found["plan where"] = lambda t: t.current.plan(sight.where)
    if sight.tags:
        found["at tag"] = lambda t: _seen(t.at(f"tag:{sight.tags[0]}"))
    if sight.versions:
        found |= _of_versions(sight)
    return found


def _of_versions(sight):
    middle, first, last = sight.middle, sight.first, sight.versions[-1]
    return {
        "at version": lambda t: _seen(t.at(middle)),
        "at latest~1": lambda t: _seen(t.at("latest~1")),
        "at earliest": lambda t: _seen(t.at("earliest")),
        "at time": lambda t: _seen(t.at(f"@{sight.time}")),
        "history since": lambda t: t.history(since=f"@{sight.time}"),
        "history until": lambda t: t.history(until=f"@{sight.time}"),
        "history between": lambda t: t.history(f"{first}..{middle}"),
        "commit": lambda t: t.at(middle).commit,
        "commit of the newest": lambda t: t.current.commit,
        "entries": lambda t: t.current.entries(sight.manifest),
        "changes": lambda t: t.file_changes(),
        "changes between versions": lambda t: t.file_changes(f"{middle}..{last}"),
        "changes of a version": lambda t: t.at(middle).file_changes(),
        "files of a version": lambda t: t.at(middle).files(),
        "rows of a version": lambda t: t.at(middle).to_arrow(),
        "changelog": lambda t: t.at(middle).changelog(),
        "row_changes": lambda t: t.row_changes(first, last),
        "row_changes delta": lambda t: t.row_changes(first, last, mode="delta"),
        "row_changes diff": lambda t: t.row_changes(first, last, mode="diff"),
        "health": lambda t: _health(t.health(middle)),
        "compare": lambda t: _compared(t.compare(first, last)),
        "compare backwards": lambda t: _compared(t.compare(last, first)),
        "compare manifests": lambda t: t.compare(first, last).manifests,
        "compare drawn": lambda t: Drawn(repr(t.compare(middle, last))),
        "sql as of": lambda t: t.sql(f"select * from this version as of {middle}"),
    }


def _seen(snapshot):
    return snapshot.version, snapshot.schema


def _lifetimes(found):
    return found.to_arrow(), found.totals(), found.partition_totals()


def _retention(found):
    return found.versions, found.lost, found.freed, found.holders, found.freed_files, found.freed_bytes


def _health(found):
    return found.findings, found.partitions, found.levels, found.manifests, found.verdict


def _compared(found):
    names = ("summary", "commits", "schema", "properties", "partitions", "files", "proven")
    return [getattr(found, name) for name in names]


def opened(store):
    """Return the table of a `Store`, opened."""
    return snapshot_explorer.open_table(store.url, storage_options={"store": store})


def answer(call, *given):
    """Return what a call gives, in a form to be compared; of an error of ours its class."""
    try:
        return told(call(*given))
    except SnapshotExplorerError as error:
        return error
