"""How obstore connects to S3, Azure and Google, where it is certain to do what fsspec's packages would do.

Credentials and endpoint are in the options, for S3 also in the environment, and no option is set that only fsspec's
package has. Profiles, roles and logins remain with fsspec.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from snapshot_explorer.storage import azure, gcs, s3
from snapshot_explorer.storage.listings import Pages
from snapshot_explorer.storage.location import Location
from snapshot_explorer.storage.origins import Origin
from snapshot_explorer.storage.store_listings import (
    azure_listings,
    azure_signature,
    google_signature,
    s3_listings,
    s3_signature,
    unsigned,
)

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
"""Environment variables that obstore does not follow."""
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
"""Environment variables that only one of obstore and gcsfs follows."""
_ACCOUNT_KEY = frozenset({"type", "client_email", "private_key", "private_key_id"})
"""The parts of a service account's key without which it is not one."""
_GOOGLE = "https://storage.googleapis.com"
_UNIVERSE = "googleapis.com"
_NOT_IN_KEYS = frozenset({"gcs_base_url", "disable_oauth"})
"""Parts of a key that obstore follows and gcsfs does not."""
_SECONDS = 60
PROCESSES: set[int] = set()
"""The processes that have used obstore. Its threads do not survive a fork."""


class Settings(NamedTuple):
    """How obstore connects."""

    create: Callable[[str], Any]
    """Returns obstore's store of a bucket or container, which reads objects."""
    listings: Callable[[str], Pages]
    """Returns the listings of a bucket or container."""
    endpoint: str
    """The endpoint for messages; empty where the location contains it."""


def settings(root: Location, options: Mapping[str, Any]) -> Settings | None:
    """Return how obstore connects to a location; None if that is left to fsspec. Opens nothing."""
    connect = _CONNECT.get(root.protocol)
    if (
        connect is None
        or root.hidden
        or bucket_and_key(root).partition("/")[2].startswith("/")
        or find_spec("obstore") is None
        or (PROCESSES and os.getpid() not in PROCESSES)
    ):
        return None
    return connect(root, {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT})


def bucket_and_key(location: Location) -> str:
    """Return the address of a location: `bucket/key`."""
    bucket, slash, key = location.address.partition("://")[2].rstrip("/").partition("/")
    if location.protocol in azure.PROTOCOLS:
        bucket = bucket.partition("@")[0]
    return f"{bucket}{slash}{key}"


def _s3(root: Location, options: Mapping[str, Any]) -> Settings | None:
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
    region = region or "us-east-1"
    fixed = {
        "region": region,
        "request_payer": bool(options.get("requester_pays")),
        "skip_signature": credentials is None,
    }
    tries = int({**s3.RETRIES, **retries}["total_max_attempts"])
    seconds = {name: config.get(name) or _SECONDS for name in ("read_timeout", "connect_timeout")}
    common = {**_limits(tries, seconds), **_provider(credentials)}
    headers = {"x-amz-request-payer": "requester"} if fixed["request_payer"] else {}
    sign = partial(unsigned, headers) if credentials is None else s3_signature(credentials, region, headers)

    def listings(bucket: str) -> Pages:
        address, is_virtual = _s3_address(host, addressing, bucket)
        return s3_listings(_origin(address, seconds), "" if is_virtual else f"/{bucket}", sign, tries=tries)

    return Settings(partial(_s3_store, host, addressing, fixed, common), listings, s3.shown_endpoint(host, region))


def _s3_address(endpoint: str, addressing: str, bucket: str) -> tuple[str, bool]:
    """Return the address of a bucket, and whether its name is in the host: `path`, `virtual` or `auto`."""
    is_virtual = addressing == "virtual" or (addressing == "auto" and bool(_HOST_NAME.fullmatch(bucket)))
    return endpoint.replace("://", f"://{bucket}.", 1) if is_virtual else endpoint, is_virtual


