"""The tags and branches of a table as frames, and its summary card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.hints import Hint
from snapshot_explorer.core.records import Branch, Inspection, TableSchema
from snapshot_explorer.core.text import format_size, format_utc
from snapshot_explorer.results import Frame

_INSPECTIONS = pa.schema(
    [("name", pa.string()), ("meaning", pa.string()), ("of_one_version", pa.bool_()), ("has_picture", pa.bool_())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known about a table without a request."""

    name: str
    facts: Mapping[str, object]
    """Facts by name, without unknown ones."""
    path: str
    columns: Sequence[str]
    """The names of the columns."""
    notes: tuple[str, ...]
    """Sentences on what the listing lacks."""
    location_note: str | None
    """Where the table is recorded, if it was opened elsewhere."""
    next_calls: tuple[Hint, ...]
    """The calls that come next; empty for a table without a version."""


NEXT_CALLS = (
    Hint("table.history"),
    Hint("table.compare", {"a": "latest^"}),
    Hint("explore", {"table": ...}),
)
"""The calls that the card suggests."""


def last_part(path: str) -> str:
    """Return the last part of a path: the name of a table that no catalog names."""
    return path.rstrip("/").rpartition("/")[2] or path


def tags_frame(tags: Mapping[str, int], times: Sequence[datetime], *, name: str) -> Frame:
    """Return tags with their versions and commit times as a frame."""
    rows = frames.table_of(frames.TAGS, {"tag": list(tags), "version": list(tags.values()), "committed_at": [*times]})
    return Frame(rows, title=f"Tags of {name}", noun="tags")


def branches_frame(branches: Sequence[Branch], *, name: str, history: object = None) -> Frame:
    """Return branches as a frame; its figure reads the commits of each branch of `history`."""
    rows = frames.table_of(
        frames.BRANCHES,
        {
            "branch": [branch.name for branch in branches],
            "forked_version": [branch.forked_version for branch in branches],
            "newest_version": [branch.newest_version for branch in branches],
        },
    )
    return Frame(rows, title=f"Branches of {name}", noun="branches", kind="branches", options={"history": history})


def total_rows_name(commits: pa.Table) -> str:
    """Return the name of the rows that `total_rows` of COMMITS counts: `rows`, or `rows in files`."""
    return "rows in files" if frames.has_rows_in_files(commits) else "rows"


def overview_facts(
    version: int | None, *, commits: pa.Table, schema: TableSchema | None, files: pa.Table | None
) -> dict[str, object]:
    """Return the known facts of the newest version by name: its commit, rows, files and keys."""
    facts: dict[str, object] = {}
    newest = commits.filter(pc.equal(commits["version"], version)).to_pylist() if version is not None else []
    if newest:
        time, rows = newest[0]["committed_at"], newest[0]["total_rows"]
        facts["last commit"] = " ".join([newest[0]["kind"], *([format_utc(time)] if time else [])])
        facts[total_rows_name(commits)] = None if rows is None else f"{rows:,}"
    if files is not None:
        count, size_bytes = len(files), pc.sum(files["size_bytes"]).as_py() or 0
        facts["files"] = f"{count:,}, {format_size(size_bytes)}"
    if schema is not None:
        facts["partition keys"] = ", ".join(schema.partition_keys) or None
        facts["primary keys"] = ", ".join(schema.primary_keys) or None
    return facts


def inspections_frame(inspections: Sequence[Inspection], *, name: str) -> Frame:
    """Return the metadata tables of a format: name, meaning, of_one_version, has_picture."""
    rows = [
        {
            "name": inspection.name,
            "meaning": inspection.meaning,
            "of_one_version": inspection.at_version,
            "has_picture": inspection.picture is not None,
        }
        for inspection in inspections
    ]
    return Frame(pa.Table.from_pylist(rows, _INSPECTIONS), title=f"Metadata tables of {name}", noun="tables")
