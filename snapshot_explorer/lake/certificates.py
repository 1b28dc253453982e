"""The results of a lake's trace as a document to keep, which can be signed, and whether they still hold."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from base64 import b64decode, b64encode
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import (
    UNREADABLE,
    InvalidArgumentError,
    MissingDependencyError,
    SnapshotExplorerError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.core.text import format_utc, pluralize
from snapshot_explorer.history import history_of
from snapshot_explorer.lake.lake import open_lake
from snapshot_explorer.lake.tracing import ABSENT, FOUND, NO_COLUMN, UNKNOWN
from snapshot_explorer.results import Frame
from snapshot_explorer.results.outputs import new_output_path, output_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from snapshot_explorer.lake.tracing import LakeTrace
    from snapshot_explorer.table import Table

_DOCUMENT = "snapshot_explorer trace certificate"
_HIDDEN = "Left out together with the condition."
_GONE = (ABSENT, NO_COLUMN)
_Document = dict[str, Any]


def write_certificate(
    trace: LakeTrace,
    path: str | PathLike[str],
    *,
    hide_condition: bool,
    key: str | PathLike[str] | None,
    overwrite: bool,
) -> Path:
    """Write the certificate; see `LakeTrace.certificate`."""
    target = new_output_path(path, overwrite=overwrite)
    document = _document(trace, hide_condition=hide_condition)
    document["digest"] = _digest(document)
    if key is not None:
        document["signature"] = _signature(document["digest"], key)
    with output_file(target) as file:
        file.write((json.dumps(document, indent=2, sort_keys=True) + "\n").encode())
    return target


def _document(trace: LakeTrace, *, hide_condition: bool) -> _Document:
    salt = secrets.token_hex(16)
    condition: _Document = {"where": trace.where, "columns": dict(trace.columns)}
    if hide_condition:
        condition = {"salt": salt, "where_sha256": _hash(salt, trace.where), "columns": dict(trace.columns)}
    tables, files = trace.tables.to_arrow().to_pylist(), trace.files.to_arrow().to_pylist()
    for row in tables:
        row["commit"] = _commit_of(trace.opened.get(row["name"]), row["newest_version"])
        if hide_condition:
            row["condition"] = None
            row["open_questions"] = row["open_questions"] and _HIDDEN
    for row in files if hide_condition else ():
        row["reason"] = row["reason"] and _HIDDEN
    return {
        "document": _DOCUMENT,
        "lake": trace.name,
        **condition,
        "examined_at": format_utc(trace.examined_at),
        "verdict": trace.verdict,
        "is_complete": trace.is_complete,
        "tables": tables,
        "files_that_no_version_names": files,
        "not_looked_at": list(trace.notes),
    }


def _commit_of(table: Table | None, version: int | None) -> str | None:
    """Return the identity of a version's commit; None if it cannot be read."""
    if table is None or version is None:
        return None
    try:
        return history_of(table).format.fingerprint(version)
    except UNREADABLE:
        return None


def _hash(salt: str, where: str) -> str:
    return hashlib.sha256(f"{salt} {where}".encode()).hexdigest()


def _digest(document: Mapping[str, Any]) -> str:
    content = {name: value for name, value in document.items() if name not in ("digest", "signature")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _signature(digest: str, key: str | PathLike[str]) -> dict[str, str]:
    _need_cryptography()
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - optional
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - optional

    content = _content(key)
    try:
        private = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"{os.fspath(key)} is no private key in PEM without a password.") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise InvalidArgumentError(
            f"{os.fspath(key)} is a key of another kind than Ed25519. Make one: openssl genpkey -algorithm ed25519."
        )
    raw = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return {
        "algorithm": "Ed25519 of the digest",
        "public_key": b64encode(raw).decode(),
        "value": b64encode(private.sign(digest.encode())).decode(),
    }


def _need_cryptography() -> None:
    if find_spec("cryptography") is None:
        raise MissingDependencyError("Signatures need cryptography, which is not installed: pip install cryptography.")


