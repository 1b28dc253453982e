"""The location of a table, and the paths allowed below it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType
from urllib.parse import quote, unquote

from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.safe_text import escape_unencodable
from snapshot_explorer.core.url_secrets import hide_typed_secrets, split_url

LOCAL = "file"
"""The protocol of the local disk."""
_PROTOCOL_FAMILIES: Mapping[str, str] = MappingProxyType(
    {"local": LOCAL, "s3a": "s3", "s3n": "s3", "gcs": "gs", "https": "http"}
    | dict.fromkeys(("abfss", "az", "wasb", "wasbs"), "abfs")
)
"""Protocols that are aliases of one storage."""
_FSSPEC_NAMES = MappingProxyType({"local": LOCAL, "s3a": "s3", "s3n": "s3", "abfss": "abfs"})
"""The fsspec names of the writers' protocols."""
QUOTED = ("http", "https")
"""Protocols whose addresses are URLs even inside fsspec: `#` and `?` in a name must be quoted."""
_BUCKETS = frozenset({"s3", "gs", "abfs", "oss", "tos", "oci", "memory"})
"""Storages whose connection does not depend on the bucket: a table may refer to files in another bucket."""
_DEFAULT_PORTS = MappingProxyType({"http": "80", "https": "443", "hdfs": "8020", "ftp": "21", "sftp": "22"})
_AZURE_HOST = re.compile(r"([^.@/:]+)\.(?:blob|dfs)\.([^/:]+)", re.IGNORECASE)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://(.*)", re.DOTALL)
_FILE_URL = re.compile(r"(?:file|local):(?://(?:localhost(?=/))?)?(.*)", re.DOTALL | re.IGNORECASE)
_ONE_SLASH = re.compile(r"([A-Za-z0-9]+):/?([^/].*)", re.DOTALL)
_HADOOP_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(/.*)", re.DOTALL)
_CHAINED = re.compile(r"([a-z0-9_]+)(?:://[^:]*)?::([a-z0-9_]+)(?:::|://|$)")
_IN_ARCHIVE = re.compile(r"(zip|tar|libarchive)://([^:]*)::(.+)", re.DOTALL | re.IGNORECASE)
_WRAPPERS = frozenset(
    {"dir", "simplecache", "filecache", "blockcache", "cached", "reference", "generic", "async_wrapper"}
)
"""Protocols of fsspec that only wrap another file system, which a URL cannot name."""
_DATABRICKS = "On its clusters dbfs:/ is a local folder: give /dbfs/{}. Elsewhere, give the object store's URL."
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_MAX_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A folder or file of a storage."""

    protocol: str
    """The protocol in fsspec: file, s3, memory, ..."""
    address: str = field(repr=False)
    """The address for fsspec: an absolute path, or a URL that may contain user and password."""
    shown: str
    """The address for display, without user, password and query, and with bytes that are not UTF-8 escaped."""
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """The parts of the address that are not shown."""


def parse_location(path: object) -> Location:
    """Return the location of a user's path: a local path, or a URL of any protocol. Reads nothing.

    In a local path every character is literal, `#`, `?`, `%` and `*` included; only a leading `~` is the home folder.
    A relative path starts at the current folder.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidArgumentError(
            f"{_show_typed(repr(text))} is not a path. Give the table's folder, such as /data/orders or "
            "s3://lake/orders."
        )
    _refuse_chain(text)
    if local := _FILE_URL.match(text):
        return _local(local[1] or "/")
    url = _URL.match(text) or re.fullmatch(r"(hdfs):(/.*)", text, re.DOTALL)
    return _remote(url[1].lower(), url[2], is_typed=True) if url else _local(text)


def mistaken_path(path: str) -> str | None:
    """Return a hint for a local path that is quoted, of Windows or of Databricks; else None."""
    plain = path.strip()
    if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "'\"`":
        return f"The path has quotation marks of its own: give {_show_typed(plain[1:-1])} without them."
    if plain.lower().startswith("dbfs:/"):
        return _DATABRICKS.format(_show_typed(plain[6:].lstrip("/")))
    if _DRIVE.match(plain) and os.name != "nt":
        drive, rest = plain[0].lower(), plain[3:].replace("\\", "/")
        return (
            f"That is a path of Windows, and this Python does not run there. In WSL it is /mnt/{drive}/"
            f"{_show_typed(rest)}."
        )
    return None


