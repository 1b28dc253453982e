"""Commits as text: the style of each kind, the lines of a commit, and the table beside the figure."""

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import MINUS, readable_words
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import Measure
from snapshot_explorer.core.text import format_size, format_utc, list_names, short_user
from snapshot_explorer.history.anomaly_marks import MARKS
from snapshot_explorer.view.drawing import Grid, Line
from snapshot_explorer.view.figures import Style, clean_text, escape_plotly, numbers_with_gaps
from snapshot_explorer.view.palette import GRAY, KIND_COLORS
from snapshot_explorer.view.row_changes import commit_bars_of, row_change_text, with_row_changes

STYLES = {
    "append": Style(color=KIND_COLORS["append"], pattern="", symbol="triangle-up", sign="+"),
    "overwrite": Style(color=KIND_COLORS["overwrite"], pattern="x", symbol="square", sign="~"),
    "compact": Style(color=KIND_COLORS["compact"], pattern="/", symbol="diamond", sign="~"),
    "delete": Style(color=KIND_COLORS["delete"], pattern="\\", symbol="triangle-down", sign="-"),
    "update": Style(color=KIND_COLORS["update"], pattern="-", symbol="hexagon", sign="~"),
    "merge": Style(color=KIND_COLORS["merge"], pattern="+", symbol="cross", sign="~"),
    "restore": Style(color=KIND_COLORS["restore"], pattern="|", symbol="pentagon", sign="~"),
    "schema": Style(color=KIND_COLORS["schema"], pattern=".", symbol="star", sign=""),
    "analyze": Style(color=GRAY, pattern=".", symbol="circle-open", sign=""),
    "maintenance": Style(color=GRAY, pattern="|", symbol="square-open", sign=""),
}
OTHER = Style(color=GRAY, pattern="", symbol="x", sign="")
MAX_NAMES = 8
"""The maximum number of tags, or branches, of a version that are named."""
_LONGEST_MESSAGE = 300
_LONGEST_DETAILS = 100_000
_EXPRESSION_ID = re.compile(r"(?<=\w)#\d+L?\b")
_LONGEST_RULE, _HOVER_LINE = 400, 90
"""Characters of a rule, which contains the name of a column, and of a line of it in a tooltip."""
_MAX_LISTED = 20
"""Marked versions whose rules are listed below a table."""
_BAR = 24
"""Signs of the longest bar in the table."""
UNREADABLE = (("metadata", "only metadata is left", ""), ("no", "cannot be loaded", "/"))


def log_rows(commits: pa.Table, readable: Sequence[str] | None = None) -> pa.Table:
    """Return COMMITS as a log shows them, with the rows that each changed as text.

    Operations have their message or predicate, and users no random ids.

    Args:
        readable: Whether each commit can be loaded, in words; by default without reasons.
    """
    details, users = commits["details"].to_pylist(), commits["user"].to_pylist()
    messages = (clean_text(commit_message(text), _LONGEST_MESSAGE) for text in details)
    operations = zip(commits["operation"].to_pylist(), messages, strict=True)
    columns = {
        "operation": [" ".join(filter(None, pair)) or None for pair in operations],
        "user": [None if user is None else short_user(user) for user in users],
        "readable": readable or [*map(readable_words, commits["readable"].to_pylist())],
    }
    for name, values in columns.items():
        index = commits.schema.get_field_index(name)
        field = commits.schema.field(index)
        field = field.with_metadata({**field.metadata, "prose": "yes"} if name == "readable" else field.metadata)
        commits = commits.set_column(index, field, pa.array(values, pa.string()))
    return with_row_changes(commits)


def commit_message(details: str | None) -> str:
    """Return the message or the predicate that a writer stored with a commit; empty text if there is neither."""
    if not details or len(details) > _LONGEST_DETAILS:
        return ""
    try:
        stored = json.loads(details)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(stored, dict):
        return ""
    summary = stored.get("summary")
    for source, name in (
        (stored, "userMetadata"),
        (stored, "message"),
        (summary, "message"),
        (summary, "commit-message"),
    ):
        if isinstance(source, dict) and isinstance(text := source.get(name), str) and text:
            return text
    parameters = stored.get("operationParameters")
    predicate = parameters.get("predicate") if isinstance(parameters, dict) else None
    return f"where {text}" if isinstance(predicate, str) and (text := _predicate(predicate)) else ""


def _predicate(text: str) -> str:
    """Return a predicate of Delta's log, which may be a JSON list with the ids of Spark's columns."""
    try:
        stored = json.loads(text)
    except ValueError:
        stored = text
    parts = [part for part in stored if isinstance(part, str)] if isinstance(stored, list) else [str(stored)]
    plain = [_EXPRESSION_ID.sub("", part) for part in parts if part and part != "true"]
    return " and ".join(_unwrap(part) for part in plain)


def _unwrap(text: str) -> str:
    """Return a predicate without the parentheses around all of it."""
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if letter == ")" and index == len(text) - 1 and text[0] == "(" else text
    return text


def with_totals(commits: pa.Table, totals: pa.Table | None) -> pa.Table:
    """Return commits with unknown `total_rows` filled from the table's size.

    Args:
        commits: COMMITS, in any order.
        totals: The size of the table at versions, with `version` and `rows`; None if it was not read.
    """
    if totals is None or not commits["total_rows"].null_count:
        return commits
    at = commits.schema.get_field_index("total_rows")
    rows = totals["rows"].take(pc.index_in(commits["version"], totals["version"]))
    return commits.set_column(at, commits.schema.field(at), pc.coalesce(commits["total_rows"], rows))


