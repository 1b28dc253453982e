"""Files beside those that versions hold: changelogs, and files that no metadata names."""

from datetime import UTC, datetime

import pyarrow as pa

from snapshot_explorer.analysis.retention import find_orphans
from snapshot_explorer.analysis.usage.holders import Holders
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.unread_versions import readable_changes, unread_notes
from snapshot_explorer.history import History

_OLDER_THAN = "3d"


def changelog_row(holders: Holders) -> tuple[dict[str, object], list[str]]:
    """Return a row of USAGE for the files of row changes, each once, and what could not be read.

    Reads the commits of all histories again. Files that a version has too are counted with the version.
    """
    notes: list[str] = []
    parts = []
    for source in holders.sources:
        listing = source.listing
        first = listing.first_unexpired
        kept_by_tag = {
            version
            for version in listing.versions
            if first is not None and version < first and version not in listing.without_files
        }
        versions = [item for item in listing.versions if item not in kept_by_tag.union(listing.without_commit)]
        changes, unread = readable_changes(source.table_format, versions)
        notes += unread_notes(unread, "the changelog of")
        is_added = pc.and_(pc.equal(changes["list"], "changelog"), pc.equal(changes["change"], "add"))
        parts.append(changes.filter(is_added).select(["path", "size_bytes"]))
    files = pa.concat_tables(parts)
    data = [history.lifetimes.intervals.paths(history.lifetimes.intervals.rows) for history in holders.files.histories]
    files = files.filter(pc.invert(pc.is_in(files["path"], value_set=pa.concat_arrays(data))))
    sizes = dict(zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True))
    unknown = bool(notes)
    return _row("changelogs", None if unknown else list(sizes.values())), notes


def orphan_row(history: History) -> tuple[dict[str, object], list[str]]:
    """Return a row of USAGE for files older than three days that no metadata names; see `Table.orphans`.

    Lists each folder once, and reads all metadata.
    """
    storage = history.table_format.storage
    orphans = find_orphans(
        history.table_format, storage, older_than=_OLDER_THAN, name=history.name, now=datetime.now(UTC)
    )
    if not orphans.is_complete:
        return _row("orphaned files", None), list(orphans.unread)
    return _row("orphaned files", orphans.files.to_arrow()["size_bytes"].to_pylist()), []


def _row(group: str, sizes: list[int | None] | None) -> dict[str, object]:
    known = [] if sizes is None else [size for size in sizes if size is not None]
    is_known = sizes is not None and len(known) == len(sizes)
    return {
        "group": group,
        "files": None if sizes is None else len(sizes),
        "size_bytes": sum(known) if is_known else None,
    }
