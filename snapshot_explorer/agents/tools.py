"""The tools, in the order of a question: which table, what happened, which rows, what to do. To add one, write both.

The docstring of a tool is what a model reads before its first call: when to use it, what comes back, and what it costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from snapshot_explorer.agents.tool import UNTRUSTED, AgentTool, Answer, ToolRequest
from snapshot_explorer.analysis.rows import BisectionReading
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message, python_call
from snapshot_explorer.core.records import MAINTENANCE_KINDS
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.history import history_of
from snapshot_explorer.lake import discovery, open_lake
from snapshot_explorer.table import card_of, read_overview
from snapshot_explorer.table.queries import QueryReading, to_arrow, with_limit
from snapshot_explorer.view.timeline.commit_bars import commit_bars_png

_FEW = 4
"""Calls of one kind that an answer suggests."""
_COMMIT = ["version", "kind", "operation", "user", "committed_at"]
"""Columns of COMMITS between two versions: few, since commits may be many."""
_LEFT_OUT = ("age_seconds", "usual_seconds", "late_after_seconds", "added_bytes", "removed_bytes", "recent_rows")
"""Columns of the overview of a lake that answers do without."""
_NO_ROWS = "The numbers come from metadata. No row was read."
_CLOSER = "Compare closer versions, or give a where that selects a partition."
_FEWER = "Give a condition that fewer files can match."


def _check(request: ToolRequest, advice: str, verb: str, *refs: str, **chosen: Any) -> None:
    """Check the bytes of data files that a call may read, by its preview."""
    try:
        size_bytes = getattr(request.table, verb)(*refs, **chosen, preview=True).size_bytes
    except SnapshotExplorerError:
        return  # the call has the message that fits
    request.access.check_bytes(size_bytes, advice)


def _diffs_of(versions: Sequence[object]) -> list[Hint]:
    return [Hint("table.diff_rows", {"a": f"{version}^", "b": str(version)}) for version in versions[:_FEW]]


def _facts(record: object, names: str) -> dict[str, object]:
    """Return facts of a record by its own names, which `--json` has too."""
    return {name: getattr(record, name) for name in names.split()}


def _numbers(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def find_tables(request: ToolRequest) -> Answer:
    """Start here if you do not know the path of a table.

    Lists the tables below a folder, or below all allowed folders. A few requests per table. Rows: a table each: name,
    format, newest version and its time; problem says why one cannot be opened.
    """
    roots = [request.arguments["path"]] if "path" in request.arguments else request.access.roots
    searches = [{"path": root, "sizes": False, **request.chosen} for root in roots]
    options = map(request.access.options_for, roots)
    frames = [discovery.find_tables(**one, storage_options=item) for one, item in zip(searches, options, strict=True)]
    rows = pa.concat_tables([frame.to_arrow() for frame in frames])
    opened = rows.filter(pc.is_null(rows["problem"]))["path"].to_pylist()
    lakes = [root for root, frame in zip(roots, frames, strict=True) if len(frame) > 1]
    below, problems = ", ".join(roots), len(rows) - len(opened)
    unreadable = f", {problems:,} more cannot be read" if problems else ""
    return Answer(
        text=f"{pluralize(len(opened), 'table')} below {below}{unreadable}.",
        table=below,
        python="; ".join(python_call(Hint("find_tables", one)) for one in searches),
        rows=rows.select(["name", "format", "version", "committed_at", "path", "problem"]),
        not_checked=[frame.title for frame in frames],
        hints=[Hint("open_lake", {"path": path}) for path in lakes]
        + [Hint("open_table", {"path": path}) for path in opened[:_FEW]],
    )


def lake_overview(request: ToolRequest) -> Answer:
    """Use for questions about many tables: which are late, had a bad night, or changed a lot.

    The most urgent first, with the commits and rows since a time, by default 1d. Metadata only: some 10 requests per
    table. Rows: a table each; state is act, watch, ok or unknown, rhythm is late, on time, busy or unknown.
    """
    path, at, since = request.arguments["path"], request.arguments.get("at"), request.arguments.get("since", "1d")
    lake = open_lake(path, at, storage_options=request.access.options_for(path))
    overview = lake.overview(since)
    rows = overview.to_arrow().drop_columns([*_LEFT_OUT, "unreadable", "health"])
    urgent = [row for row in rows.to_pylist() if row["problem"] is None and row["state"] in ("act", "watch")]
    urgent.sort(key=lambda row: not row["anomalies"])
    verbs = ["table.anomalies" if row["anomalies"] else "table.history" for row in urgent[:_FEW]]
    opening = python_call(Hint("open_lake", {"path": lake.name} | ({"at": at} if at else {})))
    problems = len(rows) - rows["problem"].null_count
    unreadable = f", {problems:,} cannot be read" if problems else ""
    summary = f"{pluralize(len(rows), 'table')} below {lake.name}, {len(urgent):,} to look at{unreadable}"
    return Answer(
        text=f"{summary}; the most urgent first.",
        table=lake.name,
        python=f"{opening}.overview({since!r})",
        rows=rows,
        not_checked=[*overview.notes, lake.note, _NO_ROWS],
        hints=[Hint(verb, {"path": row["path"]}) for verb, row in zip(verbs, urgent, strict=False)],
    )


def describe_table(request: ToolRequest) -> Answer:
    """Use to learn the columns, types, keys, format, size, tags and newest version of a table.

    Do that before other questions. Metadata only: a few requests. Rows: a column each.
    """
    table = request.table
    read_overview(table)
    snapshot = table.at(request.arguments["ref"]) if "ref" in request.arguments else table.current
    columns = [
        {"column": item.name, "type": str(item.type), "is_nullable": item.nullable, "comment": item.comment}
        for item in snapshot.schema.columns
    ]
    what = f"{table.name} is a {table.format} table of {pluralize(len(columns), 'column')}"
    return Answer(
        text=f"{what}; its newest version is {table.current.version}.",
        versions=[] if snapshot.version is None else [snapshot.version],
        facts={
            **card_of(table).facts,
            **_facts(snapshot.schema, "primary_keys partition_keys"),
            "tags": dict(zip(*(table.tags().column(name).to_pylist() for name in ("tag", "version")), strict=True)),
            "commit": None if snapshot.version is None else snapshot.commit,
        },
        rows=pa.Table.from_pylist(columns),
        not_checked=[*card_of(table).notes, "Whether all files exist: health looks for them."],
        hints=[Hint("table.history"), Hint("table.anomalies"), Hint("table.health")],
    )


def history(request: ToolRequest) -> Answer:
    """Use for what happened to a table, when, by whom, and how many rows and files each commit changed.

    Newest first. Metadata only; with limit, only that many commits are read. Rows: a commit each.
    """
    frame = request.table.history(**{"limit": request.access.limits.rows, **request.chosen})
    rows = frame.to_arrow()
    changing = rows.filter(pc.invert(pc.is_in(rows["kind"], pa.array(MAINTENANCE_KINDS))))["version"].to_pylist()
    return Answer(
        text=f"{pluralize(len(rows), 'commit')} of {request.table.name}, newest first.",
        versions=rows["version"].to_pylist()[::-1],
        rows=rows.drop_columns("details"),
        rows_total=0 if request.chosen else frame.total,
        picture=commit_bars_png(rows, "rows"),
        not_checked=[*frame.notes, _NO_ROWS],
        hints=[*_diffs_of(changing), Hint("table.anomalies")],
    )


def find_anomalies(request: ToolRequest) -> Answer:
    """Use when something is wrong and you do not know where.

    Finds versions at which a row count, null rate, minimum or maximum of a column jumps, with the rule and the numbers.
    From the statistics in metadata, in one pass over the log; no row is read. Rows: a jump each: version, commit,
    column, measure, before, value and rule.
    """
    frame = request.table.anomalies(**request.chosen)
    jumps = [row for row in frame.to_arrow().to_pylist() if row["kind"] not in MAINTENANCE_KINDS]
    # A restore usually takes back what the commit to find has done.
    suspects = list(dict.fromkeys(row["version"] for row in sorted(jumps, key=lambda row: row["kind"] == "restore")))
    summary = f"Numbers jump at {pluralize(len(suspects), 'version')}" if suspects else "No number jumps"
    return Answer(
        text=f"{summary} of {request.table.name} that changed data; later versions first.",
        versions=sorted(suspects),
        rows=frame,
        not_checked=[*frame.notes, "Numbers that metadata does not record were not compared. No row was read."],
        hints=_diffs_of(suspects) or [Hint("table.history")],
    )


def compare(request: ToolRequest) -> Answer:
    """Use for what differs between two versions without reading rows.

    Files, rows, bytes, schema, properties, partitions, commits between, and what metadata proves about the rows. Cheap.
    For the rows: changed_rows. Rows: a partition and bucket each, with its differences.
    """
    comparison = request.table.compare(**request.chosen)
    commits = comparison.commits.to_arrow()
    return Answer(
        text=comparison.proof,
        versions=sorted({comparison.a, comparison.b}),
        facts={
            **dict(comparison.facts()),
            **_facts(comparison, "summary schema properties"),
            "commits": commits.select(_COMMIT).to_pylist(),
        },
        rows=comparison.partitions,
        picture=commit_bars_png(commits, "rows", comparison.a, comparison.b),
        not_checked=[*comparison.commits.notes, *comparison.files.notes, _NO_ROWS],
        hints=[Hint("table.diff_rows", request.chosen)],
    )


def changed_rows(request: ToolRequest) -> Answer:
    """Use to see exactly which rows a commit or a range of commits inserted, deleted and updated.

    For one commit: a = VERSION^, b = VERSION. Reads only data files that are not in both versions. Without a key, an
    update is a deletion and an insertion: give key where the table has no primary key. Rows: a row each: rowkind is +I
    inserted, -D deleted, -U before and +U after an update; changed_columns.
    """
    _check(request, _CLOSER, "diff_rows", **request.chosen)
    difference = request.table.diff_rows(**request.chosen)
    plan, first, last = difference.plan, difference.plan.a.number, difference.plan.b.number
    shared = {name: item for name, item in request.chosen.items() if name in ("key", "where")}
    hints = [Hint("table.diff_rows", {**request.chosen, "key": [key]})] if (key := difference.suggested_key) else []
    if not difference.is_empty:
        is_commit = last is not None and history_of(request.table).listing.predecessor(last) == first
        between = Hint("table.history", {"between": f"{first}..{last}"})
        hints += [Hint("table.repair", {"undo": last, **shared}) if is_commit else between]
        hints += [Hint("table.repair", {"to": first})]
    return Answer(
        text=f"Rows of {request.table.name} from version {first} to {last}: {_numbers(difference.counts)}.",
        versions=[item for item in (first, last) if item is not None],
        facts={**difference.counts, **_facts(plan, "key columns proof")},
        rows=difference.to_arrow(),
        read={"files": plan.a.files + plan.b.files, "files_of_both_versions_not_read": plan.shared_files},
        not_checked=[f"Versions between are missing: {gap}." for gap in plan.gaps]
        + [f"Version {last} lacks the column {name}: it was not compared." for name in plan.columns_only_a],
        hints=hints,
    )


def blame(request: ToolRequest) -> Answer:
    """Use for the life of certain rows: every version that inserted, updated or deleted rows of a condition.

    Opens only the data files that can contain such rows. Rows: a change of a row each, oldest first: version, commit,
    change, and the values before and after.
    """
    _check(request, _FEWER, "row_history", **{name: item for name, item in request.chosen.items() if name != "key"})
    lines = request.table.blame(**request.chosen)
    changing = list(dict.fromkeys(lines.lines["version"].to_pylist()))
    changes = f"{pluralize(len(lines), 'change')} of matching rows of {lines.name}"
    return Answer(
        text=f"{changes}, at {pluralize(len(changing), 'version')}, oldest first.",
        versions=lines.versions,
        facts={"key": lines.key, "versions_that_changed_rows": changing},
        rows=lines.lines,
        read={"files": lines.opened_files, "files_of_all_versions": lines.files, "versions": lines.compared},
        not_checked=lines.notes,
        hints=_diffs_of(changing[::-1]),
    )


def bisect(request: ToolRequest) -> Answer:
    """Use to find the commit that broke something you can state as a condition.

    Conditions on each row (amount < 0 holds where a row passes), on all rows (count(*) > 100), or on metadata
    (rows > 100, files, bytes, null_rate.amount > 0.1), which is cheapest. Loads few versions; give bad if the newest is
    right again. Rows: an evaluated version each, and whether the condition holds.
    """
    announced: list[str] = []

    def announce(reading: BisectionReading) -> None:
        announced.append(str(reading))
        size_bytes = reading.size_bytes * (1 if reading.single_pass else reading.loads)
        request.access.check_bytes(size_bytes, "Give good and bad, or a condition on metadata such as rows > 100.")

    bisection = request.table.bisect(**request.chosen, announce=announce)
    unsure = "Versions before it were not evaluated: it is the first one if the condition changes only once."
    return Answer(
        text=f"{bisection.answer}.",
        versions=bisection.versions,
        facts=_facts(bisection, "version last_good commit"),
        rows=bisection.evaluated,
        read={"versions": bisection.evaluated.num_rows, "announced": announced},
        not_checked=[*bisection.notes, *([unsure] if bisection.assumes_one_change else [])],
        hints=bisection.next_calls,
    )


def trace(request: ToolRequest) -> Answer:
    """Use to prove or refute that rows are gone from every version and file, such as for a request to erase.

    Finds versions that return them, files that store them, and what keeps them. Opens every data file whose statistics
    admit such rows: expensive on large tables. Rows: a version each, with the number of matching rows.
    """
    _check(request, _FEWER, "row_history", **request.chosen)
    traced = request.table.trace(**request.chosen)
    unsure = [] if traced.is_complete else ["Not everything could be examined: this proves no absence."]
    return Answer(
        text=f"{traced.verdict} {traced.holds}",
        versions=sorted({version.number for _, version in traced.traced_versions}),
        facts=_facts(traced, "is_complete digest"),
        rows=traced.versions,
        read={"files": len(traced.files)},
        not_checked=[traced.not_covered, *traced.unknown_reasons, *traced.notes, *unsure],
        hints=[Hint("table.blame", request.chosen)],
    )


def sql(request: ToolRequest) -> Answer:
    """Use for any other question about rows, of one or several tables, at any version.

    select * from orders version as of 17 where ... ; timestamp as of '2026-11-01 12:00'; except between two versions.
    DuckDB's SQL, one reading statement. Sees only the given tables: no files, no functions that read or write. Rows:
    the result.
    """
    query, most = request.arguments["query"], request.access.limits.resource_rows
    tables = {name: request.open(path) for name, path in request.arguments["tables"].items()}
    read: list[Mapping[str, Any]] = []

    def check(items: Sequence[QueryReading]) -> None:
        read.extend({"table": item.table, "version": item.snapshot.version, **asdict(item.cost())} for item in items)
        advice = "Add a condition on a partition or on a column with statistics."
        request.access.check_bytes(sum(item["size_bytes"] for item in read), advice)

    rows = to_arrow(with_limit(query, most + 1), tables, before=check)
    is_cut = len(rows) > most
    opened = {name: Hint("open_table", {"path": table.path}) for name, table in tables.items()}
    return Answer(
        text=f"{'More than ' if is_cut else ''}{pluralize(min(len(rows), most), 'row')}.",
        table=", ".join(table.path for table in tables.values()),
        python=python_call(Hint("sql", {"query": query, "tables": opened})),
        facts={"columns": {item.name: str(item.type) for item in rows.schema}},
        rows=rows.slice(0, most),
        rows_total=None if is_cut else 0,
        read={"tables": read},
        not_checked=["Rows beyond the limit were not computed: their number is unknown."] if is_cut else [],
    )


def health(request: ToolRequest) -> Answer:
    """Use for why a table is slow or broken.

    Finds files that are missing, numbers that jump, small files, deletes, overdue maintenance, each with thresholds and
    advice. Reads metadata and lists folders; no rows. Rows: a finding each: state, number, thresholds, advice.
    """
    report = request.table.health(**request.chosen)
    problems = [item for item in report.symptoms if item.is_problem]
    return Answer(
        text=Message(*(part for item in problems for part in (item.sentence, " ")), report.verdict),
        versions=[report.version],
        facts=_facts(report, "symptoms"),
        rows=report.findings,
        not_checked=[item.sentence for item in report.symptoms if item.is_problem is None],
        hints=[item.hint for item in problems],
    )


def usage(request: ToolRequest) -> Answer:
    """Use for what a table stores and why: bytes of the newest version, and what older ones, tags and branches hold.

    Also who added them, and which expiry frees enough. Nothing is deleted. Metadata only: reads the log. Rows: a group
    each: files and bytes, live, held, and exclusive ones that nothing else holds; null if unknown.
    """
    report = request.table.usage(**request.chosen)
    notes = [*report.unread, *report.notes]
    if (expiry := report.expiry) is not None:
        notes += [*expiry.retention.expiry.command_notes, *filter(None, [expiry.retention.expiry.unknown])]
    return Answer(
        text=report.verdict,
        versions=[] if report.version is None else [report.version],
        facts=_facts(report, "summary expiry"),
        statements=[] if expiry is None else [command for _, command in expiry.retention.commands],
        rows=report.groups,
        not_checked=notes,
    )


def repair_plan(request: ToolRequest) -> Answer:
    """Use when a bad commit is known: writes the SQL that a person can run in the engine that writes the table.

    Nothing is run, nothing is changed. undo takes back one commit and leaves later ones; to puts back everything as at
    a version. Reads the rows that differ. Rows: with undo, those left unchanged because later commits changed them.
    """
    _check(request, _CLOSER, "diff_rows", request.chosen.get("to") or f"{request.chosen.get('undo')}^")
    repair = request.table.repair(**request.chosen)
    text = f"Rows of version {repair.to} are put back: {_numbers(repair.counts)}. Nothing was run: a person runs the "
    return Answer(
        text="Nothing is to be put back." if repair.is_empty else f"{text}statements.",
        versions=[repair.to, repair.version],
        facts={
            **repair.counts,
            **_facts(repair, "warnings check"),
            "flink_sql": repair.flink is not None,
        },
        statements=repair.statements,
        rows=repair.left,
        not_checked=repair.notes,
        hints=[hint for item in repair.warnings if isinstance(item, Message) for hint in item.hints],
    )


TOOLS = (
    AgentTool(find_tables, ("find_tables",), "path? depth?"),
    AgentTool(lake_overview, ("open_lake", "lake.overview"), "path since? at?"),
    AgentTool(describe_table, ("table.at", "open_table"), "path ref? branch?"),
    AgentTool(history, ("table.history",), "path between? limit? kind? user? since? until? text? branch?"),
    AgentTool(find_anomalies, ("table.anomalies",), "path columns? between? branch?"),
    AgentTool(compare, ("table.compare",), "path a b? branch?"),
    AgentTool(changed_rows, ("table.diff_rows",), "path a b? key? columns? where? branch?"),
    AgentTool(blame, ("table.blame",), "path where key? columns? between? branch?"),
    AgentTool(bisect, ("table.bisect",), "path condition good? bad? branch?"),
    AgentTool(trace, ("table.trace",), "path where branch?"),
    AgentTool(sql, (), "query tables"),
    AgentTool(health, ("table.health",), "path ref? branch?"),
    AgentTool(usage, ("table.usage",), "path by? to_free? branch?"),
    AgentTool(repair_plan, ("table.repair",), "path undo? to? where? key? branch?"),
)

INSTRUCTIONS = (
    "Looks into the past of Paimon, Delta Lake, Iceberg, Hudi and DuckLake tables, read-only. Start with find_tables, "
    "then describe_table or health. Each answer has next_calls: follow them. To find a bad commit: find_anomalies, or "
    "bisect with a condition; to see its rows: changed_rows; to take it back: repair_plan, whose SQL a person runs. "
    f"Say what evidence.not_checked says, and cite evidence. {UNTRUSTED}"
)
