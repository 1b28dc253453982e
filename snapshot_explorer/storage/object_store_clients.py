"""The settings of this package's own clients for S3, Azure and Google, if they certainly behave like fsspec's packages.

That is the case if credentials and endpoint are in the options, for S3 also in the environment, and no option is set
that only fsspec's package has. For profiles, roles and logins fsspec is used.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from snapshot_explorer.storage import azure, bounded_answers, gcs, s3
from snapshot_explorer.storage.location import Location

if TYPE_CHECKING:
    from snapshot_explorer.storage.buckets import Bucket
    from snapshot_explorer.storage.listings import Pages
    from snapshot_explorer.storage.origins import Origin

_OPTIONS = frozenset(
    {"key", "secret", "token", "anon", "endpoint_url", "requester_pays", "client_kwargs", "config_kwargs"}
)
_CLIENT = frozenset({"endpoint_url", "region_name"})
_CONFIG = frozenset({"retries", "read_timeout", "connect_timeout", "max_pool_connections", "s3"})
_STYLE = frozenset({"addressing_style"})
_RETRIES = frozenset({"mode", "total_max_attempts"})
_WITHOUT_EFFECT = frozenset({"skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths"})
_LEFT_TO_S3FS = frozenset(
    {
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_USE_FIPS_ENDPOINT",
        "AWS_USE_DUALSTACK_ENDPOINT",
    }
)
"""Environment variables that only botocore follows."""
_CERTIFICATES = frozenset({"AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"})
"""Likewise, for https."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.\-]*")
_HOST_NAME = re.compile(r"[a-z0-9][a-z0-9\-]*")
_AZURE_OPTIONS = frozenset({"account_name", "account_key", "sas_token", "connection_string", "anon"})
_AZURE_HOSTS = (".dfs.core.windows.net", ".blob.core.windows.net")
_CONNECTION_PARTS = frozenset(
    {"defaultendpointsprotocol", "accountname", "accountkey", "blobendpoint", "endpointsuffix", "sharedaccesssignature"}
)
_GCS_OPTIONS = frozenset({"token", "endpoint_url", "project"})
_LEFT_TO_GCSFS = frozenset(
    {
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_BASE_URL",
        "GOOGLE_BEARER_TOKEN",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SKIP_SIGNATURE",
        "STORAGE_EMULATOR_HOST",
    }
)
"""Environment variables that only gcsfs follows."""
_ACCOUNT_KEY = frozenset({"type", "client_email", "private_key", "private_key_id"})
"""The parts of a service account's key without which it is not one."""
_GOOGLE = "https://storage.googleapis.com"
_UNIVERSE = "googleapis.com"
_NOT_IN_KEYS = frozenset({"gcs_base_url", "disable_oauth"})
"""Parts of a key with which it is not for Google's own service, or not for its usual login."""


class Settings(NamedTuple):
    """The functions and the endpoint of a store."""

    bucket: "Callable[[str], Bucket]"
    """Returns a bucket or container by its name."""
    listings: "Callable[[Bucket], Pages]"
    """Returns the listings of a bucket or container."""
    endpoint: str
    """The endpoint for messages; empty if the location contains it."""


def settings(root: Location, options: Mapping[str, Any]) -> Settings | None:
    """Return the settings for the store of a location; None to leave it to fsspec. Opens nothing."""
    connect = _CONNECT.get(root.protocol)
    if connect is None or root.hidden:
        return None
    return connect(root, {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT})


def bucket_and_key(location: Location) -> str:
    """Return the address of a location: `bucket/key`."""
    bucket, slash, key = location.address.partition("://")[2].rstrip("/").partition("/")
    if location.protocol in azure.PROTOCOLS:
        bucket = bucket.partition("@")[0]
    return f"{bucket}{slash}{key}"