def _show_typed(path: str) -> str:
    return shorten(hide_typed_secrets(path))


def missing_slash(path: str) -> str | None:
    """Return the URL that was probably meant by a local path such as `s3:/lake/orders`; else None."""
    match = _ONE_SLASH.fullmatch(path)
    known = {*_PROTOCOL_FAMILIES, *_PROTOCOL_FAMILIES.values(), *_BUCKETS} - {LOCAL, "local"}
    if match is None or match[1].lower() not in known:
        return None
    return parse_location(f"{match[1]}://{match[2]}").shown


def _refuse_chain(text: str) -> None:
    if _is_chain(text):
        raise UnsupportedFeatureError(
            "The location chains several protocols with `::`, which is not followed. Give the table's own location."
        )
    archive = _IN_ARCHIVE.fullmatch(text)
    if archive is None:
        return
    if archive[1].lower() != "zip":
        raise _archive_error(archive[1].lower())
    opening = Hint(
        "open_table",
        {"path": f"zip://{_show_typed(archive[2])}", "storage_options": {"fo": _show_typed(archive[3])}},
    )
    raise UnsupportedFeatureError(
        Message("A folder of an archive is not given with `::`. Give the archive as an option: ", opening, ".")
    )


def _archive_error(protocol: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{protocol}:// is not read: several files of such an archive cannot be read at the same time. Unpack it, and "
        "give the table's folder."
    )


def check_wrapper(location: Location, options: Mapping[str, object]) -> None:
    """Refuse a protocol of fsspec that only wraps another file system, unless the options define that one."""
    protocol = location.protocol
    if protocol in ("tar", "libarchive"):
        raise _archive_error(protocol)
    if protocol == "zip" and "fo" not in options:
        raise InvalidArgumentError(
            Message(
                f"{location.shown} does not say which archive it is in. Give it as an option: ",
                Hint("", {"storage_options": {"fo": "/data/lake.zip"}}),
                ".",
            )
        )
    if protocol == "dbfs" and not options.keys() >= {"instance", "token"}:
        raise InvalidArgumentError(
            "dbfs:// needs the storage options instance and token, of a workspace of Databricks. "
            f"{_DATABRICKS.format(_show_typed(location.address[7:].lstrip('/')))}"
        )
    if protocol in _WRAPPERS and not options.keys() & {"fs", "fo", "target_protocol"}:
        raise UnsupportedFeatureError(
            f"{protocol}:// only wraps another file system. Give the table's own path or URL."
        )


def _is_chain(text: str) -> bool:
    chained = _CHAINED.match(text)
    if chained is None:
        return False
    import fsspec  # noqa: PLC0415 - local tables do not need it, and the import is slow

    return set(chained.groups()) <= set(fsspec.available_protocols())


def _local(path: str) -> Location:
    address = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - Path has no way to drop `..` unread
    return Location(protocol=LOCAL, address=address, shown=escape_unencodable(_show_local(address)))


def _show_local(address: str) -> str:
    """Return a local path for display: without secrets if nothing is there, because it may be a mistyped URL."""
    shown = hide_typed_secrets(address)
    return address if shown == address or os.path.lexists(address) else shown


def _remote(scheme: str, rest: str, *, is_typed: bool = False) -> Location:
    protocol, rest = _FSSPEC_NAMES.get(scheme, scheme), rest.rstrip("/")
    shown, hidden = split_url(protocol, rest, is_typed=is_typed)
    return Location(
        protocol=protocol,
        address=f"{protocol}://{rest}",
        shown=escape_unencodable(f"{protocol}://" + (hide_typed_secrets(shown) if is_typed else shown).rstrip("/")),
        hidden=hidden,
    )


