"""The tools, in the order of a question: which table, what happened, which rows, what to do. To add one, write both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from snapshot_explorer.agents.answers import Answer
from snapshot_explorer.agents.tool import AgentTool, Parameter, ToolRequest
from snapshot_explorer.analysis.rows import BisectionReading
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message, python_call
from snapshot_explorer.core.records import MAINTENANCE_KINDS, Commit
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.history import history_of
from snapshot_explorer.lake import open_lake
from snapshot_explorer.lake.discovery import find_tables
from snapshot_explorer.table import card_of, read_overview
from snapshot_explorer.table.queries import QueryReading, to_arrow

_FEW = 4
"""Calls of one kind that an answer suggests."""
_COMMIT = ("kind", "operation", "user", "committed_at")
_LAKE: Sequence[str] = (
    "name",
    "state",
    "format",
    "version",
    "committed_at",
    "rhythm",
    "commits",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
)
_LAKE = (*_LAKE, "added_rows", "removed_rows", "total_rows", "schema_changes", "anomalies", "note", "problem", "path")
_NO_ROWS = "The numbers come from metadata. No row was read."


def _check_bytes(request: ToolRequest, size_bytes: int, advice: str) -> None:
    most = request.access.limits.size_bytes
    if size_bytes > most:
        raise InvalidArgumentError(
            f"This may read {format_size(size_bytes)} of data files, and the limit of a call is {format_size(most)}. "
            f"{advice}"
        )


def _diff_of(version: object) -> Hint:
    return Hint("table.diff_rows", {"a": f"{version}^", "b": str(version)})


def _commit(commit: Commit | None) -> Mapping[str, object] | None:
    return None if commit is None else {name: getattr(commit, name) for name in _COMMIT}


def _find_tables(request: ToolRequest) -> Answer:
    path, depth = request.arguments.get("path"), request.arguments.get("depth", 3)
    paths = request.access.roots if path is None else [path]
    options = [request.access.options_for(item) for item in paths]
    frames = [
        find_tables(item, sizes=False, depth=depth, storage_options=own)
        for item, own in zip(paths, options, strict=True)
    ]
    rows = pa.concat_tables([frame.to_arrow() for frame in frames])
    opened = rows.filter(pc.is_null(rows["problem"]))["path"].to_pylist()
    lakes = [item for item, frame in zip(paths, frames, strict=True) if frame.num_rows > 1]
    return Answer(
        text=f"{pluralize(len(opened), 'table')} below {', '.join(paths)}.",
        path=", ".join(paths),
        python="; ".join(python_call(Hint("find_tables", {"path": item, "sizes": False})) for item in paths),
        rows=rows.select(["name", "format", "version", "committed_at", "path", "problem"]),
        not_checked=[frame.title for frame in frames],
        hints=[
            *(Hint("open_lake", {"path": item}) for item in lakes),
            *(Hint("open_table", {"path": item}) for item in opened[:_FEW]),
        ],
    )


def _lake_overview(request: ToolRequest) -> Answer:
    path, since = request.arguments["path"], request.arguments.get("since", "1d")
    at = request.arguments.get("at")
    lake = open_lake(path, at, storage_options=request.access.options_for(path))
    opening = python_call(Hint("open_lake", {"path": lake.name} | ({"at": at} if at else {})))
    overview = lake.overview(since)
    rows = overview.to_arrow().select(list(_LAKE))
    urgent = [row for row in rows.to_pylist() if row["problem"] is None and row["state"] in ("act", "watch")]
    urgent.sort(key=lambda row: not row["anomalies"])
    return Answer(
        text=f"{pluralize(len(rows), 'table')} below {lake.name}, {len(urgent):,} to look at; the most urgent first.",
        path=lake.name,
        python=f"{opening}.overview({since!r})",
        rows=rows,
        not_checked=[*overview.notes, lake.note, _NO_ROWS],
        hints=[
            Hint("table.anomalies" if row["anomalies"] else "table.history", {"path": row["path"]})
            for row in urgent[:_FEW]
        ],
    )


def _describe_table(request: ToolRequest) -> Answer:
    table, version = request.table, request.arguments.get("version")
    read_overview(table)
    snapshot = table.current if version is None else table.at(version)
    columns = [
        {"column": item.name, "type": str(item.type), "is_nullable": item.nullable, "comment": item.comment}
        for item in snapshot.schema.columns
    ]
    return Answer(
        text=f"{table.name} is a {table.format} table of {pluralize(len(columns), 'column')}; its newest version is "
        f"{table.current.version}.",
        versions=[] if snapshot.version is None else [snapshot.version],
        facts={
            **card_of(table).facts,
            "primary_keys": snapshot.schema.primary_keys,
            "partition_keys": snapshot.schema.partition_keys,
            "tags": dict(zip(*(table.tags().column(name).to_pylist() for name in ("tag", "version")), strict=True)),
            "commit": None if snapshot.version is None else _commit(snapshot.commit),
        },
        rows=pa.Table.from_pylist(columns),
        not_checked=[*card_of(table).notes, "Whether all files exist: health looks for them."],
        hints=[Hint("table.history"), Hint("table.anomalies"), Hint("table.health")],
    )


def _history(request: ToolRequest) -> Answer:
    frame = request.table.history(**{"limit": request.access.limits.rows, **request.chosen})
    rows = frame.to_arrow()
    changing = rows.filter(pc.invert(pc.is_in(rows["kind"], pa.array(MAINTENANCE_KINDS))))["version"].to_pylist()
    return Answer(
        text=f"{pluralize(len(rows), 'commit')} of {request.table.name}, newest first.",
        versions=rows["version"].to_pylist()[::-1],
        rows=rows.select([name for name in rows.column_names if name != "details"]),
        rows_total=None if request.chosen else frame.total,
        not_checked=[*frame.notes, _NO_ROWS],
        hints=[*map(_diff_of, changing[:_FEW]), Hint("table.anomalies")],
    )


def _find_anomalies(request: ToolRequest) -> Answer:
    frame = request.table.anomalies(**request.chosen)
    jumps = [row for row in frame.to_arrow().to_pylist() if row["kind"] not in MAINTENANCE_KINDS]
    # A restore usually takes back what the commit to find has done.
    suspects = dict.fromkeys(row["version"] for row in sorted(jumps, key=lambda row: row["kind"] == "restore"))
    summary = f"Numbers jump at {pluralize(len(suspects), 'version')}" if suspects else "No number jumps"
    return Answer(
        text=f"{summary} of {request.table.name} that changed data; later versions first.",
        versions=sorted(suspects),
        rows=frame,
        not_checked=[*frame.notes, "Numbers that metadata does not record were not compared. No row was read."],
        hints=[*map(_diff_of, list(suspects)[:_FEW]), *([] if suspects else [Hint("table.history")])],
    )


def _compare(request: ToolRequest) -> Answer:
    comparison = request.table.compare(**request.chosen)
    return Answer(
        text=comparison.proof,
        versions=sorted({comparison.a, comparison.b}),
        facts={
            **dict(comparison.facts()),
            "files_rows_bytes": comparison.summary.to_arrow().to_pylist(),
            "schema_changes": comparison.schema.to_arrow().to_pylist(),
            "property_changes": comparison.properties.to_arrow().to_pylist(),
            "commits": comparison.commits.to_arrow().select(["version", *_COMMIT]).to_pylist(),
        },
        rows=comparison.partitions,
        not_checked=[_NO_ROWS],
        hints=[Hint("table.diff_rows", request.chosen)],
    )


def _changed_rows(request: ToolRequest) -> Answer:
    table, chosen = request.table, request.chosen
    plan = table.diff_rows(**chosen, preview=True)
    size_bytes = (plan.a.size_bytes or 0) + (plan.b.size_bytes or 0)
    _check_bytes(request, size_bytes, "Compare closer versions, or give a where that selects a partition.")
    difference = table.diff_rows(**chosen)
    rows, counts = difference.to_arrow(), difference.counts
    first, last = plan.a.version.number, plan.b.version.number
    shared: dict[str, object] = {name: chosen[name] for name in ("key", "where") if name in chosen}
    hints = [Hint("table.diff_rows", {**chosen, "key": [key]})] if (key := difference.suggested_key) else []
    if len(rows) and last is not None and history_of(table).listing.predecessor(last) == first:
        hints += [Hint("table.repair", {"undo": last, **shared}), Hint("table.repair", {"to": first})]
    elif len(rows):
        hints += [Hint("table.history", {"between": f"{first}..{last}"}), Hint("table.repair", {"to": first})]
    numbers = ", ".join(f"{counts[name]:,} {name}" for name in counts)
    return Answer(
        text=f"Rows of {table.name} from version {first} to {last}: {numbers}.",
        versions=[item for item in (first, last) if item is not None],
        facts={**counts, "key": plan.key, "compared_columns": plan.columns, "proof": plan.proof},
        rows=rows,
        read={
            "files": plan.a.files + plan.b.files,
            "size_bytes": size_bytes,
            "files_of_both_versions_not_read": plan.shared_files,
        },
        not_checked=[f"Versions between are missing: {gap}." for gap in plan.gaps],
        hints=hints,
    )


def _blame(request: ToolRequest) -> Answer:
    blame = request.table.blame(**request.chosen)
    changing = list(dict.fromkeys(blame.lines["version"].to_pylist()))
    return Answer(
        text=f"{pluralize(len(blame), 'change')} of matching rows of {blame.name}, at "
        f"{pluralize(len(changing), 'version')}, oldest first.",
        versions=blame.versions,
        facts={"key": blame.key, "versions_that_changed_rows": changing},
        rows=blame.lines,
        read={"files": blame.opened_files, "files_of_all_versions": blame.files, "versions": blame.compared},
        not_checked=blame.notes,
        hints=[*map(_diff_of, changing[::-1][:_FEW])],
    )


def _bisect(request: ToolRequest) -> Answer:
    announced: list[str] = []

    def announce(reading: BisectionReading) -> None:
        announced.append(str(reading))
        size_bytes = reading.size_bytes * (1 if reading.single_pass else reading.loads)
        _check_bytes(request, size_bytes, "Give good and bad, or a condition on metadata such as rows > 100.")

    bisection = request.table.bisect(**request.chosen, announce=announce)
    unsure = "Versions before it were not evaluated: it is the first one if the condition changes only once."
    return Answer(
        text=f"{bisection.answer}.",
        versions=bisection.versions,
        facts={
            "first_version": bisection.version,
            "last_version_before": bisection.last_good,
            "commit": _commit(bisection.commit),
        },
        rows=bisection.evaluated,
        read={"versions": bisection.evaluated.num_rows, "announced": announced},
        not_checked=[
            *bisection.notes,
            *([unsure] if bisection.assumes_one_change else []),
            *([f"Versions that could not be read: {bisection.skipped}."] if bisection.skipped else []),
        ],
        hints=bisection.next_calls,
    )


def _trace(request: ToolRequest) -> Answer:
    trace = request.table.trace(**request.chosen)
    unsure = "Not everything could be examined: this proves no absence."
    return Answer(
        text=f"{trace.verdict} {trace.holds}",
        versions=sorted({version.number for _, version in trace.traced_versions}),
        facts={"is_complete": trace.is_complete, "digest": trace.digest},
        rows=trace.versions,
        read={"files": trace.files.num_rows},
        not_checked=[*trace.notes, *([] if trace.is_complete else [unsure])],
        hints=[Hint("table.blame", request.chosen)],
    )


def _sql(request: ToolRequest) -> Answer:
    query, most = request.arguments["query"], request.access.limits.rows
    tables = {name: request.open(path) for name, path in request.arguments["tables"].items()}
    read: list[dict[str, object]] = []

    def check(items: Sequence[QueryReading]) -> None:
        size_bytes = 0
        for item in items:
            plan = item.snapshot.plan(item.where).to_arrow()
            plan = plan.filter(pc.is_null(plan["skipped"]))
            files, own_bytes = (pc.sum(plan[name]).as_py() or 0 for name in ("files", "size_bytes"))
            read.append(
                {"table": item.table, "version": item.snapshot.version, "files": files, "size_bytes": own_bytes}
            )
            size_bytes += own_bytes
        _check_bytes(request, size_bytes, "Add a condition on a partition or on a column with statistics.")

    rows = to_arrow(_limited(query, most + 1), tables, before=check)
    is_cut = len(rows) > most
    names = ", ".join(f"{name!r}: {python_call(Hint('open_table', {'path': it.path}))}" for name, it in tables.items())
    return Answer(
        text=f"{'More than ' if is_cut else ''}{pluralize(min(len(rows), most), 'row')}.",
        path=", ".join(table.path for table in tables.values()),
        python=f"{python_call(Hint('sql', {'query': query})).removesuffix(')')}, {{{names}}})",
        facts={"columns": {item.name: str(item.type) for item in rows.schema}},
        rows=rows,
        read={"tables": read},
        not_checked=["Rows beyond the limit were not computed: their number is unknown."] if is_cut else [],
    )


def _limited(query: str, limit: int) -> str:
    """Return a query with at most so many rows; DESCRIBE and EXPLAIN, which return few, as they are."""
    words = query.replace("(", " ").split(maxsplit=1)
    if not words or words[0].upper() not in ("SELECT", "WITH", "FROM", "VALUES", "TABLE"):
        return query
    return f"select * from (\n{query.rstrip().rstrip(';')}\n) limit {limit}"  # noqa: S608 - it is a query of the caller


def _health(request: ToolRequest) -> Answer:
    health = request.table.health(request.arguments.get("version"))
    problems = [item for item in health.symptoms if item.is_problem]
    sentences = [part for item in problems for part in (item.sentence, " ")]
    return Answer(
        text=Message(*sentences, health.verdict),
        versions=[health.version],
        facts={"symptoms": [{"is_problem": item.is_problem, "sentence": item.sentence} for item in health.symptoms]},
        rows=health.findings,
        not_checked=[item.sentence for item in health.symptoms if item.is_problem is None],
        hints=[item.hint for item in problems],
    )


def _usage(request: ToolRequest) -> Answer:
    usage = request.table.usage(**request.chosen)
    once = usage.summary.to_arrow().select(["group", "files", "size_bytes"]).to_pylist()
    facts: dict[str, object] = {"each_file_once": once}
    if usage.expiry is not None:
        facts |= {"freed_bytes": usage.expiry.freed_bytes, "is_enough": usage.expiry.is_enough}
    return Answer(
        text=usage.verdict,
        versions=[] if usage.version is None else [usage.version],
        facts=facts,
        statements=[] if usage.expiry is None else [command for _, command in usage.expiry.retention.commands],
        rows=usage.groups,
        not_checked=(*usage.unread, *usage.notes),
    )


def _repair_plan(request: ToolRequest) -> Answer:
    repair = request.table.repair(**request.chosen)
    counts = ", ".join(f"{number:,} {name}" for name, number in repair.counts.items())
    text = f"Rows of version {repair.to} are put back: {counts}. Nothing was run: a person runs the statements."
    return Answer(
        text="Nothing is to be put back." if repair.is_empty else text,
        versions=[repair.to, repair.version],
        facts={
            **repair.counts,
            "flink_sql": repair.flink is not None,
            "warnings": repair.warnings,
            "check_afterwards": repair.check,
        },
        statements=repair.statements,
        rows=repair.left,
        not_checked=repair.notes,
        hints=[hint for item in repair.warnings if isinstance(item, Message) for hint in item.hints],
    )


_PATH = Parameter(
    name="path", required=True, meaning="the folder or URL of a table, below an allowed folder; find_tables lists them"
)
_BRANCH = Parameter(name="branch", meaning="the branch of the table; the main one without it")
_REF = "17, latest, latest~2 (two back), 17^ (the one before), tag:v1, @2026-11-01T12:00 (UTC), @2h, @yesterday"
_A = Parameter(name="a", required=True, meaning=f"the version before the changes: {_REF}")
_B = Parameter(name="b", meaning="the version after the changes; latest without it")
_SOME = Parameter(name="where", meaning="a condition on the rows in DuckDB's SQL, such as order_id = 42 or amount < 0")
_WHERE = replace(_SOME, required=True)
_VERSION = Parameter(name="version", meaning=f"the version; the newest without it: {_REF}")
_KEY = Parameter(name="key", type="array", meaning="the columns that identify a row; the primary key without it")
_COLUMNS = Parameter(name="columns", type="array", meaning="only these columns; all without it")
_BETWEEN = Parameter(name="between", meaning="only these versions, as A..B, such as 5..12 or @yesterday..")

TOOLS: Sequence[AgentTool] = (
    AgentTool(
        name="find_tables",
        use="Start here if you do not know the path of a table. Lists the tables below a folder, or below all allowed "
        "folders: name, format, newest version and its time. A few requests per table.",
        run=_find_tables,
        parameters=(
            Parameter(name="path", meaning="a folder or URL; all allowed folders without it"),
            Parameter(name="depth", type="integer", meaning="the levels of folders to search; 3 without it"),
        ),
        rows="a table each; problem says why one cannot be opened",
        calls={"find_tables": {}},
    ),
    AgentTool(
        name="lake_overview",
        use="Use for questions about many tables: which are late, had a bad night, or changed a lot. A row per table, "
        "the most urgent first, with commits and rows since a time. Metadata only: some 10 requests per table.",
        run=_lake_overview,
        parameters=(
            Parameter(name="path", required=True, meaning="the folder or URL above the tables"),
            Parameter(
                name="since", meaning="count changes from this time: 1d, 3h, yesterday, 2026-11-01; 1d without it"
            ),
            Parameter(name="at", meaning="the tables as they were at this time; now without it"),
        ),
        rows="a table each: state is act, watch, ok or unknown, rhythm is late, on time, busy or unknown",
        calls={"open_lake": {}, "lake.overview": {}},
    ),
    AgentTool(
        name="describe_table",
        use="Use to learn a table's columns, types, keys, format, size, tags and newest version before other "
        "questions. Metadata only: a few requests.",
        run=_describe_table,
        parameters=(_PATH, _VERSION, _BRANCH),
        rows="a column each",
        calls={"table.at": {"ref": "version"}, "open_table": {}},
    ),
    AgentTool(
        name="history",
        use="Use for what happened to a table, when, by whom, and how many rows and files each commit added and "
        "removed. Newest first. Metadata only; with limit, only that many commits are read.",
        run=_history,
        parameters=(
            _PATH,
            _BETWEEN,
            Parameter(name="limit", type="integer", meaning="the most commits"),
            Parameter(name="kind", meaning="append, overwrite, compact, delete, update, merge, schema or restore"),
            Parameter(name="user", meaning="only commits whose user contains this text"),
            Parameter(name="since", meaning="only commits from this time on: 3h, yesterday, 2026-11-01 03:00"),
            Parameter(name="until", meaning="only commits up to this time"),
            Parameter(name="text", meaning="only commits whose recorded details contain this text"),
            _BRANCH,
        ),
        rows="a commit each",
        calls={"table.history": {}},
    ),
    AgentTool(
        name="find_anomalies",
        use="Use when something is wrong and you do not know where: finds versions at which a row count, null rate, "
        "minimum or maximum of a column jumps, with the rule and the numbers. From the statistics in metadata, in one "
        "pass over the log; no row is read.",
        run=_find_anomalies,
        parameters=(_PATH, _COLUMNS, _BETWEEN, _BRANCH),
        rows="a jump each: version, commit, column, measure, before, value and rule",
        calls={"table.anomalies": {}},
    ),
    AgentTool(
        name="compare",
        use="Use for what differs between two versions without reading rows: files, rows, bytes, schema, properties, "
        "partitions, commits between, and what metadata proves about the rows. Cheap. For the rows: changed_rows.",
        run=_compare,
        parameters=(_PATH, _A, _B, _BRANCH),
        rows="a partition and bucket each, with its differences",
        calls={"table.compare": {}},
    ),
    AgentTool(
        name="changed_rows",
        use="Use to see exactly which rows a commit or a range of commits inserted, deleted and updated, before and "
        "after. For one commit: a = VERSION^, b = VERSION. Reads only data files that are not in both versions. "
        "Without a key, an update is a deletion and an insertion: give key where the table has no primary key.",
        run=_changed_rows,
        parameters=(_PATH, _A, _B, _KEY, _COLUMNS, _SOME, _BRANCH),
        rows="a row each: rowkind is +I inserted, -D deleted, -U before and +U after an update; changed_columns",
        calls={"table.diff_rows": {}},
    ),
    AgentTool(
        name="blame",
        use="Use for the life of certain rows: every version that inserted, updated or deleted rows of a condition, "
        "with values before and after. Opens only the data files that can contain such rows.",
        run=_blame,
        parameters=(_PATH, _WHERE, _KEY, _COLUMNS, _BETWEEN, _BRANCH),
        rows="a change of a row each, oldest first: version, commit, change, before, after",
        calls={"table.blame": {}},
    ),
    AgentTool(
        name="bisect",
        use="Use to find the commit that broke something you can state as a condition. Conditions on each row (amount "
        "< 0 holds where a row passes), on all rows (count(*) > 100), or on metadata (rows > 100, files, bytes, "
        "null_rate.amount > 0.1), which is cheapest. Loads few versions; give bad if the newest is right again.",
        run=_bisect,
        parameters=(
            _PATH,
            Parameter(name="condition", required=True, meaning="the condition, in DuckDB's SQL"),
            Parameter(name="good", meaning="a version where it does not hold; the earliest without it"),
            Parameter(name="bad", meaning="a later version where it holds; the newest without it"),
            _BRANCH,
        ),
        rows="an evaluated version each, and whether the condition holds",
        calls={"table.bisect": {}},
    ),
    AgentTool(
        name="trace",
        use="Use to prove or refute that rows are gone from every version and file, such as for a request to erase: "
        "versions that return them, files that store them, and what keeps them. Opens every data file whose "
        "statistics admit such rows: expensive on large tables.",
        run=_trace,
        parameters=(_PATH, _WHERE, _BRANCH),
        rows="a version each, with the number of matching rows",
        calls={"table.trace": {}},
    ),
    AgentTool(
        name="sql",
        use="Use for any other question about rows, of one or several tables, at any version: select * from orders "
        "version as of 17 where ... ; timestamp as of '2026-11-01 12:00'; except between two versions. DuckDB's SQL, "
        "one reading statement. Sees only the given tables: no files, no functions that read or write.",
        run=_sql,
        parameters=(
            Parameter(name="query", required=True, meaning="one SELECT, WITH, FROM, DESCRIBE or EXPLAIN"),
            Parameter(
                name="tables",
                type="object",
                required=True,
                meaning='the path of each table by its name in the query, such as {"orders": "/data/orders"}',
            ),
        ),
        rows="the rows of the result",
    ),
    AgentTool(
        name="health",
        use="Use for why a table is slow or broken: files that are missing, numbers that jump, small files, deletes, "
        "overdue maintenance, each with thresholds and advice. Reads metadata and lists folders; no rows.",
        run=_health,
        parameters=(_PATH, _VERSION, _BRANCH),
        rows="a finding each: state, number, thresholds, advice",
        calls={"table.health": {"ref": "version"}},
    ),
    AgentTool(
        name="usage",
        use="Use for what a table stores and why: bytes of the newest version, and bytes that older versions, tags and "
        "branches hold; who added them; which expiry frees enough. Nothing is deleted. Metadata only: reads the log.",
        run=_usage,
        parameters=(
            _PATH,
            Parameter(
                name="by",
                meaning="holder, version, commit, operation, user, day, partition, size, or time for growth; holder "
                "without it",
            ),
            Parameter(name="to_free", meaning="find the mildest expiry that frees this, such as 5 GB"),
            _BRANCH,
        ),
        rows="a group each: files and bytes, live, held, and exclusive ones that nothing else holds; null if unknown",
        calls={"table.usage": {}},
    ),
    AgentTool(
        name="repair_plan",
        use="Use when a bad commit is known: writes the SQL that a person can run in the engine that writes the "
        "table. Nothing is run, nothing is changed. undo takes back one commit and leaves later ones; to puts back "
        "everything as at a version. Reads the rows that differ.",
        run=_repair_plan,
        parameters=(
            _PATH,
            Parameter(name="undo", meaning="the version whose commit alone is undone; in place of to"),
            Parameter(name="to", meaning="the version whose rows are put back; in place of undo"),
            _SOME,
            _KEY,
            _BRANCH,
        ),
        rows="with undo: rows that are left unchanged because later commits changed them too",
        calls={"table.repair": {}},
    ),
)
