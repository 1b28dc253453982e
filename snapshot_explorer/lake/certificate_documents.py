"""Certificates as files: JSON documents with a digest of their content, which a key can sign."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from base64 import b64decode, b64encode
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapshot_explorer.core.errors import InvalidArgumentError, MissingDependencyError
from snapshot_explorer.results.outputs import new_output_path, output_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

DOCUMENT = "snapshot_explorer trace certificate"
"""What every certificate says of itself."""
Document = dict[str, Any]
_NEEDED = frozenset(("lake", "columns", "examined_at", "tables"))


def write_document(
    document: Document, path: str | PathLike[str], *, key: str | PathLike[str] | None, overwrite: bool
) -> Path:
    """Write a certificate with its digest, signed if a key is given; see `LakeTrace.certificate`."""
    target = new_output_path(path, overwrite=overwrite)
    document = {"document": DOCUMENT, **document}
    document["digest"] = _digest(document)
    if key is not None:
        document["signature"] = _signature(document["digest"], key)
    with output_file(target) as file:
        file.write((json.dumps(document, indent=2, sort_keys=True) + "\n").encode())
    return target


def read_document(path: str | PathLike[str]) -> Document:
    """Return a certificate.

    Raises:
        InvalidArgumentError: The file is not a certificate, or was changed after it was written.
    """
    content = _content(path)
    try:
        document = json.loads(content)
    except ValueError as error:
        raise InvalidArgumentError(f"{os.fspath(path)} is not a certificate: it is not JSON.") from error
    if not isinstance(document, dict) or document.get("document") != DOCUMENT or not document.keys() >= _NEEDED:
        raise InvalidArgumentError(f"{os.fspath(path)} is not a certificate. The trace of a lake writes one.")
    if document.get("digest") != _digest(document):
        raise InvalidArgumentError(f"{os.fspath(path)} was changed after it was written: its digest does not fit.")
    return document


def hidden_condition(where: str) -> Document:
    """Return a salted hash of a condition, in place of it."""
    salt = secrets.token_hex(16)
    return {"salt": salt, "where_sha256": _hash(salt, where)}


def condition_of(document: Mapping[str, Any], where: str | None) -> str:
    """Return the condition of a certificate; `where` is needed where it has only its hash."""
    if "where" in document:
        if where not in (None, document["where"]):
            raise InvalidArgumentError("where is not the condition of the certificate, which has it: leave it out.")
        return str(document["where"])
    if where is None:
        raise InvalidArgumentError("The certificate has only a hash of its condition. Name it: where=...")
    if _hash(document["salt"], where) != document["where_sha256"]:
        raise InvalidArgumentError("where is not the condition of the certificate: their hashes differ.")
    return where


def check_signature(
    document: Mapping[str, Any], path: str | PathLike[str], public_key: str | PathLike[str] | None
) -> str:
    """Return a sentence on who signed a certificate.

    Raises:
        InvalidArgumentError: The signature does not match the content, or was made with another key.
    """
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
        raise InvalidArgumentError(f"The signature of {os.fspath(path)} does not match its content.") from error
    if public_key is None:
        return f"It is signed with the key {signature['public_key']}; whose that is was not checked: name public_key."
    content = _content(public_key)
    try:
        known = serialization.load_pem_public_key(content)
        own = known.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    except ValueError as error:
        raise InvalidArgumentError(f"{os.fspath(public_key)} is not a public key of Ed25519 in PEM.") from error
    if own != raw:
        raise InvalidArgumentError(f"{os.fspath(path)} is signed with another key than {os.fspath(public_key)}.")
    return f"It is signed with {os.fspath(public_key)}."


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
        raise InvalidArgumentError(f"{os.fspath(key)} is not a private key in PEM without a password.") from error
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
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgumentError(f"A path was expected, got {path!r}.")
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"{os.fspath(path)} cannot be read: {error.strerror}.") from error
