"""How a table is opened: its format is found by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from snapshot_explorer.formats import detect
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike


def open_table(
    path: str | PathLike[str],
    *,
    branch: str | None = None,
    format: str | None = None,  # noqa: A002 - the word that users know from Spark
    storage_options: Mapping[str, Any] | None = None,
    staleness_limit: timedelta = timedelta(0),
) -> Table:
    """Return the table in the folder `path`, opened at its newest version. Nothing is ever written to it.

    Costs a number of small requests that does not grow with the table's history.

    Args:
        path: A local folder or a URL such as `s3://lake/shop.db/orders`.
        branch: Look at this branch's history instead of the main one.
        format: Insist on `paimon` or `delta`; without it the format is found from the folder.
        storage_options: Credentials and settings for fsspec; they are never shown.
        staleness_limit: How old what is known may be when the newest version is asked for; by default the
            storage is asked each time.

    Raises:
        TableNotFoundError: There is no table, or no such branch.
        UnsupportedFeatureError: It is a kind of table that is not read.
        StorageError: The storage refused or did not answer.
        MissingDependencyError: The storage needs a package that is not installed.
        BrokenTableError: The newest snapshot cannot be read; the file is named.
    """
    storage = Storage(path, storage_options)
    table_format = detect(storage, format)(storage, branch=branch)
    return Table(storage.root, table_format, branch=branch, staleness_limit=staleness_limit)
