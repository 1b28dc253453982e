"""How a table is opened: its format is found by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from snapshot_explorer.formats import detect
from snapshot_explorer.limits import DEFAULT, Limits
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from snapshot_explorer.storage import ExternalFiles


def open_table(
    path: str | PathLike[str],
    *,
    branch: str | None = None,
    format: str | None = None,  # noqa: A002 - the word that users know from Spark
    storage_options: Mapping[str, Any] | None = None,
    staleness_limit: timedelta = timedelta(0),
    external_files: ExternalFiles = "allow",
    limits: Limits = DEFAULT,
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
        external_files: Whether files outside of the folder are read that the table's metadata names, which Paimon's
            external paths and Delta's shallow clones need: on the local disk any file, on an object store whatever the
            keys reach. With `allow` they are, and a warning in the log says so once; `refuse` forbids it.
        limits: How much memory a file of metadata may cost; `Limits(metadata_bytes=8 << 30)` raises one of them.

    Raises:
        TableNotFoundError: There is no table, or no such branch.
        UnsupportedFeatureError: It is a kind of table that is not read.
        InvalidArgumentError: `external_files` is neither `allow` nor `refuse`.
        StorageError: The storage refused or did not answer.
        MissingDependencyError: The storage needs a package that is not installed.
        CorruptTableError: The newest snapshot cannot be read; the file is named.
        LimitError: A file of metadata asks for more than `limits`; the file and the limit are named.
    """
    storage = Storage(path, storage_options, external_files=external_files, limits=limits)
    table_format = detect(storage, format)(storage, branch=branch)
    return Table(storage.root, table_format, branch=branch, staleness_limit=staleness_limit, storage=storage)