def _content(path: str | PathLike[str]) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"{os.fspath(path)} cannot be read: {error.strerror}.") from error


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
        InvalidArgumentError: The file is no certificate, was changed since, or lacks the signature of the key; or
            `where` is missing, or not the condition of the certificate.
        TableNotFoundError: The lake is not there.
    """
    document = _read(path)
    signed = _check_signature(document, path, public_key)
    condition = _condition_of(document, where)
    now = open_lake(document["lake"] if lake is None else lake, **options).trace(condition, document["columns"])
    before = {row["name"]: row for row in document["tables"]}
    after = {row["name"]: row for row in now.tables.to_arrow().to_pylist()}
    rows = [
        _compared(name, before.get(name), after.get(name), now.opened.get(name)) for name in sorted({*before, *after})
    ]
    found = pa.Table.from_pylist(rows, frames.CERTIFICATE_CHECK)
    holding = found["holds"].to_pylist()
    yes, no, unknown = map(holding.count, (True, False, None))
    notes = (
        f"{yes} of {pluralize(len(before), 'result')} still hold, {no} do not, {unknown} are unknown.",
        f"The certificate is of {document['examined_at']}. {signed}",
        f"Now: {now.verdict}",
    )
    return Frame(found, title=f"Certificate of {document['lake']}", noun="tables", limit=len(found), notes=tuple(notes))


def _read(path: str | PathLike[str]) -> _Document:
    content = _content(path)
    try:
        document = json.loads(content)
    except ValueError as error:
        raise InvalidArgumentError(f"{os.fspath(path)} is no certificate: it is not JSON.") from error
    if not isinstance(document, dict) or document.get("document") != _DOCUMENT:
        raise InvalidArgumentError(
            Message(
                f"{os.fspath(path)} is no certificate. One is written by ",
                Hint("lake.trace", {"where": ...}),
                ".certificate(path).",
            )
        )
    if document.get("digest") != _digest(document):
        raise InvalidArgumentError(f"{os.fspath(path)} was changed after it was written: its digest does not fit.")
    return document


def _check_signature(
    document: Mapping[str, Any], path: str | PathLike[str], public_key: str | PathLike[str] | None
) -> str:
    """Return a sentence on who signed the document."""
    signature = document.get("signature")
    if signature is None:
        if public_key is not None:
            raise InvalidArgumentError(f"{os.fspath(path)} is not signed.")
        return "It is not signed."
    _need_cryptography()
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - optional
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - optional
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - optional

    try:
        raw = b64decode(signature["public_key"])
        Ed25519PublicKey.from_public_bytes(raw).verify(b64decode(signature["value"]), document["digest"].encode())
    except (InvalidSignature, ValueError, TypeError, KeyError) as error:
        raise InvalidArgumentError(f"The signature of {os.fspath(path)} is not that of its content.") from error
    if public_key is None:
        return f"It is signed with the key {signature['public_key']}; whose that is was not checked: name public_key."
    content = _content(public_key)
    try:
        known = serialization.load_pem_public_key(content)
    except ValueError as error:
        raise InvalidArgumentError(f"{os.fspath(public_key)} is no public key in PEM.") from error
    if known.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw) != raw:
        raise InvalidArgumentError(f"{os.fspath(path)} is signed with another key than {os.fspath(public_key)}.")
    return f"It is signed with {os.fspath(public_key)}."


def _condition_of(document: Mapping[str, Any], where: str | None) -> str:
    if "where" in document:
        if where not in (None, document["where"]):
            raise InvalidArgumentError("where is not the condition of the certificate, which has it: leave it out.")
        return str(document["where"])
    if where is None:
        raise InvalidArgumentError("The certificate has only a hash of its condition. Name it: where=...")
    if _hash(document["salt"], where) != document["where_sha256"]:
        raise InvalidArgumentError("where is not the condition of the certificate: their hashes differ.")
    return where


def _compared(
    name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, table: Table | None
) -> dict[str, object]:
    """Return the row of CERTIFICATE_CHECK of a table."""
    then, now = (row and row["outcome"] for row in (before, after))
    known = [outcome for outcome in (then, now) if outcome in (FOUND, *_GONE)]
    holds = None if len(known) < 2 else (known[0] in _GONE) == (known[1] in _GONE)  # noqa: PLR2004 - both
    return {
        "name": name,
        "outcome": then,
        "outcome_now": now,
        "holds": holds,
        "change": _change(before, after, table),
        "version": before and before["newest_version"],
        "version_now": after and after["newest_version"],
    }


def _change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, table: Table | None) -> str | None:
    """Return in words what happened to a table since; None if it cannot be read now."""
    if before is None:
        return "the table is new"
    if after is None:
        return "the table is gone"
    version = before["newest_version"]
    if after["outcome"] == UNKNOWN and after["newest_version"] is None:
        return None
    if version is None:
        return "it could not be read then" if before["outcome"] == UNKNOWN else "it had no version"
    commit = _commit_of(table, version)
    if commit is not None and commit != before["commit"]:
        return "its history was replaced"
    try:
        later = () if table is None else [number for number in history_of(table).listing.versions if number > version]
    except SnapshotExplorerError:
        return None
    return f"{pluralize(len(later), 'new version')}" if later else "no new version"
