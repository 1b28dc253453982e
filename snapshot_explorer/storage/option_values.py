"""Checks of the values of storage options for which the packages would raise an unclear error, or none."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.storage import azure

_PROTOCOLS = frozenset({"s3", "gs", "gcs", "abfs", "az", "http", "https"})
_URL = re.compile(r"https?://[^\s/?#]\S*", re.IGNORECASE)
_TEXTS = (
    "key",
    "secret",
    "profile",
    "account_name",
    "account_key",
    "sas_token",
    "connection_string",
    "tenant_id",
    "client_id",
    "client_secret",
)
_NOT_EMPTY = ("key", "secret", "account_key", "connection_string")
_DICTS = ("client_kwargs", "config_kwargs")
_S3_CLIENT = frozenset(
    {
        "api_version",
        "aws_access_key_id",
        "aws_account_id",
        "aws_secret_access_key",
        "aws_session_token",
        "config",
        "endpoint_url",
        "region_name",
        "use_ssl",
        "verify",
    }
)
"""Arguments that botocore's clients accept."""
_SERVICE_ACCOUNT = ("client_email", "private_key", "token_uri")
_USER = ("client_id", "client_secret", "refresh_token")
"""Fields of Google credentials in addition to their type."""
_OTHER_TYPES = frozenset({"external_account", "external_account_authorized_user", "impersonated_service_account"})
"""The types of credentials that google.auth reads from the environment, and gcsfs not from an option."""
_KEY_FILE = re.compile(r"(/|~|\.{1,2}/|[A-Za-z]:[\\/])|.*\.json$", re.DOTALL)
"""A text that is the path of a key, not a token."""
_PEM = re.compile(r"\s*-----BEGIN[^\\]+-----END[^\\]+")
_AZURE_NUMBERS: Mapping[str, Any] = MappingProxyType(
    {"timeout": int, "max_concurrency": int, "connection_timeout": int | float, "read_timeout": int | float}
)
"""Number options of adlfs, which its client would reject only during a call."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def check_values(protocol: str, options: Mapping[str, Any]) -> None:
    """Raise InvalidArgumentError for a value that cannot be right, without the value.

    Args:
        options: The options as fsspec names them.
    """
    if protocol not in _PROTOCOLS:
        return
    _check_types(options)
    client = options.get("client_kwargs") or {}
    for endpoint in (options.get("endpoint_url"), client.get("endpoint_url")):
        check_endpoint(endpoint)
    if protocol == "s3":
        _check_s3(options, client)
    elif protocol in ("gs", "gcs"):
        _check_google(options.get("token"))
    elif protocol in azure.PROTOCOLS:
        _check_azure(options)


def _check_types(options: Mapping[str, Any]) -> None:
    for name in _TEXTS:
        if not isinstance(options.get(name), str | None):
            raise _wrong(name, f"must be a string, got {type(options[name]).__name__}")
        if name in _NOT_EMPTY and options.get(name) == "":
            raise _wrong(name, "is empty. Leave it out, or check where its value comes from")
    for name in _DICTS:
        if not isinstance(options.get(name), Mapping | None):
            raise _wrong(name, f"must be a dict, got {type(options[name]).__name__}")
    client = options.get("client_kwargs") or {}
    for name, kind, word in (("region_name", str, "string"), ("headers", Mapping | list, "dict")):
        if not isinstance(client.get(name), kind | None):
            raise _wrong(f"{name} in client_kwargs", f"must be a {word}, got {type(client[name]).__name__}")


def check_endpoint(endpoint: object, name: str = "endpoint_url") -> None:
    """Raise InvalidArgumentError for an endpoint that is neither a URL nor None."""
    if endpoint is not None and not (isinstance(endpoint, str) and _URL.fullmatch(endpoint)):
        raise _wrong(name, "must be a URL that begins with http:// or https://")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to another name; None if none is similar."""
    return next(iter(difflib.get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.6)), None)


def _wrong(name: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The storage option {name} {problem}.")


def _check_s3(options: Mapping[str, Any], client: Mapping[str, Any]) -> None:
    for present, absent in (("key", "secret"), ("secret", "key")):
        if options.get(present) and not options.get(absent):
            raise InvalidArgumentError(f"The storage options have {present}, but not {absent}. Pass both.")
    for name in client.keys() - _S3_CLIENT:
        near = nearest(str(name), _S3_CLIENT)
        if near:
            raise InvalidArgumentError(f"client_kwargs of s3:// has no option {name}. Did you mean {near}?")
        # The name is not shown: it may be a value in the wrong position.
        known = ", ".join(sorted(_S3_CLIENT))
        raise InvalidArgumentError(f"client_kwargs of s3:// contains an unknown option. Known are {known}.")


def _check_google(token: object) -> None:
    if token is None or hasattr(token, "apply"):  # an object of google.auth
        return
    if isinstance(token, str):
        token = _key_of(token)
    if isinstance(token, Mapping):
        if token.get("type") in _OTHER_TYPES:
            problem = f"has credentials of the type {token['type']}, which gcsfs does not accept there"
            raise _wrong("token", f"{problem}. Leave token out, and set GOOGLE_APPLICATION_CREDENTIALS to their file")
        parts = _SERVICE_ACCOUNT if token.get("type") == "service_account" else _USER
        lacking = [name for name in parts if not token.get(name)]
        if lacking:
            kind = "a service account's key" if parts is _SERVICE_ACCOUNT else "a user's credentials"
            lacks = f"lacks {', '.join(lacking)} of {kind}"
            raise _wrong("token", f"{lacks}. Pass the path of the key's file, or all of its contents")
        if parts is _SERVICE_ACCOUNT and not _PEM.fullmatch(str(token["private_key"])):
            problem = "has a private_key that is not one in PEM: lines from -----BEGIN to -----END"
            raise _wrong("token", f"{problem}, whose breaks are not the two letters \\n")
    elif token is not None:
        raise _wrong("token", f"must be a path, a token or a dict, got {type(token).__name__}")


def _key_of(token: str) -> Mapping[str, Any] | None:
    """Return the contents of a key's file; None if the text is a token or a word of gcsfs."""
    if not token:
        raise _wrong("token", "is empty. Leave it out, or check where its value comes from")
    if not _KEY_FILE.match(token):
        return None
    path = Path(token).expanduser()
    if not path.is_file():
        raise _wrong("token", "names a file that does not exist")
    try:
        key = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        key = None  # the error is raised below: an error raised here would have a context that quotes the file
    if not isinstance(key, dict):
        raise _wrong("token", "names a file that is not the JSON of a key")
    return key


def _check_azure(options: Mapping[str, Any]) -> None:
    if not _BASE64.fullmatch(str(options.get("account_key") or "")):
        raise _wrong("account_key", "is not a key in base64: it was cut or mistyped")
    for name, kind in _AZURE_NUMBERS.items():
        if not isinstance(options.get(name), kind | None):
            raise _wrong(name, f"must be a number such as 30, got {type(options[name]).__name__}")