def _s3_store(endpoint: str, addressing: str, config: Mapping[str, Any], common: Mapping[str, Any], bucket: str) -> Any:
    from obstore.store import S3Store  # noqa: PLC0415 - it is optional

    host, is_virtual = _s3_address(endpoint, addressing, bucket)
    return S3Store(
        bucket,
        config=cast("Any", {**config, "endpoint": host, "virtual_hosted_style_request": is_virtual}),
        **common,
    )


def _limits(tries: int, seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return the limits of a client.

    Args:
        tries: The requests that it makes before `Storage` starts an attempt of its own.
        seconds: Its timeouts.
    """
    return {
        "client_options": {
            "allow_http": True,
            "timeout": timedelta(seconds=10 * max(seconds.values())),
            **{name: timedelta(seconds=value) for name, value in seconds.items()},
        },
        "retry_config": {
            "max_retries": tries - 1,
            "retry_timeout": timedelta(seconds=30),
            "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=8), "base": 2},
        },
    }


_TIMEOUTS = {"read_timeout": _SECONDS, "connect_timeout": _SECONDS}
_ONE_TRY = _limits(1, _TIMEOUTS)
"""For Azure and Google, where `Storage` alone repeats requests."""


def _origin(address: str, seconds: Mapping[str, float]) -> Origin:
    return Origin(address, connect_seconds=seconds["connect_timeout"], read_seconds=seconds["read_timeout"])


def _provider(credentials: Mapping[str, Any] | None) -> dict[str, Any]:
    # Otherwise credentials in the environment would be added to those in the options.
    return {} if credentials is None else {"credential_provider": lambda: credentials}


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
        "expires_at": None,
    }


def _azure(root: Location, options: Mapping[str, Any]) -> Settings | None:
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
    credentials = {"access_key": str(key)} if key else {"sas_token": token} if token else None
    endpoint = str(keys.get("endpoint") or f"https://{account}.blob.core.windows.net").rstrip("/")
    if urlsplit(endpoint).query or "@" in endpoint:
        return None
    fixed = {"account_name": str(account), "endpoint": endpoint, "use_emulator": False}
    fixed["skip_signature"] = credentials is None
    common = {**_ONE_TRY, **_provider(credentials and {**credentials, "expires_at": None})}
    sign = azure_signature(str(account), str(key) if key else None)

    def listings(container: str) -> Pages:
        return azure_listings(_origin(endpoint, _TIMEOUTS), f"/{container}", sign, sas_token=token, tries=1)

    return Settings(partial(_azure_store, fixed, common), listings, "")


def _azure_store(config: Mapping[str, Any], common: Mapping[str, Any], container: str) -> Any:
    from obstore.store import AzureStore  # noqa: PLC0415 - it is optional

    return AzureStore(container, config=cast("Any", config), **common)


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
    bucket, token = bucket_and_key(root).partition("/")[0], options.get("token")
    endpoint = str(options.get("endpoint_url") or "").rstrip("/")
    if (
        not options.keys() <= _GCS_OPTIONS
        or not _LEFT_TO_GCSFS.isdisjoint(os.environ)
        or not _BUCKET.fullmatch(bucket)
        or "@" in endpoint
    ):
        return None
    key = None if token == "anon" else _service_account_key(token)  # noqa: S105 - a word of gcsfs
    if key is None and token != "anon":  # noqa: S105 - as above
        return None
    if key is not None and not _has_google_auth():
        return None
    config: dict[str, Any] = {"skip_signature": True} if key is None else {"service_account_key": key}
    if endpoint:
        config["base_url"] = endpoint
    sign = partial(unsigned, {}) if key is None else google_signature(json.loads(key))

    def listings(bucket: str) -> Pages:
        return s3_listings(_origin(endpoint or _GOOGLE, _TIMEOUTS), f"/{bucket}", sign, tries=1)

    return Settings(partial(_gcs_store, config), listings, "")


def _gcs_store(config: Mapping[str, Any], bucket: str) -> Any:
    from obstore.store import GCSStore  # noqa: PLC0415 - it is optional

    return GCSStore(bucket, config=cast("Any", config), **_ONE_TRY)


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
