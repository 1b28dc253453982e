"""`verify_certificate`: whether the results of a lake's trace, which were kept as a document, still hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.history import history_of
from snapshot_explorer.lake.certificate_documents import check_signature, condition_of, read_document
from snapshot_explorer.lake.lake import open_lake
from snapshot_explorer.lake.tracing import ABSENT, FOUND, NO_COLUMN, UNKNOWN, commit_of
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from snapshot_explorer.table import Table


@reports_lacking_resources
def verify_certificate(
    path: str | PathLike[str],
    lake: str | PathLike[str] | None = None,
    *,
    where: str | None = None,
    public_key: str | PathLike[str] | None = None,
    **options: Any,
) -> Frame:
    """Return whether the results of a certificate still hold: CERTIFICATE_CHECK, a row per table.

    The lake is opened and traced again, with the cost of `Lake.trace`. A result that was found or absent holds if it is
    the same now; it is null if one of both is unknown. The notes of the frame are about the document: when it was
    written, and who signed it.

    Args:
        path: The certificate, as `LakeTrace.certificate` wrote it.
        lake: The folder or namespace of the lake, if it has moved since.
        where: The condition, if the certificate has only its hash.
        public_key: A file with the public key that must have signed it, in PEM.
        options: As for `open_lake`, such as `storage_options`.

    Raises:
        InvalidArgumentError: The file is not a certificate, was changed since, or lacks the signature of the key; or
            `where` is missing, or not the condition of the certificate.
        TableNotFoundError: The lake is not there.
    """
    document = read_document(path)
    signed = check_signature(document, path, public_key)
    condition = condition_of(document, where)
    now = open_lake(document["lake"] if lake is None else lake, **options).trace(condition, document["columns"])
    before = {row["name"]: row for row in document["tables"]}
    after = {row["name"]: row for row in now.tables.to_arrow().to_pylist()}
    rows = [
        _compared(name, before.get(name), after.get(name), now.opened.get(name)) for name in sorted({*before, *after})
    ]
    checked = pa.Table.from_pylist(rows, frames.CERTIFICATE_CHECK)
    holding = checked["holds"].to_pylist()
    yes, no, unknown = map(holding.count, (True, False, None))
    notes = (
        f"{yes} of {pluralize(len(before), 'result')} still hold, {no} do not, {unknown} are unknown.",
        f"The certificate is of {document['examined_at']}. {signed}",
        f"Now: {now.verdict}",
    )
    return Frame(checked, title=f"Certificate of {document['lake']}", noun="tables", limit=len(checked), notes=notes)


def _compared(
    name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, table: Table | None
) -> dict[str, object]:
    """Return the row of CERTIFICATE_CHECK of a table."""
    then, now = (row and row["outcome"] for row in (before, after))
    return {
        "name": name,
        "outcome": then,
        "outcome_now": now,
        "holds": (then == FOUND) == (now == FOUND) if {then, now} <= {FOUND, ABSENT, NO_COLUMN} else None,
        "change": _change(before, after, table),
        "version": before and before["newest_version"],
        "version_now": after and after["newest_version"],
    }


def _change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, table: Table | None) -> str | None:
    """Return in words what happened to a table since; None if it cannot be read now."""
    if before is None:
        return "not in the certificate"
    if after is None:
        return "the table is gone"
    version = before["newest_version"]
    if after["outcome"] == UNKNOWN and after["newest_version"] is None:
        return None
    if version is None:
        return "it could not be read then" if before["outcome"] == UNKNOWN else "it had no version"
    commit = commit_of(table, version)
    if commit is not None and commit != before["commit"]:
        return "its history was replaced"
    try:
        later = () if table is None else [number for number in history_of(table).listing.versions if number > version]
    except SnapshotExplorerError:
        return None
    return f"{pluralize(len(later), 'new version')}" if later else "no new version"
