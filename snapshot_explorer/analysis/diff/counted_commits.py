"""Counts the rows that commits changed by reading the rows that differ."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from snapshot_explorer.analysis.diff.diff import row_diff
from snapshot_explorer.analysis.diff.diff_plan import DiffRequest, plan_diff
from snapshot_explorer.analysis.diff.diff_result import RowDiff
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import SnapshotExplorerError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Split
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.engines.local import count
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.history import History


def count_rows(
    history: History, commits: pa.Table, *, is_small: Callable[[Sequence[Split]], bool] = lambda _: True
) -> tuple[str, ...]:
    """Read the rows that differ for each of COMMITS that has no counts; the history then returns these counts.

    Rows are compared by the primary key; without one, an updated row is a deleted and an inserted one. Returns a
    sentence if the rows of some commits cannot be compared.

    Args:
        is_small: Returns whether to read the splits that a commit changed; by default all are
            read. Other commits stay without counts.
    """
    uncounted = commits.filter(pc.and_(commits["rows_inserted"].is_null(), commits["kind"].is_valid()))
    errors = dict[int, SnapshotExplorerError]()
    with step("Counting rows", total=len(uncounted)) as counting:
        for commit in uncounted.select(["version", "committed_at"]).to_pylist():
            try:
                counts = _count(history, commit["version"], is_small)
                if counts is not None:
                    history.open_branch.row_counts.keep(commit, counts)
            except SnapshotExplorerError as error:
                errors[commit["version"]] = error
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


def keep_counts(history: History, commits: pa.Table, diff: RowDiff) -> None:
    """Keep the counts of a row diff if it is the change of a commit: by the primary key, from the version before it.

    Lists nothing.

    Args:
        commits: COMMITS, newest first, of all versions or of the newest ones.
    """
    a, b, versions = diff.plan.a.number, diff.plan.b.number, commits["version"]
    at = -1 if b is None else pc.index(versions, b).as_py()
    if at < 0 or versions[at + 1 : at + 2].to_pylist() != [a] or diff.plan.gaps or not diff.plan.is_declared_key:
        return
    history.open_branch.row_counts.keep(commits.slice(at, 1).to_pylist()[0], diff.counts)


def _count(history: History, version: int, is_small: Callable[[Sequence[Split]], bool]) -> Mapping[str, int] | None:
    """Return the rows that differ from the version before, by kind; of the first version of a table, all rows.

    None if the splits are not read.
    """
    table_format, listing = history.table_format, history.listing
    after = table_format.version(version)
    if version == listing.versions[0] and not listing.has_expired:
        splits = after.plan(None).splits
        return {"inserted": count(after, splits, scan_of(after.arrow_schema, ()))} if is_small(splits) else None
    before = listing.predecessor(version)
    if before not in listing.versions or history.gaps([before, version]):
        raise SnapshotNotFoundError("The version before it is not known.")
    plan = plan_diff(history.path, table_format, table_format.version(before), after, DiffRequest(name=history.name))
    return row_diff(plan).counts if is_small([*plan.a.splits, *plan.b.splits]) else None
