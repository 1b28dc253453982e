"""The versions at which a number jumps, as columns of commits."""

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc

MARKS = pa.schema(
    [pa.field("version", pa.int64()), pa.field("jumps", pa.string()), pa.field("rules", pa.list_(pa.string()))]
)


def version_marks(anomalies: pa.Table) -> pa.Table:
    """Return ANOMALIES as one mark per version, ascending: the columns of `MARKS`.

    `jumps` names the measures that jump, such as `rows, null_rate of amount`; `rules` has their rules with the numbers.
    """
    columns = pc.if_else(
        anomalies["column"].is_valid(), pc.binary_join_element_wise(" of ", anomalies["column"], ""), ""
    )
    rows = pa.table(
        {
            "version": anomalies["version"],
            "word": pc.binary_join_element_wise(anomalies["measure"], columns, ""),
            "rule": anomalies["rule"],
        }
    )
    marked = rows.group_by("version", use_threads=False).aggregate([("word", "list"), ("rule", "list")])
    words = pc.binary_join(marked["word_list"].combine_chunks(), ", ")
    marks = pa.table([marked["version"], words, marked["rule_list"]], schema=MARKS)
    return marks.sort_by("version")


def with_marks(commits: pa.Table, anomalies: pa.Table | None) -> pa.Table:
    """Return commits with the columns `jumps` and `rules`, null if nothing jumps."""
    marks = MARKS.empty_table() if anomalies is None else version_marks(anomalies)
    at = pc.index_in(commits["version"], marks["version"].combine_chunks())
    for name in ("jumps", "rules"):
        commits = commits.append_column(MARKS.field(name), marks[name].combine_chunks().take(at))
    return commits