def _s3(root: Location, options: Mapping[str, Any]) -> Settings | None:
    from snapshot_explorer.storage.buckets import Bucket  # noqa: PLC0415 - local tables do without it
    from snapshot_explorer.storage.origins import is_reachable  # noqa: PLC0415 - as above
    from snapshot_explorer.storage.signatures import anonymous_headers, s3_signature  # noqa: PLC0415 - as above
    from snapshot_explorer.storage.store_listings import s3_listings  # noqa: PLC0415 - as above

    bucket = bucket_and_key(root).partition("/")[0]
    if (
        not options.keys() <= _OPTIONS
        or not _BUCKET.fullmatch(bucket)
        or s3.is_directory_bucket(bucket)
        or not _LEFT_TO_S3FS.isdisjoint(os.environ)
    ):
        return None
    client, config = (options.get(name) or {} for name in ("client_kwargs", "config_kwargs"))
    if not (_has_only(client, _CLIENT) and _has_only(config, _CONFIG)):
        return None
    style, retries = config.get("s3") or {}, config.get("retries") or {}
    if not (_has_only(style, _STYLE) and _has_only(retries, _RETRIES)):
        return None
    endpoint = options.get("endpoint_url") or client.get("endpoint_url") or _variable("ENDPOINT_URL_S3", "ENDPOINT_URL")
    region = client.get("region_name") or _variable("DEFAULT_REGION")
    credentials = None if options.get("anon") else _credentials(options)
    addressing = style.get("addressing_style") or ("path" if endpoint else "auto")
    if (
        not (credentials or options.get("anon"))
        or not (region or (endpoint and not Path("~/.aws/config").expanduser().exists()))
        or (endpoint and ("@" in str(endpoint) or addressing != "path"))
        or not (_CERTIFICATES.isdisjoint(os.environ) or str(endpoint).startswith("http://"))
    ):
        return None
    host = str(endpoint).rstrip("/") if endpoint else f"https://s3.{region}.amazonaws.com"
    if not is_reachable(host):
        return None
    region = region or "us-east-1"
    tries = int({**s3.RETRIES, **retries}["total_max_attempts"])
    seconds = _timeouts(config)
    common = {"x-amz-request-payer": "requester"} if options.get("requester_pays") else {}
    sign = anonymous_headers if credentials is None else s3_signature(credentials, region)

    def bucket_of(name: str) -> "Bucket":
        address, is_virtual = _s3_address(host, addressing, name)
        return Bucket(_origin(address, seconds), "" if is_virtual else f"/{name}", sign, tries=tries, headers=common)

    return Settings(bucket_of, s3_listings, s3.shown_endpoint(host, region))


def _s3_address(endpoint: str, addressing: str, bucket: str) -> tuple[str, bool]:
    """Return the address of a bucket, and whether its name is in the host: `path`, `virtual` or `auto`."""
    is_virtual = addressing == "virtual" or (addressing == "auto" and bool(_HOST_NAME.fullmatch(bucket)))
    return endpoint.replace("://", f"://{bucket}.", 1) if is_virtual else endpoint, is_virtual


def _timeouts(config: Mapping[str, Any]) -> dict[str, float]:
    return {name: config.get(name) or bounded_answers.READ_SECONDS for name in ("read_timeout", "connect_timeout")}


def _origin(address: str, seconds: Mapping[str, float]) -> "Origin":
    from snapshot_explorer.storage.origins import Origin  # noqa: PLC0415 - local tables do without it

    return Origin(address, connect_seconds=seconds["connect_timeout"], read_seconds=seconds["read_timeout"])


def _has_only(options: Any, names: frozenset[str]) -> bool:
    return isinstance(options, Mapping) and options.keys() <= names


def _variable(*names: str) -> str | None:
    return next(filter(None, (os.environ.get(f"AWS_{name}") for name in names)), None)


