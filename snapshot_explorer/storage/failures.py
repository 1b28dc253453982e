"""What storages raise, told in our words and without secrets."""

import difflib
import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from snapshot_explorer.errors import MissingDependencyError, StorageError
from snapshot_explorer.storage.location import LOCAL, shortened

_PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "s3": "s3fs",
        "gs": "gcsfs",
        "gcs": "gcsfs",
        "abfs": "adlfs",
        "az": "adlfs",
        "adl": "adlfs",
        "oss": "ossfs",
        "oci": "ocifs",
        "tos": "tosfs",
        "sftp": "paramiko",
        "ssh": "paramiko",
        "smb": "smbprotocol",
        "http": "aiohttp requests",
        "https": "aiohttp requests",
        "webhdfs": "requests",
        "dbfs": "requests",
        "hf": "huggingface_hub",
        "lakefs": "lakefs-spec",
        "webdav": "webdav4[fsspec]",
    }
)
DENIED = ("credential", "denied", "forbidden", "auth", "signature", "accesskey", "token", "permission", "profile")
"""Words in the names of errors, and in the codes of S3, that speak of a refusal."""
_UNREACHED = ("endpoint", "connect", "timeout", "dns", "ssl", "proxy", "redirect")
"""Words likewise that speak of a way to the storage that does not lead there."""
_CIRCLES = frozenset({"TooManyRedirects", "RecursionError"})
"""How the libraries call redirects that lead back to where they came from."""
_SHORTEST_SECRET = 4
_SHORTEST_IN_ENVIRONMENT = 8
_IN_ENVIRONMENT = re.compile(r"KEY|SECRET|TOKEN|PASSW|CREDENTIAL|SAS\b|CONNECTION_STRING|ACCOUNT_KEY", re.IGNORECASE)
"""Names of environment variables that hold secrets, of any storage."""
_MOST_PARTS = 2_000
"""Parts of an error and all that hangs on it that are looked through; of more, nobody knows what they hold."""
_MEMBERS = ("args", "filename", "filename2", "strerror", "object", "exceptions", "__cause__", "__context__")
"""What an error holds besides its attributes."""


class NotTheFileError(OSError):
    """The storage answered, but not with the file: a page of a proxy, or a part only. Asked again, it may."""


class Mask:
    """Takes secrets out of text: storage options, what the location hides, and secrets of the environment."""

    def __init__(self, options: Mapping[str, Any], hidden: Iterable[str]) -> None:
        words = {word for word in (*_words(options), *hidden) if len(word) >= _SHORTEST_SECRET}
        words |= set(_in_environment())
        longest_first = sorted(words, key=len, reverse=True)
        self._count = len(words)
        self._secrets = re.compile("|".join(map(_however_spelled, longest_first)) or r"(?!)")

    def __repr__(self) -> str:
        return f"Mask({self._count} hidden)"

    def hides(self, text: str) -> bool:
        """Return whether the text holds a secret."""
        return self._secrets.search(text) is not None

    def __call__(self, text: str) -> str:
        """Return the text with `***` for each secret."""
        return self._secrets.sub("***", text)


def _in_environment() -> Iterator[str]:
    """Yield the secrets that storages read from the environment. Short values may be words: they are none."""
    for name, value in os.environ.items():
        # A path to a file of secrets is none itself.
        if _IN_ENVIRONMENT.search(name) and len(value) >= _SHORTEST_IN_ENVIRONMENT and not os.path.isabs(value):  # noqa: PTH117
            yield value


def _however_spelled(word: str) -> str:
    """Return a pattern of a word as it stands, as URLs quote it and as Python and JSON escape it."""
    return "".join(f"(?:{'|'.join(_spellings(letter))})" for letter in word)


def _spellings(letter: str) -> Iterator[str]:
    yield re.escape(letter)
    yield "".join(f"%(?i:{byte:02x})" for byte in letter.encode("utf-8", "surrogatepass"))
    if letter == " ":
        yield r"\+"
    for escaped in {repr(letter)[1:-1], ascii(letter)[1:-1], json.dumps(letter)[1:-1], f"\\{letter}"} - {letter}:
        yield re.escape(escaped)


