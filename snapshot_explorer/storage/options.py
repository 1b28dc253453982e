"""Names of storage options, in fsspec's packages and in object_store, whose names deltalake and polars accept."""

import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.storage.failures import ensure_backend
from snapshot_explorer.storage.location import shorten
from snapshot_explorer.storage.option_values import check_endpoint, nearest

_Setter = Callable[[dict[str, Any], Any], None]
_EMULATOR = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey="
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)
"""The address and the public key of Azure's emulator, the same everywhere."""


def _same(name: str) -> _Setter:
    """Return a function that sets an option of fsspec to the value."""

    def set_option(options: dict[str, Any], value: Any) -> None:
        if options.setdefault(name, value) != value:
            raise InvalidArgumentError(f"Two storage options set {name} to different values. Remove one of them.")

    return set_option


def _nested_setter(outer: str, *names: str) -> _Setter:
    """Return a function that sets an option in a dict of fsspec's options."""

    def set_option(options: dict[str, Any], value: Any) -> None:
        level = options[outer] = dict(options.get(outer) or {})
        for name in names[:-1]:
            level[name] = dict(level.get(name) or {})
            level = level[name]
        level.setdefault(names[-1], value)

    return set_option


def _addressing(options: dict[str, Any], value: Any) -> None:
    _nested_setter("config_kwargs", "s3", "addressing_style")(options, "virtual" if _is_true(value) else "path")


def _anonymous(name: str, value_if_true: Any) -> _Setter:
    def set_option(options: dict[str, Any], value: Any) -> None:
        if _is_true(value):
            _same(name)(options, value_if_true)

    return set_option


def _requester_pays(options: dict[str, Any], value: Any) -> None:
    _same("requester_pays")(options, _is_true(value) or str(value).lower() == "requester")


def _key_file(name: str) -> _Setter:
    """Return a function that sets the token to the path of a key file, which must exist."""

    def set_option(options: dict[str, Any], value: Any) -> None:
        # gcsfs takes the name of a file that does not exist for an access token, and sends it.
        if not (isinstance(value, str | os.PathLike) and Path(value).is_file()):
            raise InvalidArgumentError(f"The storage option google_{name} must be the path of a file that exists.")
        _same("token")(options, os.fspath(value))

    return set_option


def _service_account_key(options: dict[str, Any], value: Any) -> None:
    try:
        token = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        token = None
    if not isinstance(token, dict):
        # Without the value and the cause, which quotes it.
        raise InvalidArgumentError("The storage option google_service_account_key must be the JSON text of a key.")
    _same("token")(options, token)


def _azure_endpoint(options: dict[str, Any], value: Any) -> None:
    check_endpoint(value, "azure_endpoint")
    options["endpoint"] = value.rstrip("/")  # `_azure_connection` replaces it, once the account is known


def _emulator(options: dict[str, Any], value: Any) -> None:
    if _is_true(value):
        _same("connection_string")(options, _EMULATOR)


def _without_effect(options: dict[str, Any], value: Any) -> None:
    """Ignore an option that only matters to writers, or that the URL contains."""


def _is_true(value: Any) -> bool:
    return str(value).strip().lower() in ("true", "1", "yes", "on")


def _prefixed(prefixes: Iterable[str], setters: Mapping[str, _Setter]) -> dict[str, _Setter]:
    return {prefix + name: setter for prefix in prefixes for name, setter in setters.items()}


_S3 = {
    **_prefixed(
        ("aws_", ""),
        {
            "access_key_id": _same("key"),
            "secret_access_key": _same("secret"),
            "session_token": _same("token"),
            "token": _same("token"),
            "region": _nested_setter("client_kwargs", "region_name"),
            "default_region": _nested_setter("client_kwargs", "region_name"),
            "endpoint": _nested_setter("client_kwargs", "endpoint_url"),
            "virtual_hosted_style_request": _addressing,
            "skip_signature": _anonymous("anon", value_if_true=True),
            "request_payer": _requester_pays,
            "allow_http": _without_effect,
            "bucket": _without_effect,
            "bucket_name": _without_effect,
            "checksum_algorithm": _without_effect,
            "conditional_put": _without_effect,
            "copy_if_not_exists": _without_effect,
            "disable_tagging": _without_effect,
            "imdsv1_fallback": _without_effect,
            "unsigned_payload": _without_effect,
            "s3_allow_unsafe_rename": _without_effect,
            "s3_locking_provider": _without_effect,
        },
    ),
    "aws_endpoint_url": _nested_setter("client_kwargs", "endpoint_url"),
    "aws_endpoint_url_s3": _nested_setter("client_kwargs", "endpoint_url"),
    "aws_profile": _same("profile"),
    "allow_unsafe_rename": _without_effect,
    "delta_dynamo_table_name": _without_effect,
}
_AZURE = {
    **_prefixed(
        ("azure_storage_", "azure_", ""),
        {
            "account_name": _same("account_name"),
            "account_key": _same("account_key"),
            "access_key": _same("account_key"),
            "master_key": _same("account_key"),
            "sas_key": _same("sas_token"),
            "sas_token": _same("sas_token"),
            "client_id": _same("client_id"),
            "client_secret": _same("client_secret"),
            "tenant_id": _same("tenant_id"),
            "authority_id": _same("tenant_id"),
            "connection_string": _same("connection_string"),
            "endpoint": _azure_endpoint,
            "use_emulator": _emulator,
            "skip_signature": _anonymous("anon", value_if_true=True),
            "allow_http": _without_effect,
            "use_azure_cli": _without_effect,
            "container_name": _without_effect,
        },
    ),
}
_GCS = {
    **_prefixed(
        ("google_", ""),
        {
            "service_account": _key_file("service_account"),
            "service_account_path": _key_file("service_account_path"),
            "application_credentials": _key_file("application_credentials"),
            "service_account_key": _service_account_key,
            "skip_signature": _anonymous("token", "anon"),
            "base_url": _same("endpoint_url"),
            "bucket": _without_effect,
            "bucket_name": _without_effect,
            "allow_http": _without_effect,
        },
    ),
}
_OBJECT_STORE: Mapping[str, Mapping[str, _Setter]] = MappingProxyType(
    {"s3": _S3, "abfs": _AZURE, "az": _AZURE, "gs": _GCS, "gcs": _GCS}
)
"""How object_store's options, in lower case, are translated to options of fsspec's packages, by protocol.

Source: object_store, AmazonS3ConfigKey, AzureConfigKey, GoogleConfigKey; deltalake, "Configuring storage options".
"""
_FURTHER: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "s3": frozenset({"profile"}),  # s3fs passes it to the session of botocore
        "abfs": frozenset(  # adlfs passes them to DefaultAzureCredential
            {"authority", "managed_identity_client_id", "workload_identity_client_id", "process_timeout"}
        ),
    }
)
"""Options in addition to the arguments of the packages' file systems."""
_USUAL: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "s3": frozenset({"key", "secret", "token", "anon", "endpoint_url", "client_kwargs", "config_kwargs"}),
        **dict.fromkeys(
            ("abfs", "az"), frozenset({"account_name", "account_key", "sas_token", "connection_string", "anon"})
        ),
        **dict.fromkeys(("gs", "gcs"), frozenset({"token", "project", "endpoint_url"})),
    }
)
"""Options that are accepted without importing the package, which takes long."""
_COMMON: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "s3": ("key", "secret", "token", "profile", "endpoint_url", "anon"),
        **dict.fromkeys(("gs", "gcs"), ("token", "project", "endpoint_url")),
        **dict.fromkeys(("abfs", "az"), ("account_name", "account_key", "sas_token", "connection_string", "anon")),
        **dict.fromkeys(("http", "https"), ("headers", "auth", "client_kwargs")),
        "hdfs": ("user", "kerb_ticket", "extra_conf"),
        "webhdfs": ("user", "kerberos", "token", "use_https"),
    }
)
"""The options that are named in messages, by protocol."""
_FILE_SYSTEMS = frozenset({"skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths"})
"""Options of every file system of fsspec."""