def normalize(path: str) -> str:
    """Return a path below the root, without a slash at its end. The empty path is the root."""
    plain = path.rstrip("/")
    if path.startswith(("/", "\\")) or "\0" in path or _has_parent_step(path) or (":" in path and _DRIVE.match(path)):
        raise CorruptTableError(
            f"The path {shorten(repr(path))} leads out of the table's folder or is not a path. It is not read: "
            "the metadata that names it is corrupt or was tampered with."
        )
    return plain


def listing_folder(path: str) -> str:
    """Return the folder whose listing contains a file: `a` for the key `a//b` of a store, of which `/b` is the name."""
    if is_full_location(path):
        return path.rpartition("/")[0]
    return "/".join(takewhile(lambda name: name not in ("", ".", ".."), path.split("/")[:-1]))


def is_plain_name(name: str) -> bool:
    """Return whether the name can be a part of a path, at any position: see `normalize`."""
    is_special = name in ("", ".") or name.startswith("\\") or "\0" in name or _has_parent_step(name)
    return not (is_special or _DRIVE.match(f"{name}/"))


def _has_parent_step(path: str) -> bool:
    return ".." in path and ".." in re.split(r"[/\\]", path)


def is_full_location(path: str) -> bool:
    """Return whether a path is a full location, not a path below the root."""
    return "://" in path and _URL.match(path) is not None


def resolve_location(location: str, root: Location, account: object = None) -> Location:
    """Return the location that a full path in a table's metadata refers to, as the table's own location is written.

    Args:
        root: The table's folder.
        account: The account of Azure in the storage options, which the table's location may leave out.
    """
    parsed = _parse_full(location)
    if parsed is None or "\0" in location or _has_parent_step(location):
        raise CorruptTableError(
            f"{shorten(repr(location))} is not a full location of a file. The metadata that names it is corrupt."
        )
    result = _rewrite_like(parsed, root, account)
    if not _same_storage(result, root):
        raise UnsupportedFeatureError(
            f"The table names the file {shorten(parsed.shown)}, which is on another storage than the table itself, "
            f"{root.shown}. It is not read: metadata may not choose the storage."
        )
    return result


def is_outside(target: Location, root: Location) -> bool:
    """Return whether a location is not below a table's folder, whichever alias of the storage it uses."""
    folder, address = comparable_address(root), comparable_address(target)
    return address != folder and not address.startswith(folder.rstrip("/") + "/")


def same_family(a: Location, b: Location) -> bool:
    """Return whether the protocols of two locations belong to one kind of storage, such as s3 and s3a."""
    return _PROTOCOL_FAMILIES.get(a.protocol, a.protocol) == _PROTOCOL_FAMILIES.get(b.protocol, b.protocol)


def comparable_address(location: Location) -> str:
    """Return an address that is equal for locations of one file, except for links; without the scheme and the user.

    Several schemes are aliases of one storage, and hosts are written in several ways.
    """
    if location.protocol == LOCAL:
        return os.path.normpath(location.address)
    family, authority, key = _parts(location)
    if family == "abfs":
        return f"{authority}/{key}".rstrip("/")
    host = _canonical_host(location.protocol, authority.rpartition("@")[2])
    return f"{host}/{unquote(key) if family in QUOTED else key}".rstrip("/")


def may_have_links(location: Location) -> bool:
    """Return whether two names of a storage may be one file, as by links: not of an object store or the web."""
    family, _, _ = _parts(location)
    return family not in _BUCKETS and family != "http"


def _parts(location: Location) -> tuple[str, str, str]:
    """Return the family of the protocol, the authority and the key of a remote location."""
    family = _PROTOCOL_FAMILIES.get(location.protocol, location.protocol)
    authority, _, key = location.address.partition("://")[2].partition("/")
    return family, authority, key


def _canonical_host(protocol: str, host: str) -> str:
    """Return a host in lower case without a dot at its end and without the default port; a bucket unchanged."""
    if _PROTOCOL_FAMILIES.get(protocol, protocol) in _BUCKETS - {"abfs"}:
        return host
    name, colon, port = host.rpartition(":")
    if not colon or not (port.isdecimal() or not port):
        name, port = host, ""
    name = name.lower().rstrip(".")
    return name if port in ("", _DEFAULT_PORTS.get(protocol, "")) else f"{name}:{port}"