def _words(value: object) -> Iterator[str]:
    """Yield every text in storage options, however deep; numbers too, they may be passwords."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _words(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _words(item)
    elif isinstance(value, bytes | bytearray):
        yield bytes(value).decode("utf-8", "replace")
    elif isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield str(value)


def translated(error: BaseException, asked: str, mask: Mask, *, local: bool) -> StorageError:
    """Return our error for a foreign one: what was asked, what the storage said, what to do.

    Args:
        error: What the storage raised.
        asked: What could not be done, as the start of a sentence.
        mask: Takes the secrets out of what the storage said.
        local: Whether the storage is this machine's own.
    """
    return StorageError(f"{asked}: {said(error, mask)}. {_advice(error, local=local)}")


def said(error: BaseException, mask: Mask) -> str:
    """Return an error's class and text as one line without secrets."""
    if goes_in_circles(error):
        return "the storage answers with redirects that lead in a circle"
    text = shortened(mask(_text(error))).rstrip(". ")
    if isinstance(error, NotTheFileError):
        return text
    members = [said(one, mask) for one in getattr(error, "exceptions", ())[:3] if isinstance(one, BaseException)]
    return f"{type(error).__name__}: {text}{'; '.join(['', *members])}".rstrip(": ")


def _text(error: BaseException) -> str:
    try:
        return str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
    except Exception:  # noqa: BLE001 - a library's error, whose text may be as broken
        return "it has no text"


def cause(error: BaseException, mask: Mask) -> BaseException:
    """Return what to name as the cause of our error: the foreign error, unless it would show a secret.

    A traceback prints the text of every error in the chain, a notebook keeps what was printed, and a debugger shows
    attributes. So an error is replaced by one that says the same with the secrets masked, if a secret is in its text,
    its notes, its attributes, or in those of its causes, contexts and members; likewise if its text would drive a
    terminal.
    """
    return StorageError(said(error, mask)) if _shows_secret(error, mask) else error


def _shows_secret(error: BaseException, mask: Mask) -> bool:
    """Return whether an error or anything that hangs on it holds a secret, prints raw, or is too much to look at."""
    waiting: list[object] = [error]
    known: dict[int, object] = {}  # the objects themselves: an id is used again after its object is gone
    while waiting:
        value = waiting.pop()
        if id(value) in known or value is None or isinstance(value, bool | type | ModuleType | FunctionType):
            continue
        known[id(value)] = value
        if len(known) > _MOST_PARTS:
            return True
        try:
            texts, parts = _texts(value), _parts(value)
        except Exception:  # noqa: BLE001 - what cannot be looked at may hold anything
            return True
        if any(map(mask.hides, texts)):
            return True
        if isinstance(value, BaseException) and not all(map(str.isprintable, texts)):
            return True
        waiting += parts
    return False


def _texts(value: object) -> list[str]:
    """Return how a value reads; of a container nothing, its parts are looked at."""
    if isinstance(value, bytes | bytearray | memoryview):
        return [bytes(value).decode("utf-8", "replace")]
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return []
    return [value] if isinstance(value, str) else [str(value), repr(value)]


def _parts(value: object) -> list[object]:
    """Return what a value holds."""
    if isinstance(value, str | bytes | bytearray | memoryview | int | float):
        return []
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    members = _MEMBERS if isinstance(value, BaseException) else ()
    return [
        vars(value) if hasattr(value, "__dict__") else None,
        *(getattr(value, one, None) for one in (*slots, *members)),
    ]


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def links_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its causes and contexts, and the members of groups, each once."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            members = getattr(link, "exceptions", ())
            waiting += [link.__cause__, link.__context__]
            waiting += [one for one in members if isinstance(one, BaseException)] if isinstance(members, tuple) else []


