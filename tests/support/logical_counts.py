"""Compares the logical counts of commits with the rows that differ between versions."""

import re

from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError

COUNTS = ("rows_inserted", "rows_updated", "rows_deleted")
_UNREADABLE = re.compile(
    r"has expired|does not exist|no longer|changed by schema on read|has only metadata|archive|values of these types|"
    r"bootstrap|no other columns|of other types"
)
"""Why the rows of a version cannot be compared."""


def verified_counts(table):
    """Return (version, counts, differing rows) of each commit of a table that has counts and versions to compare."""
    commits = table.history(limit=None).to_arrow().to_pylist()[::-1]
    for before, commit in zip([None, *commits], commits, strict=False):
        counts = tuple(commit[name] for name in COUNTS)
        if None in counts:
            assert counts == (None,) * len(COUNTS), commit
            assert commit["rows_rewritten"] is None, commit
            assert commit["rows_source"] in (None, "net", "contradicted"), commit
            continue
        assert min(*counts, commit["rows_rewritten"] or 0) >= 0, commit
        version = commit["version"]
        try:
            if before is not None:
                yield version, counts, _differing_rows(table, before["version"], version)
            elif commit["total_rows"] == counts[0]:  # the table begins here
                yield version, counts, (table.at(version).count(), 0, 0)
        except SnapshotExplorerError as error:
            if not _UNREADABLE.search(str(error)):
                raise


def check(table):
    """Assert that every count is that of the rows that differ, and return how many were compared.

    Without a key an updated row is a deleted and an inserted one. Rows may be updated to the same values, so that fewer
    rows differ: of these only the bounds are checked.
    """
    compared = 0
    for version, counts, differing in verified_counts(table):
        inserted, updated, deleted = counts
        new, gone = inserted + updated, deleted + updated
        rows_in, rows_out = differing[0] + differing[1], differing[2] + differing[1]
        told = f"{table!r} version {version}: counts {counts}, rows {differing}"
        assert rows_in - rows_out == inserted - deleted, told
        if updated:
            assert (rows_in, rows_out) == (min(rows_in, new), min(rows_out, gone)), told
        else:
            assert (rows_in, rows_out) == (new, gone), told
        compared += 1
    return compared


def _differing_rows(table, before, version):
    """Return the inserted, updated and deleted rows, of the columns that have the same type in both versions.

    Whole rows are compared where several have one key.
    """
    types = [{column.name: column.type for column in table.at(number).schema.columns} for number in (before, version)]
    columns = [name for name, dtype in types[1].items() if types[0].get(name, dtype) == dtype]
    chosen = columns if 0 < len(columns) < len(types[1]) else None
    try:
        counts = table.diff_rows(before, version, columns=chosen).counts
    except InvalidArgumentError as error:
        if "is not unique" not in str(error):
            raise
        counts = table.diff_rows(before, version, key=[], columns=chosen).counts
    return tuple(counts.get(name, 0) for name in ("inserted", "updated", "deleted"))
