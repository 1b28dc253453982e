"""Counts the rows that commits changed by reading the rows that differ."""

import pyarrow as pa

from snapshot_explorer.analysis.diff.diff import row_diff
from snapshot_explorer.analysis.diff.diff_plan import DiffRequest, plan_diff
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.history import History


def count_rows(history: History, commits: pa.Table) -> tuple[str, ...]:
    """Read the rows that differ for each of COMMITS that has no counts; the history then returns these counts.

    Rows are compared by the primary key; without one, an updated row is a deleted and an inserted one. Returns a
    sentence if the rows of some commits cannot be compared.
    """
    uncounted = commits.filter(pc.and_(commits["rows_inserted"].is_null(), commits["kind"].is_valid()))
    table_format, errors = history.table_format, dict[int, SnapshotExplorerError]()
    with step("Counting rows", total=len(uncounted)) as counting:
        for commit in uncounted.select(["version", "committed_at"]).to_pylist():
            version = commit["version"]
            before = history.listing.predecessor(version)
            try:
                if before not in history.listing.versions or history.gaps([before, version]):
                    raise SnapshotNotFoundError("the version before the commit is not known")
                sides = table_format.version(before), table_format.version(version)
                plan = plan_diff(history.path, table_format, *sides, DiffRequest(name=history.name))
                history.open_branch.row_counts.keep(commit, row_diff(plan).counts)
            except SnapshotExplorerError as error:
                errors[version] = error
            counting.advance()
    if not errors:
        return ()
    return (
        Message(
            f"The rows of {pluralize(len(errors), 'commit')} cannot be counted, such as those of version "
            f"{next(iter(errors))}: ",
            without_period(next(iter(errors.values())).message),
            ".",
        ),
    )