def _credentials(options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the keys in the options, or else in the environment; None if there are none, or not both."""
    key, secret, token = (options.get(name) for name in ("key", "secret", "token"))
    if not (key or secret or token):
        key, secret, token = map(_variable, ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"))
    if not (key and secret):
        return None
    return {
        "access_key_id": str(key),
        "secret_access_key": str(secret),
        "token": str(token) if token else None,
    }


def _azure(root: Location, options: Mapping[str, Any]) -> Settings | None:
    from snapshot_explorer.storage.buckets import Bucket  # noqa: PLC0415 - local tables do without it
    from snapshot_explorer.storage.origins import is_reachable  # noqa: PLC0415 - as above
    from snapshot_explorer.storage.signatures import azure_signature  # noqa: PLC0415 - as above
    from snapshot_explorer.storage.store_listings import azure_listings  # noqa: PLC0415 - as above

    container, at, host = root.address.partition("://")[2].partition("/")[0].partition("@")
    account, dot, domain = host.partition(".")
    if (
        not options.keys() <= _AZURE_OPTIONS
        or any(name.startswith("AZURE_STORAGE_") for name in os.environ)
        or not _HOST_NAME.fullmatch(container)
        or (at and dot + domain not in _AZURE_HOSTS)
    ):
        return None
    keys = dict(options)
    if text := keys.pop("connection_string", None):
        parts = _connection_parts(text)
        if parts is None or keys.keys() - {"account_name", "account_key", "sas_token"}:
            return None
        keys = parts
    account = keys.get("account_name") or account
    key, token = keys.get("account_key"), str(keys.get("sas_token") or "").removeprefix("?")
    if not account or (at and account != host.partition(".")[0]) or bool(key or token) == (keys.get("anon") is True):
        return None
    endpoint = str(keys.get("endpoint") or f"https://{account}.blob.core.windows.net").rstrip("/")
    if urlsplit(endpoint).query or "@" in endpoint or not is_reachable(endpoint):
        return None
    sign = azure_signature(str(account), str(key) if key else None)
    parts_of_token = (part.partition("=") for part in token.split("&") if part)
    query = {unquote(name): unquote(value) for name, _, value in parts_of_token}

    def container_of(name: str) -> "Bucket":
        return Bucket(_origin(endpoint, _timeouts({})), f"/{name}", sign, tries=1, query=query)

    return Settings(container_of, azure_listings, "")


def _connection_parts(text: object) -> dict[str, Any] | None:
    """Return the options in a connection string; None if it has other parts."""
    pairs = [part.partition("=") for part in str(text).strip().split(";") if part.strip()]
    parts = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if not parts.keys() <= _CONNECTION_PARTS or len(parts) < len(pairs):
        return None
    account, protocol = parts.get("accountname"), parts.get("defaultendpointsprotocol", "https")
    suffix = parts.get("endpointsuffix", "core.windows.net")
    endpoint = parts.get("blobendpoint") or f"{protocol}://{account}.blob.{suffix}"
    return {
        "account_name": account,
        "account_key": parts.get("accountkey"),
        "sas_token": parts.get("sharedaccesssignature"),
        "endpoint": endpoint,
    }


def _gcs(root: Location, options: Mapping[str, Any]) -> Settings | None:
    from snapshot_explorer.storage.buckets import Bucket  # noqa: PLC0415 - local tables do without it
    from snapshot_explorer.storage.origins import is_reachable  # noqa: PLC0415 - as above
    from snapshot_explorer.storage.signatures import anonymous_headers, google_signature  # noqa: PLC0415 - as above
    from snapshot_explorer.storage.store_listings import s3_listings  # noqa: PLC0415 - as above

    bucket, token = bucket_and_key(root).partition("/")[0], options.get("token")
    endpoint = str(options.get("endpoint_url") or "").rstrip("/")
    if (
        not options.keys() <= _GCS_OPTIONS
        or not _LEFT_TO_GCSFS.isdisjoint(os.environ)
        or not _BUCKET.fullmatch(bucket)
        or "@" in endpoint
        or not is_reachable(endpoint or _GOOGLE)
    ):
        return None
    key = None if token == "anon" else _service_account_key(token)  # noqa: S105 - a word of gcsfs
    if key is None and token != "anon":  # noqa: S105 - as above
        return None
    if key is not None and not _has_google_auth():
        return None
    sign = anonymous_headers if key is None else google_signature(json.loads(key))

    def bucket_of(name: str) -> "Bucket":
        return Bucket(_origin(endpoint or _GOOGLE, _timeouts({})), f"/{name}", sign, tries=1)

    return Settings(bucket_of, s3_listings, "")


def _has_google_auth() -> bool:
    """Return whether google-auth is installed, which signs requests for listings."""
    return find_spec("google") is not None and find_spec("google.auth") is not None


def _service_account_key(token: object) -> str | None:
    """Return the key of a service account, as text; None for another kind of credentials."""
    try:
        key: Any = json.loads(Path(token).expanduser().read_text()) if isinstance(token, str) else token
        is_key = isinstance(key, dict) and key.get("type") == "service_account" and key.keys() >= _ACCOUNT_KEY
        is_usual = is_key and _NOT_IN_KEYS.isdisjoint(key) and key.get("universe_domain", _UNIVERSE) == _UNIVERSE
        return json.dumps(key) if is_usual else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None


_CONNECT: Mapping[str, Callable[[Location, Mapping[str, Any]], Settings | None]] = {
    "s3": _s3,
    **dict.fromkeys(azure.PROTOCOLS, _azure),
    **dict.fromkeys(gcs.PROTOCOLS, _gcs),
}
