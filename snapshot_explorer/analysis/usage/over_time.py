"""Usage over time: live and held bytes at each version, and write amplification."""

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.usage.groups import Grouped
from snapshot_explorer.analysis.usage.holders import Holders
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import MAINTENANCE_KINDS
from snapshot_explorer.formats.unread_versions import unread_notes


def over_time(holders: Holders) -> Grouped:
    """Return USAGE_OVER_TIME of the versions of the open history, newest first, and the commits that cannot be read.

    Held files are those of the versions that still exist: what expired before is unknown, and not counted.
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
    }
    rows = frames.table_of(frames.USAGE_OVER_TIME, columns).take(pa.array(np.arange(len(versions))[::-1]))
    return rows, unread_notes(unread, "the commit of")


def _cumulated(values: pa.Array) -> pa.Array:
    """Return sums up to each value; null from the first null on."""
    return pc.cumulative_sum(values, skip_nulls=False)
