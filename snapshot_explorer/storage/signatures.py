"""Signatures of requests to S3, Azure and Google, as headers."""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote

_NO_CONTENT = hashlib.sha256(b"").hexdigest()
_AZURE_VERSION = "2023-11-03"
_AZURE_SIGNED = ("if-match", "", "", "range")
"""The last of the standard headers that Azure signs; the seven before are not sent."""
_AZURE_UNSENT = 7
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"
_TOKEN_SECONDS = 3600
_RENEWED_SECONDS = 1800
"""Seconds after which a Google token is renewed."""


class Message(NamedTuple):
    """A request without a content, before it is signed."""

    method: str
    host: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Headers, with names in lower case."""

    @property
    def target(self) -> str:
        """The path with its query."""
        return f"{self.path or '/'}?{encode_query(self.query)}" if self.query else self.path or "/"


Sign = Callable[[Message], Mapping[str, str]]
"""Returns all headers of a request, including the headers of the message."""


def anonymous_headers(message: Message) -> Mapping[str, str]:
    """Return the headers of an anonymous request."""
    return message.headers


def s3_signature(credentials: Mapping[str, Any], region: str) -> Sign:
    """Return a function that signs requests with the key of an AWS account or of another store with S3's interface.

    Source: AWS General Reference, "Create a signed AWS API request".
    """
    token = {"x-amz-security-token": credentials["token"]} if credentials["token"] else {}
    keys: dict[str, bytes] = {}

    def key_of(scope: str) -> bytes:
        """Return the signing key of a day. Deriving it takes most of the time of a signature."""
        if scope not in keys:
            key = f"AWS4{credentials['secret_access_key']}".encode()
            for part in scope.split("/"):
                key = _hmac(key, part)
            keys.clear()
            keys[scope] = key
        return keys.get(scope) or key_of(scope)

    def sign(message: Message) -> Mapping[str, str]:
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        own = {"host": message.host, "x-amz-content-sha256": _NO_CONTENT, "x-amz-date": now, **token}
        headers = {**message.headers, **own}
        names = ";".join(sorted(headers))
        lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
        request = "\n".join(
            (message.method, message.path or "/", encode_query(message.query), *lines, "", names, _NO_CONTENT)
        )
        scope = f"{now[:8]}/{region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()))
        access = f"{credentials['access_key_id']}/{scope}"
        signed = f"Credential={access}, SignedHeaders={names}, Signature={_hmac(key_of(scope), text).hex()}"
        return {**headers, "Authorization": f"AWS4-HMAC-SHA256 {signed}"}

    return sign


def azure_signature(account: str, key: str | None) -> Sign:
    """Return a function that signs requests with the key of an Azure storage account.

    Without a key the function adds only the headers of the date and the API version.

    Source: Azure Storage, "Authorize with Shared Key".
    """

    def sign(message: Message) -> Mapping[str, str]:
        own = {"x-ms-date": format_datetime(datetime.now(UTC), usegmt=True), "x-ms-version": _AZURE_VERSION}
        headers = {**message.headers, **own}
        if key is None:
            return headers
        standard = [headers.get(name, "") for name in _AZURE_SIGNED]
        lines = [f"{name}:{own[name]}" for name in sorted(own)]
        query = message.query
        resource = [f"/{account}{message.path}", *(f"{name.lower()}:{query[name]}" for name in sorted(query))]
        text = "\n".join((message.method, *[""] * _AZURE_UNSENT, *standard, *lines, *resource))
        signature = base64.b64encode(_hmac(base64.b64decode(key), text)).decode()
        return {**headers, "Authorization": f"SharedKey {account}:{signature}"}

    return sign


def google_signature(key: Mapping[str, Any]) -> Sign:
    """Return a function that signs requests with the key of a Google service account. Needs google-auth.

    Source: Google Identity, "Service account authorization without OAuth".
    """
    signed: list[tuple[float, str]] = []
    lock = Lock()

    def token() -> str:
        with lock:
            if signed and time.monotonic() - signed[0][0] < _RENEWED_SECONDS:
                return signed[0][1]
            from google.auth import crypt, jwt  # noqa: PLC0415 - it is optional

            now, email = int(time.time()), key["client_email"]
            claims = {"iss": email, "sub": email, "scope": _GOOGLE_SCOPE, "iat": now, "exp": now + _TOKEN_SECONDS}
            encode: Any = jwt.encode
            signer: Any = crypt.RSASigner
            text = str(encode(signer.from_service_account_info(key), claims).decode())
            signed[:] = [(time.monotonic(), text)]
            return text

    def sign(message: Message) -> Mapping[str, str]:
        return {**message.headers, "Authorization": f"Bearer {token()}"}

    return sign


def encode_query(query: Mapping[str, str]) -> str:
    """Return a query, sorted and encoded as signatures need it."""
    pairs = ((quote(name, safe="-_.~"), quote(query[name], safe="-_.~", errors="surrogateescape")) for name in query)
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(errors="surrogateescape"), "sha256")
