"""What storages raise, told in our words and without secrets."""

import difflib
import errno
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from snapshot_explorer.errors import MissingDependencyError, StorageError
from snapshot_explorer.storage.location import LOCAL, shortened

_RAISED = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
    ("azure.core.exceptions", "AzureError"),
    ("gcsfs.retry", "HttpError"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("oss2.exceptions", "OssError"),
    ("paramiko.ssh_exception", "SSHException"),
    ("requests", "RequestException"),
    ("smbprotocol.exceptions", "SMBException"),
)
"""Errors of storage libraries that derive from Exception alone."""
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
_DENIED = ("credential", "denied", "forbidden", "auth", "signature", "accesskey", "token", "permission", "profile")
_UNREACHED = ("endpoint", "connect", "timeout", "dns", "ssl", "proxy")
"""Words in the names of errors, and in the codes of S3, that tell what to do."""
_SHORTEST_SECRET = 4


def foreign_errors() -> tuple[type[BaseException], ...]:
    """Return what storages raise, of the libraries that are loaded by now."""
    loaded = ((sys.modules.get(module), name) for module, name in _RAISED)
    known = tuple(getattr(module, name) for module, name in loaded if hasattr(module, name))
    return (OSError, ValueError, TypeError, LookupError, RuntimeError, *known)


class Mask:
    """Takes secrets out of text: every value of the storage options, and what the location hides."""

    def __init__(self, options: Mapping[str, Any], hidden: Iterable[str]) -> None:
        words = {word for word in (*_words(options), *hidden) if len(word) >= _SHORTEST_SECRET}
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
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {shortened(mask(text)).rstrip('. ')}".rstrip(": ")


def cause(error: BaseException, mask: Mask) -> BaseException:
    """Return what to name as the cause of our error: the foreign error, unless a traceback would show a secret.

    A traceback prints the text of every error in the chain, and a notebook keeps what was printed. So an error
    whose chain holds a secret is replaced by one that says the same with the secrets masked.
    """
    if not any(mask.hides(text) for link in _chain(error) for text in (str(link), repr(link), *_notes(link))):
        return error
    return StorageError(said(error, mask))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [link.__cause__, link.__context__]


def _notes(error: BaseException) -> list[str]:
    return [str(note) for note in getattr(error, "__notes__", ())]


def _advice(error: BaseException, *, local: bool) -> str:
    if isinstance(error, NotADirectoryError):
        return "Give the table's own folder."
    if isinstance(error, IsADirectoryError):
        return "Give a file's path."
    if local:
        return "Check its permissions." if isinstance(error, PermissionError) else "Check the path."
    if isinstance(error, PermissionError) or _named(error, _DENIED):
        return "Check the keys in storage_options, or the credentials in the environment."
    if isinstance(error, ConnectionError | TimeoutError) or _named(error, _UNREACHED):
        return "Check the endpoint in storage_options and the network, then try again."
    return "Check the path and storage_options."


def _named(error: BaseException, words: Iterable[str]) -> bool:
    """Return whether a word is in the error's class or code. Not in its text, which may hold any path."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code", "") if isinstance(response, Mapping) else ""
    names = f"{type(error).__name__} {code}".lower()
    return any(word in names for word in words)


def means_missing(error: BaseException) -> bool:
    """Return whether the error says by itself that there is no such file."""
    return isinstance(error, FileNotFoundError) or getattr(error, "errno", None) == errno.ENAMETOOLONG


def is_worth_a_look(error: BaseException) -> bool:
    """Return whether the error may mean a missing file, so that asking if the file is there makes sense.

    Not after a refusal or a lost connection: the second question would be refused as well, or wait as long.
    """
    known = isinstance(error, PermissionError | ConnectionError | TimeoutError | IsADirectoryError)
    return not known and not _named(error, (*_DENIED, *_UNREACHED))


def ensure_backend(protocol: str) -> None:
    """Do nothing if the protocol's library can be imported.

    Raises:
        MissingDependencyError: It can not, or nobody knows the protocol.
    """
    if protocol == LOCAL:
        return
    import fsspec  # noqa: PLC0415 - local tables do without it, and it takes long to import

    try:
        fsspec.get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
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