def fsspec_options(protocol: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for fsspec's file system of a protocol. Names of object_store are translated.

    Every option is passed on unless the protocol is one of S3, Azure, Google, the web or HDFS.
    """
    names = _OBJECT_STORE.get(protocol)
    if names is None or not options:
        _check_names(protocol, options)
        return dict(options)
    own = _USUAL.get(protocol, frozenset()) | _FILE_SYSTEMS
    if any(name not in own and str(name).lower() not in names for name in options):
        own = _own_names(protocol)
    translated = {
        name: value
        for name, value in options.items()
        # The tries of DefaultAzureCredential that adlfs leaves out: exclude_cli_credential, ...
        if name in own or (names is _AZURE and str(name).startswith("exclude_"))
    }
    for name in options.keys() - translated.keys():
        setter = names.get(str(name).lower())
        if setter is None:
            raise _unknown_option(protocol, name, {*own, *names})
        setter(translated, options[name])
    return _azure_connection(translated) if names is _AZURE else translated


def _check_names(protocol: str, options: Mapping[str, Any]) -> None:
    """Raise InvalidArgumentError for options that a file system would ignore or pass on without checking them."""
    if not options or protocol not in _COMMON:
        return
    known = {*_own_names(protocol), *_COMMON[protocol]}
    if protocol in ("http", "https"):
        import aiohttp  # noqa: PLC0415 - comes with fsspec's package for the web, which is optional

        known |= inspect.signature(aiohttp.ClientSession._request).parameters.keys()  # noqa: SLF001 - there is no list
    for name in options.keys() - known:
        raise _unknown_option(protocol, name, known)


def _own_names(protocol: str) -> frozenset[str]:
    ensure_backend(protocol)
    import fsspec  # noqa: PLC0415 - local tables do without it, and it takes long to import

    arguments: set[str] = set()
    for base in fsspec.get_filesystem_class(protocol).__mro__:
        parameters = inspect.signature(base.__init__).parameters.values()
        arguments.update(
            parameter.name
            for parameter in parameters
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        )
    further = _FURTHER.get("abfs" if protocol == "az" else protocol, frozenset())
    return frozenset(arguments - {"self", "args"}) | further | _FILE_SYSTEMS


def _unknown_option(protocol: str, name: object, known: set[str]) -> InvalidArgumentError:
    """Return the error for an unknown option, without its value."""
    near = nearest(str(name), known - _FILE_SYSTEMS)
    advice = f"Did you mean {near}?" if near else f"Known are {', '.join(_COMMON[protocol])}, and more."
    return InvalidArgumentError(f"{protocol}:// has no storage option {shorten(str(name))}. {advice}")


def _azure_connection(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with object_store's `endpoint`, a URL, as a connection string, which contains one."""
    endpoint = options.pop("endpoint", None)
    if endpoint is None or "connection_string" in options:
        return options
    secrets = {"account_key": "AccountKey", "sas_token": "SharedAccessSignature"}
    parts = [f"{secrets[name]}={str(options[name]).lstrip('?')}" for name in secrets if options.get(name)]
    if not parts:
        raise InvalidArgumentError(
            "The storage option azure_endpoint needs account_key or sas_token. With other credentials, give the host "
            "as account_host."
        )
    account = [f"AccountName={options['account_name']}"] if options.get("account_name") else []
    return {**options, "connection_string": ";".join([f"BlobEndpoint={endpoint}", *account, *parts])}