def _rewrite_like(target: Location, root: Location, account: object) -> Location:
    """Return a location with the scheme and the form of host of a table's location, if both may be one storage."""
    own, own_authority, _ = _parts(root)
    family, authority, key = _parts(target)
    if LOCAL in (own, family) or target.hidden:
        return target
    if own == "abfs":
        return _azure_as(target, root, account)
    if family != own:
        return target
    if family in _BUCKETS:
        return _at(root.protocol, authority, key)
    host = _canonical_host(target.protocol, authority)
    return _at(target.protocol, host or own_authority.rpartition("@")[2], key)


def _azure_as(target: Location, root: Location, account: object) -> Location:
    """Return a location of Azure's blobs as a table's location is written: each has several schemes and two hosts."""
    family, authority, key = _parts(target)
    own_host = "".join(_parts(root)[1].partition("@")[2:])
    container, _, host = authority.rpartition("@")
    if family == "http" and "%" not in key:
        host = authority
        container, _, key = key.partition("/")
    elif family != "abfs":
        return target
    known = _azure_account(own_host) or str(account or "").lower()
    named = _azure_account(host)
    if not (known and container) or known not in (named, named.partition(".")[0]):
        return target
    return _at(root.protocol, f"{container}@{own_host}" if own_host else container, key)


def _azure_account(host: str) -> str:
    """Return the account and the domain of a host of Azure; empty for another host."""
    match = _AZURE_HOST.fullmatch(_canonical_host("https", host))
    return f"{match[1]}.{match[2]}" if match else ""


def _at(protocol: str, authority: str, key: str) -> Location:
    address = f"{protocol}://{authority}/{key}" if key else f"{protocol}://{authority}"
    return Location(protocol=protocol, address=address, shown=address)


def _parse_full(location: str) -> Location | None:
    if local := _FILE_URL.match(location):
        return _absolute(local[1])
    if url := _URL.match(location) or _HADOOP_URL.match(location):
        return _remote(url[1].lower(), url[2])
    return _absolute(location)


def _absolute(path: str) -> Location | None:
    # Not through `_local`: metadata has no home folder and no current folder.
    if not os.path.isabs(path):  # noqa: PTH117 - a Path costs more
        return None
    plain = f"/{os.path.normpath(path).lstrip('/')}" if path.startswith("/") else path
    return Location(protocol=LOCAL, address=plain, shown=escape_unencodable(plain))


def _same_storage(target: Location, root: Location) -> bool:
    family = _PROTOCOL_FAMILIES.get(root.protocol, root.protocol)
    if _PROTOCOL_FAMILIES.get(target.protocol, target.protocol) != family:
        return False
    if family == LOCAL:
        return True
    if target.hidden:
        return False  # a user, password or query from the metadata
    host, own = (_parts(location)[1] for location in (target, root))
    if family == "abfs":
        return host.rpartition("@")[2] == own.rpartition("@")[2] or "@" not in host
    own = _canonical_host(root.protocol, own.rpartition("@")[2])
    return family in _BUCKETS or _canonical_host(target.protocol, host) in ("", own)


def full_text(location: Location) -> str:
    """Return a location as a full path, for which `is_full_location` is true."""
    return f"{LOCAL}://{location.address}" if location.protocol == LOCAL else location.address


def join_address(base: str, path: str, protocol: str) -> str:
    """Return the address of a checked path below a base."""
    if not path:
        return base
    if protocol in QUOTED:
        path = quote(path)
    return type(base)(base + path if base.endswith("/") else f"{base}/{path}")  # a `HiddenUrl` stays one


def spellings(name: str, folder: str) -> frozenset[str]:
    """Return how a path in metadata may write the name of a listed file: quoted or not in a full URL of the web."""
    return frozenset({name, quote(name)} if folder.partition("://")[0] in QUOTED else {name})


def shorten(text: str) -> str:
    """Return text from metadata or a library as one line of bounded length."""
    line = " ".join(text[: 4 * _MAX_LENGTH].split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}..."
