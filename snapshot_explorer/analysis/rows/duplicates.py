"""Rows whose key occurs several times in a version."""

from collections.abc import Sequence

import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.rows.bisection import bisect
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.engines import local
from snapshot_explorer.engines.duckdb_ast import quote_identifier
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.history import History
from snapshot_explorer.results import Frame


def duplicates(version: TableVersion, key: Sequence[str] | None, where: str | None, *, title: str) -> Frame:
    """Return the keys that several rows of a version have, most frequent first; nulls are equal.

    Reads the columns of the key, of all rows that match, into memory. The frame has the number of rows, then the key.
    """
    schema = version.arrow_schema
    chosen = tuple(key or version.schema.primary_keys or schema.names)
    scan = scan_of(schema, chosen, where)
    nested = next((name for name in chosen if pa.types.is_nested(schema.field(name).type)), None)
    if nested is not None:
        others = [field.name for field in schema if not pa.types.is_nested(field.type)]
        raise InvalidArgumentError(
            Message(
                f"The values of {nested} are nested and cannot be counted. Name other columns as the key, such as ",
                Hint("", {"key": others[:1]}),
                ".",
            )
        )
    rows = local.to_arrow(version, version.plan(scan.condition).splits, scan)
    counts = row_counts(rows)
    several = counts.filter(pc.greater(counts["count_all"], 1)).sort_by([("count_all", "descending")])
    count = "rows" if "rows" not in chosen else "rows_"
    fields = [pa.field(count, pa.int64(), metadata={"unit": "rows", "meaning": "how many rows have this key"})]
    repeated = pa.table(several.columns, schema=pa.schema([*fields, *scan.columns]))
    more = (pc.sum(several["count_all"]).as_py() or 0) - len(several)
    names = f"the {', '.join(chosen)}" if len(chosen) < len(schema) else "all values"
    repeating = f"{more:,} of {pluralize(len(rows), 'row')}" if more else f"None of {pluralize(len(rows), 'row')}"
    notes: list[str] = [f"{repeating} repeat {names} of another one."]
    if more and len(chosen) == 1:
        name = quote_identifier(chosen[0])
        repeats = Hint("table.bisect", {"condition": f"count({name}) > count(distinct {name})"})
        notes.append(Message("The first version with such rows: ", repeats))
    return Frame(repeated, title=title, noun="repeated keys", notes=tuple(notes), of_rows=True)


def duplicate_key_versions(source: History, key: Sequence[str], between: Sequence[int] | None) -> Frame:
    """Return the versions at which several rows begin to have the same key: ANOMALIES, ascending.

    Reads the columns of the key at every version from the first of `between` on.
    """
    first = min(between) if between else None
    newest = source.format.version(source.versions(first, None)[-1])
    names = [quote_identifier(name) for name in check_names(key, newest.arrow_schema.names, "key") or ()]
    counts = (f"count({names[0]})", names[0]) if len(names) == 1 else ("count(*)", f"({', '.join(names)})")
    with source.format.storage.keeping_immutable():
        frame = bisect(source, f"{counts[0]} > count(distinct {counts[1]})", first, every=True).changes
    changes = frame.to_arrow()
    shown = ", ".join(map(sanitize, key))
    rule = f"several rows have the same {shown}"
    columns = {
        "version": changes["version"],
        "committed_at": changes["committed_at"],
        "measure": "duplicates",
        "column": shown,
        "value": "yes",
        "rule": [f"{rule}, already at the first version that was read", *[rule] * len(changes)][: len(changes)],
    }
    rows = frames.table_of(frames.ANOMALIES, columns).filter(changes["holds"])
    return Frame(rows, title="", noun="anomalies", notes=frame.notes)


def row_counts(rows: pa.Table) -> pa.Table:
    """Return the number of each distinct row, in `count_all`, and the rows, renamed. Nulls are equal."""
    # Names that the aggregation cannot interpret, such as a path that begins with a dot.
    columns = [f"c{index}" for index in range(rows.num_columns)]
    counts = rows.rename_columns(columns).group_by(columns, use_threads=False).aggregate([([], "count_all")])
    return counts.select(["count_all", *columns])
