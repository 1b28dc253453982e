"""What is drawn of a commit and of a schema."""

import pyarrow as pa

from snapshot_explorer.arrow.value_text import WORDS
from snapshot_explorer.core.records import Commit, TableSchema
from snapshot_explorer.core.text import format_utc, short_user
from snapshot_explorer.view.dispatch import draw
from snapshot_explorer.view.drawing import Drawing, Grid, Line, Pairs
from snapshot_explorer.view.row_changes import row_change_text
from snapshot_explorer.view.stored_details import stored_details, writer_facts

_DRAWN_COLUMNS = 200
"""The maximum number of columns of a schema to draw."""
_TO_MINUTES = len("2026-11-28 06:02")


@draw.register
def _commit(commit: Commit) -> Drawing:
    """Who did what to rows when, a name and a value per line, then the details that its writer stored."""
    stored = {name: getattr(commit, name) for name in commit.__slots__}
    hidden = ("version", "details", *(f"rows_{name}" for name in ("inserted", "updated", "deleted", "rewritten")))
    values = {name: stored[name] for name in stored if name not in hidden}
    values["readable"] = WORDS["readable"].get(commit.readable, commit.readable)
    facts = (values | writer_facts(commit.details)).items()
    known = Pairs(tuple((name, value) for name, value in facts if value not in (None, ())))
    author = f" by {short_user(commit.user)}" if commit.user else ""
    time = "" if commit.committed_at is None else f", {format_utc(commit.committed_at)[:_TO_MINUTES]} UTC"
    answer = f"{commit.operation or commit.kind}{author}{time}: {row_change_text(stored)}"
    return Drawing(title=f"version {commit.version}", parts=(Line(answer), known, *stored_details(commit.details)))


@draw.register
def _schema(schema: TableSchema) -> Drawing:
    """A row per column, up to a limit, with its role in the keys."""
    columns = schema.columns[:_DRAWN_COLUMNS]
    grid = pa.table(
        {
            "id": pa.array([column.id for column in columns], pa.int64()),
            "column": pa.array([column.name for column in columns], pa.string()),
            "type": pa.array([column.type for column in columns], pa.string()),
            "nullable": pa.array([column.nullable for column in columns], pa.bool_()),
            "key": pa.array([_key(schema, column.name) for column in columns], pa.string()),
            "comment": pa.array([column.comment for column in columns], pa.string()),
        }
    )
    title = "schema" if schema.id is None else f"schema {schema.id}"
    shown = Grid(grid, noun="columns", limit=len(columns), total=len(schema.columns))
    return Drawing(title=title, parts=(shown,))


def _key(schema: TableSchema, name: str) -> str | None:
    """Return the role of a column in the keys; None if it has none."""
    parts = [("primary", schema.primary_keys), ("partition", schema.partition_keys)]
    return ", ".join(word for word, keys in parts if name in keys) or None
