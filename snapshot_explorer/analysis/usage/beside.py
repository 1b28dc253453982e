"""Files in a table's folder beside the data files of its versions: metadata by kind, and what no metadata names."""

from datetime import UTC, datetime

import pyarrow as pa

from snapshot_explorer.analysis.retention import find_orphans
from snapshot_explorer.analysis.usage.holders import Holders
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.history import History
from snapshot_explorer.storage.same_files import match_files

_OLDER_THAN = "3d"
_GROUPS = {"data": "other data files", "deletes": "delete files"}
_UNNAMED = "unnamed files of the last 3 days"


def rows_beside(history: History, holders: Holders) -> tuple[list[dict[str, object]], list[str]]:
    """Return rows of USAGE for the other files in the table's folder, each once, and what could not be read.

    The kind is found from names and folders. Lists each folder once, and reads all metadata, as `Table.orphans`.
    """
    now, table_format = datetime.now(UTC), history.table_format
    orphans = find_orphans(table_format, table_format.storage, older_than=_OLDER_THAN, name=history.name, now=now)
    if not orphans.is_complete:
        return [{"group": "all other files"}], list(orphans.unread)
    named = orphans.in_state("named")
    data = [item.lifetimes.intervals.paths(item.lifetimes.intervals.rows) for item in holders.files.histories]
    matched = match_files(table_format.storage, named["path"].combine_chunks(), pa.concat_arrays(data))
    named = named.filter(pc.invert(matched.is_named))
    # The time does not matter for the kind.
    dated = named.set_column(named.column_names.index("modified"), "modified", pa.array([now] * len(named)))
    kinds = pa.array([file.kind for file in table_format.maintenance.clean_up(dated, now).files], pa.string())
    groups = [
        (_GROUPS.get(kind, f"{kind} files"), named.filter(pc.equal(kinds, kind)))
        for kind in sorted(kinds.unique().to_pylist())
    ]
    young = pa.concat_tables([orphans.in_state("under way"), orphans.in_state("young")])
    groups += [("orphaned files", orphans.files.to_arrow()), *([(_UNNAMED, young)] if len(young) else [])]
    return [_row(group, files["size_bytes"]) for group, files in groups], []


def _row(group: str, sizes: pa.ChunkedArray) -> dict[str, object]:
    total = None if sizes.null_count else pc.sum(sizes, min_count=0).as_py()
    return {"group": group, "files": len(sizes), "size_bytes": total}