def name_line(noun: str, names: Sequence[str], limit: int = MAX_NAMES) -> str:
    """Return the names of tags or branches as a line of text, up to a limit."""
    return f"{noun} {list_names([clean_text(name, 60) for name in names], limit)}"


def commit_hover_text(row: dict[str, object], schema_changed: object, total_name: str) -> str:
    """Return the lines of a commit as hover text, escaped for a figure."""
    first, *more = (escape_plotly(line) for line in commit_lines(row, schema_changed, total_name))
    version = f"version {row['version']}"
    return "<br>".join([f"<b>{version}</b>{first.removeprefix(version)}", *more])


def commit_lines(row: dict[str, object], schema_changed: object, total_name: str) -> list[str]:
    """Return a commit as lines of text; the first starts with its version.

    Args:
        total_name: The name of the rows that `total_rows` counts, its heading.
    """
    time, kind, operation, user = (row[name] for name in ("committed_at", "kind", "operation", "user"))
    look = STYLES.get(str(kind), OTHER)
    lines = [
        f"version {row['version']}" + (f" {format_utc(time)}" if time is not None else ""),  # type: ignore[arg-type]  # a time
        clean_text(" ".join([look.sign, str(kind), *([str(operation)] if operation else [])]).strip())
        + (f" by {clean_text(str(user), 40)}" if user else ""),
        row_change_text(row),
        *(
            f"{name} +{_format_count(row, 'added', name)} -{_format_count(row, 'removed', name)}"
            for name in get_args(Measure)
            if name != "rows"
        ),
        *([f"{total_name} {_number(row['total_rows'])}"] if "total_rows" in row else []),
    ]
    lines += [name_line(noun, row[noun]) for noun in ("tags", "branches") if row[noun]]  # type: ignore[arg-type]  # a list of names
    lines += [f"schema {_number(row['schema_id'])} since this version"] if schema_changed else []
    lines += rule_lines(row.get("rules"))  # type: ignore[arg-type]  # a list of texts
    lines += [name for word, name, _ in UNREADABLE if row["readable"] == word]
    return lines


def rule_lines(rules: Sequence[str] | None) -> list[str]:
    """Return rules as lines of a tooltip."""
    return [
        line for rule in rules or () for line in textwrap.wrap(f"jump: {clean_text(rule, _LONGEST_RULE)}", _HOVER_LINE)
    ]


def listed_rules(commits: pa.Table) -> Iterator[Line]:
    """Yield the rules of marked commits as sentences, in their order; of many only the first."""
    marked = commits.select(MARKS.names).filter(commits["jumps"].is_valid())
    for row in marked.slice(0, _MAX_LISTED).to_pylist():
        yield Line(f"Version {row['version']}: {'; '.join(row['rules'])}.")
    if len(marked) > _MAX_LISTED:
        more = len(marked) - _MAX_LISTED
        rules = Hint("table.anomalies")
        yield Line(Message(f"{more:,} more versions are marked; ", rules, " has the rules of all."))


def _format_count(row: dict[str, object], side: str, name: str) -> str:
    value = row[f"{side}_{name}"]
    return format_size(value) if name == "bytes" and isinstance(value, int) else _number(value)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "?"


def time_texts(column: pa.ChunkedArray) -> list[str]:
    """Return times to the second as text, in UTC; a question mark where unknown."""
    millis = numbers_with_gaps(column.cast(pa.int64())).astype("datetime64[ms]")
    texts = np.datetime_as_string(millis, unit="s").tolist()
    return ["?" if text == "NaT" else text.replace("T", " ") for text in texts]


def commit_table(commits: pa.Table, y: Measure, total: int | None) -> Grid:
    """Return the table beside the figure: commits, newest first, each with a bar of signs."""
    sides = ["rows"] if y == "rows" else [f"added_{y}", f"removed_{y}"]
    names = ["version", "committed_at", "kind", *sides, "total_rows"]
    names += [] if pc.all(pc.equal(commits["readable"], "yes"), skip_nulls=False).as_py() else ["readable"]
    names += [
        noun for noun in ("tags", "branches") if pc.any(pc.greater(pc.list_value_length(commits[noun]), 0)).as_py()
    ]
    names += ["jumps"] if commits["jumps"].null_count < len(commits) else []
    field = pa.field(
        "change", pa.string(), metadata={"meaning": f"{y} added, then removed, to scale; ? where not known"}
    )
    return Grid(
        with_row_changes(commits, is_whole=False)
        .select(names)
        .add_column(3, field, pa.array(_signs(commits, y), pa.string())),
        total=total,
        noun="versions",
    )


def _signs(commits: pa.Table, y: Measure) -> list[str]:
    """Return a bar of signs for each commit; the largest change has the longest bar."""
    bars = commit_bars_of(commits, y)
    added, removed = (np.where(bars.quiet, 0, side).astype(np.float64) for side in (bars.up, bars.down))
    unknown = bars.unknown
    scale = _BAR / max(1.0, float((added + removed).max(initial=0.0)))
    # Any value but 0 has at least one sign.
    ups, downs = (np.ceil(side * scale).astype(np.int64) for side in (added, removed))
    return [
        "+" * up + MINUS * down + "?" * lacking or "0"
        for up, down, lacking in zip(ups.tolist(), downs.tolist(), unknown.tolist(), strict=True)
    ]
