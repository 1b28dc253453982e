"""Tables of which a catalog decides what was committed.

Source: delta PROTOCOL.md, "Catalog-managed tables".
"""

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.delta.log.layout import LOG, STAGED
from snapshot_explorer.formats.delta.log.log import Log
from snapshot_explorer.formats.delta.log.log_segment import staged_versions
from snapshot_explorer.storage import Storage

_FEATURES = frozenset({"catalogManaged", "catalogOwned-preview"})


def check_published(storage: Storage, log: Log, newest: int) -> None:
    """Refuse a table whose catalog may have commits that its log does not have yet.

    Staged commits that were published since are ordinary ones. Without the feature, staged commits count for nothing.
    One listing, and what tells the protocol.

    Raises:
        UnsupportedFeatureError: There are staged commits after the newest published version.
    """
    staged = [version for version in staged_versions(storage.list(f"{LOG}/{STAGED}")) if version > newest]
    if not staged:
        return
    protocol, _ = log.protocol_and_metadata(newest)
    named = sorted(_FEATURES & (protocol.reader_features or frozenset()))
    if named:
        raise UnsupportedFeatureError(
            f"{storage.root} has the reader feature {named[0]}: its catalog decides what was committed. "
            f"{LOG}/{STAGED} holds commits of version {staged[0]} on that are not published, so which version is the "
            "newest cannot be told from the files. Publish them through the catalog, then open the table again."
        )
