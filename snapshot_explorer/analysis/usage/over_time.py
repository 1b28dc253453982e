"""Usage over time: live and held bytes at each version, write amplification, and what conditions would have read."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.row_history.affected_versions import affected_versions
from snapshot_explorer.analysis.usage.groups import Grouped
from snapshot_explorer.analysis.usage.held_files import Ints, files_at
from snapshot_explorer.analysis.usage.holders import Holders
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import MAINTENANCE_KINDS
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.formats.unread_versions import unread_notes
from snapshot_explorer.history import History


def over_time(holders: Holders, where: Sequence[str] = ()) -> Grouped:
    """Return USAGE_OVER_TIME of the versions of the open history, newest first, and the commits that cannot be read.

    Held files are those of the versions that still exist: what expired before is unknown, and not counted.

    Args:
        where: Conditions on columns of the newest version, whose files to read are counted. Reads statistics once each.
    """
    files, source = holders.files, holders.sources[0]
    versions = files.histories[0].versions
    first, everything = files.first_versions(versions), np.ones(files.count, np.bool_)
    number, size = files.totals_by(first, len(versions), everything)
    count, total = np.cumsum(number), _cumulated(size)
    live_count, live_size = files.at_versions(versions, everything)
    known = [version for version in versions.tolist() if version in source.listing.versions]
    commits, unread = source.open_branch.commits(known)
    commits = commits.take(pc.index_in(pa.array(versions), commits["version"].combine_chunks()))
    kind, added = commits["kind"].combine_chunks(), commits["added_bytes"].combine_chunks()
    nothing = pa.scalar(None, pa.int64())
    rewritten = pc.if_else(pc.is_in(kind, pa.array(MAINTENANCE_KINDS)), added, pc.multiply(added, 0))
    rewritten = pc.if_else(kind.is_valid(), rewritten, nothing)
    new = _cumulated(pc.subtract(added, rewritten))
    amplification = pc.divide(_cumulated(added).cast(pa.float64()), pc.if_else(pc.equal(new, 0), nothing, new))
    columns = {
        "version": pa.array(versions),
        "committed_at": files.histories[0].lifetimes.committed_at.take(
            pa.array(files.histories[0].positions(versions))
        ),
        "kind": kind,
        "operation": commits["operation"],
        "files": pa.array(count),
        "size_bytes": total,
        "live_files": pa.array(live_count),
        "live_bytes": live_size,
        "held_files": pa.array(count - live_count),
        "held_bytes": pc.subtract(total, live_size),
        "added_bytes": added,
        "rewritten_bytes": rewritten,
        "write_amplification": amplification,
        "removed_bytes": commits["removed_bytes"],
        **(_read_files(source, where, versions) if where and len(versions) else {}),
    }
    rows = frames.table_of(frames.USAGE_OVER_TIME, columns).take(pa.array(np.arange(len(versions))[::-1]))
    return rows, unread_notes(unread, "the commit of")


def _read_files(source: History, where: Sequence[str], versions: Ints) -> dict[str, object]:
    """Return the columns on the files that readers with these conditions cannot skip, at each version."""
    number, size = np.zeros(len(versions), np.int64), pa.array(np.zeros(len(versions), np.int64))
    reference = source.format.version(int(versions[-1]))
    for text in where:
        condition = parse_condition(text, reference.arrow_schema)
        affected = affected_versions(source.format, condition, int(versions[-1]))
        known = np.asarray(affected.lifetimes.versions)
        rows = affected.lifetimes.intervals.rows.filter(pa.array(affected.admits))
        begin, end = rows["first"].to_numpy(), np.minimum(rows["last"].to_numpy(), len(known))
        sizes = rows["size_bytes"].combine_chunks()
        more, more_bytes = files_at(np.searchsorted(known, versions), begin, end, sizes, len(known))
        number, size = number + more, pc.add(size, more_bytes)
    return {"read_files": pa.array(number), "read_bytes": size}


def _cumulated(values: pa.Array) -> pa.Array:
    """Return sums up to each value; null from the first null on."""
    return pc.cumulative_sum(values, skip_nulls=False)