def names_of(error: BaseException) -> Iterator[str]:
    """Yield the classes' names of an error and its chain, and S3's codes. Not the text, which may hold any path."""
    for link in links_of(error):
        yield type(link).__name__
        response = getattr(link, "response", None)
        if isinstance(response, Mapping) and isinstance(response.get("Error"), Mapping):
            yield str(response["Error"].get("Code", ""))


def goes_in_circles(error: BaseException) -> bool:
    """Return whether the storage sent us from address to address without end."""
    return not _CIRCLES.isdisjoint(names_of(error))


def lacks_bucket(error: BaseException) -> bool:
    """Return whether the error says that there is no such bucket, which is more than a missing file."""
    return any(name in ("NoSuchBucket", "ContainerNotFound") for name in names_of(error))


def _advice(error: BaseException, *, local: bool) -> str:
    if isinstance(error, NotADirectoryError):
        return "Give the table's own folder."
    if isinstance(error, IsADirectoryError):
        return "Give a file's path."
    if local:
        return "Check its permissions." if isinstance(error, PermissionError) else "Check the path."
    if isinstance(error, NotTheFileError):
        return "Check the endpoint in storage_options, and what stands between: a proxy, a portal that wants a login."
    if isinstance(error, PermissionError) or _named(error, DENIED):
        return "Check the keys in storage_options, or the credentials in the environment."
    if isinstance(error, ConnectionError | TimeoutError) or _named(error, _UNREACHED):
        return "Check the endpoint in storage_options and the network, then try again."
    return "Check the path and storage_options."


def _named(error: BaseException, words: Iterable[str]) -> bool:
    """Return whether a word is in the names of the error's class, of its causes' or in their codes."""
    return any(word in name.lower() for name in names_of(error) for word in words)


def means_missing(error: BaseException) -> bool:
    """Return whether the error says by itself that there is no such file."""
    return isinstance(error, FileNotFoundError) or getattr(error, "errno", None) == errno.ENAMETOOLONG


def is_worth_a_look(error: BaseException) -> bool:
    """Return whether the error may mean a missing file, so that asking if the file is there makes sense.

    Not after a refusal or a lost connection: the second question would be refused as well, or wait as long.
    """
    known = isinstance(error, PermissionError | ConnectionError | TimeoutError | IsADirectoryError)
    return not known and not _named(error, (*DENIED, *_UNREACHED))


def ensure_backend(protocol: str) -> None:
    """Do nothing if the protocol's library can be imported.

    Raises:
        MissingDependencyError: It cannot, or nobody knows the protocol.
    """
    if protocol == LOCAL:
        return
    import fsspec  # noqa: PLC0415 - local tables do without it, and it takes long to import

    try:
        fsspec.get_filesystem_class(protocol)
    except Exception as error:  # a library that is imported here may raise what it likes
        raise missing_backend(protocol, error) from error


def lacks_hadoop(protocol: str, error: BaseException) -> bool:
    """Return whether the error says that there is no Hadoop client on this machine."""
    return protocol == "hdfs" and any(word in str(error).lower() for word in ("libjvm", "libhdfs", "unable to load"))


def missing_backend(protocol: str, error: BaseException) -> MissingDependencyError:
    """Return the error for a protocol whose library is not installed, or that nobody knows."""
    if protocol in ("hdfs", "arrow_hdfs"):
        how = "hdfs:// needs pyarrow and a Hadoop client: set JAVA_HOME, HADOOP_HOME and CLASSPATH"
    elif package := _PACKAGES.get(protocol):
        how = f"{protocol}:// needs a package that is not installed. Install it with: pip install {package}"
    elif isinstance(error, ImportError):
        how = f"{protocol}:// needs a package that is not installed. {shortened(str(error))}"
    else:
        near = difflib.get_close_matches(
            protocol, ("s3", "gs", "abfs", "oss", "hdfs", "file", "memory"), n=1, cutoff=0.5
        )
        advice = (
            f"Did you mean {near[0]}://?" if near else "Use a local path, s3://, gs://, abfs:// or another of fsspec's."
        )
        return MissingDependencyError(f"No package is known that reads {shortened(protocol)}://. {advice}")
    return MissingDependencyError(f"{how}.")
