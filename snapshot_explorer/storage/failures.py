"""Errors of storages, translated into our errors without secrets."""

import difflib
import errno
import re
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MappingProxyType, ModuleType
from urllib.parse import urlsplit

from snapshot_explorer.core.errors import AccessDeniedError, MissingDependencyError, StorageError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.storage.location import LOCAL, shorten
from snapshot_explorer.storage.masks import Mask

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
"""Parts of the names of errors, and of S3 error codes, that mean denied access."""
_UNREACHABLE = ("endpoint", "connect", "timeout", "dns", "ssl", "proxy", "redirect")
"""Likewise for a storage that cannot be reached."""
_REDIRECT_LOOPS = frozenset({"TooManyRedirects", "RecursionError"})
"""Names of the libraries' errors for a loop of redirects."""
_UNAUTHORIZED = 401
_DENIED_STATUSES = frozenset({_UNAUTHORIZED, 403})
_MISSING_STATUSES = frozenset({404, 410})
_MAX_PARTS = 2_000
"""The maximum number of parts of an error and its chain that are searched for secrets. Larger ones count as unsafe."""
_REDIRECTS = range(300, 400)
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_MEMBERS = ("args", "filename", "filename2", "strerror", "object", "exceptions", "__cause__", "__context__")
"""Members of an error in addition to its attributes."""


class MissingBucketError(FileNotFoundError):
    """The bucket or container of a file or folder does not exist."""


class UnexpectedResponseError(OSError):
    """The storage did not answer with the file, but with a proxy's page or a part of the file. A retry may succeed."""


class EndlessListingError(UnexpectedResponseError):
    """The pages of a listing have no end. Another attempt would take as long."""


class SlowAnswerError(TimeoutError):
    """An answer arrived below the minimum speed."""

    def __init__(self, received: int) -> None:
        """Store a message with the number of bytes that arrived."""
        super().__init__(f"the storage stalled, or sends too slowly: {received:,} bytes came until the time was up")


class OversizedAnswerError(OSError):
    """A file, or an answer, has more bytes than are allowed. They were not read."""

    def __init__(self, size_bytes: int, limit: int) -> None:
        """Keep the size, or the bytes that were counted until the limit was exceeded."""
        super().__init__(f"it has {size_bytes:,} bytes or more, and {limit:,} are read at most")
        self.size_bytes = size_bytes
        self.limit = limit


class ReplacedFileError(OSError):
    """A file was replaced between two reads of it."""

    def __init__(self) -> None:
        """Store a message."""
        super().__init__("it was replaced while it was read, so its parts do not belong together")


class RedirectedError(OSError):
    """The storage answered with a redirect, which is not followed."""

    def __init__(self, target: object = None, region: object = None) -> None:
        """Store a message.

        Args:
            target: The URL of the redirect, if it is another server's. Only its host is shown: a query may be a
                signature.
            region: The S3 region in the storage's answer.
        """
        is_region = isinstance(region, str) and _REGION.fullmatch(region) is not None
        self.region = region if is_region else None
        where = f" to {host}" if (host := _shown_host(target)) else ""
        reason = f"; the bucket is in the region {region}" if is_region else ""
        super().__init__(f"the storage answers with a redirect{where}, which is not followed{reason}")


def _shown_host(url: object) -> str:
    """Return scheme, host and port of a URL; empty if it has none."""
    try:
        parts = urlsplit(str(url or ""))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.scheme and parts.hostname else ""


_OWN = (UnexpectedResponseError, SlowAnswerError, OversizedAnswerError, ReplacedFileError, RedirectedError)
"""Errors whose text is complete without the name of their class."""


def storage_error(error: BaseException, problem: str, mask: Mask, *, local: bool) -> StorageError:
    """Return our error for a foreign one: the failed operation, the storage's error and advice.

    Args:
        problem: The failed operation, as the start of a sentence.
        mask: Removes the secrets from the storage's error.
        local: Whether the storage is the local disk.
    """
    if not local and (advice := missing_credentials(error)):
        return StorageError(f"{problem}. {advice} in storage_options.")
    error = own_error(error) or error
    if isinstance(error, FileNotFoundError):
        error = next((link for link, _ in _answers(error)), error)  # see is_missing_file
    kind = AccessDeniedError if _is_denied(error) else StorageError
    return kind(f"{problem}: {error_text(error, mask)}. {_advice(error, local=local)}")


def missing_bucket_error(target: str, *, is_azure: bool) -> StorageError:
    """Return our error for a target whose bucket or container does not exist."""
    bucket, settings = ("container", "the account") if is_azure else ("bucket", "the endpoint and region")
    return StorageError(
        f"Could not read {target}: there is no such {bucket}. Check the {bucket}'s name, and {settings} in "
        "storage_options."
    )


def error_text(error: BaseException, mask: Mask) -> str:
    """Return an error's class and text as one line without secrets."""
    if is_redirect_loop(error):
        return "the storage answers with a loop of redirects"
    text = shorten(mask(_text(error))).rstrip(". ")
    if isinstance(error, _OWN):
        return text
    members = [
        error_text(item, mask) for item in getattr(error, "exceptions", ())[:3] if isinstance(item, BaseException)
    ]
    return f"{type(error).__name__}: {text}{'; '.join(['', *members])}".rstrip(": ")


def _text(error: BaseException) -> str:
    try:
        return str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
    except Exception:  # noqa: BLE001 - a library's error, whose text may be as broken
        return "it has no text"


def masked_cause(error: BaseException, mask: Mask) -> BaseException:
    """Return the cause of our error: the foreign error, or a copy without secrets.

    A traceback prints the text of every error in the chain, a notebook stores the output, and a debugger shows
    attributes. So a masked copy replaces an error if the text, notes or attributes of the error, or of its causes,
    contexts or members, contain a secret. Likewise if its text contains control characters for a terminal.

    The copy has no frames: tools that show the local variables of a traceback would show the options in the library's
    frames.
    """
    if _contains_secret(error, mask):
        return StorageError(error_text(error, mask))
    for link in error_chain(error):
        link.__traceback__ = None
    return error


def _contains_secret(error: BaseException, mask: Mask) -> bool:
    """Return whether an error or its chain contains a secret or control characters, or is too large to search."""
    waiting: list[object] = [error]
    known: dict[int, object] = {}  # the objects themselves: an id is reused after its object is freed
    while waiting:
        value = waiting.pop()
        if id(value) in known or value is None or isinstance(value, bool | type | ModuleType | FunctionType):
            continue
        known[id(value)] = value
        if len(known) > _MAX_PARTS:
            return True
        try:
            texts, parts = _texts(value), _parts(value)
        except Exception:  # noqa: BLE001 - what cannot be read may contain a secret
            return True
        if any(map(mask.has_secret, texts)):
            return True
        if isinstance(value, BaseException) and not all(map(str.isprintable, texts)):
            return True
        waiting += parts
    return False


def _texts(value: object) -> list[str]:
    """Return the texts of a value; none for a container, whose parts are searched instead."""
    if isinstance(value, bytes | bytearray | memoryview):
        return [bytes(value).decode("utf-8", "replace")]
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return []
    return [value] if isinstance(value, str) else [str(value), repr(value)]


def _parts(value: object) -> list[object]:
    if isinstance(value, str | bytes | bytearray | memoryview | int | float):
        return []
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    slots = [name for cls in type(value).__mro__ for name in _slots(cls)]
    members = _MEMBERS if isinstance(value, BaseException) else ()
    return [
        vars(value) if hasattr(value, "__dict__") else None,
        *(getattr(value, item, None) for item in (*slots, *members)),
    ]


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
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
            waiting += (
                [member for member in members if isinstance(member, BaseException)]
                if isinstance(members, tuple)
                else []
            )


def error_names(error: BaseException) -> Iterator[str]:
    """Yield the class names of an error and its chain, and codes of S3 and Azure. Not its text: it contains paths."""
    for link in error_chain(error):
        yield type(link).__name__
        if isinstance(code := getattr(link, "error_code", None), str):
            yield str(getattr(code, "value", code))
        response = getattr(link, "response", None)
        if isinstance(response, Mapping) and isinstance(response.get("Error"), Mapping):
            yield str(response["Error"].get("Code", ""))


def is_redirect_loop(error: BaseException) -> bool:
    """Return whether the storage answers with a loop of redirects."""
    return not _REDIRECT_LOOPS.isdisjoint(error_names(error))


def is_missing_bucket(error: BaseException) -> bool:
    """Return whether the error means that the bucket does not exist, not only a file."""
    return any(name in ("NoSuchBucket", "ContainerNotFound", "MissingBucketError") for name in error_names(error))


def missing_credentials(error: BaseException) -> str | None:
    """Return advice for the user if the error means that no credentials were found; else None."""
    for link in error_chain(error):
        text = _text(link)
        match type(link).__name__:
            case "NoCredentialsError":
                return "No S3 credentials were found: pass key and secret, or profile, or anon=True for a public bucket"
            case "ClientAuthenticationError" if "DefaultAzureCredential" in text:
                return "No Azure credentials were found: pass account_key, sas_token or connection_string"
            case "ValueError" if "either a connection_string or account_name" in text:
                return "No Azure account was named: pass account_name and account_key, or connection_string"
            case "HttpError" if getattr(link, "code", None) == _UNAUTHORIZED and "nonymous" in text:
                return "No Google credentials were found: pass token, the path of a service account's key"
    return None


def _advice(error: BaseException, *, local: bool) -> str:
    if advice := _own_advice(error):
        return advice
    if local:
        return "Check its permissions." if isinstance(error, PermissionError) else "Check the path."
    if _is_denied(error):
        return "Check the keys in storage_options, or the credentials in the environment."
    if isinstance(error, ConnectionError | TimeoutError) or _name_contains(error, _UNREACHABLE):
        return "Check the endpoint in storage_options and the network, then try again."
    return "Check the path and storage_options."


def _is_denied(error: BaseException) -> bool:
    has_status = any(status in _DENIED_STATUSES for _, status in _answers(error))
    return has_status or isinstance(error, PermissionError) or _name_contains(error, DENIED)


def _own_advice(error: BaseException) -> str | None:
    """Return the advice for an error with an exact cause."""
    match error:
        case NotADirectoryError():
            return "Give the table's own folder."
        case IsADirectoryError():
            return "Give a file's path."
        case ReplacedFileError():
            return "Repeat the call, and open the table again if it fails again: no writer should replace such a file."
        case RedirectedError(region=str(region)):
            options = {"client_kwargs": {"region_name": region}}
            return Message("Set the region: ", Hint("", {"storage_options": options}), ", or aws_region in them.")
        case RedirectedError():
            return (
                "Check the endpoint in storage_options: credentials would be sent to the other address. If you trust "
                "it, give it as the endpoint, or open the table there."
            )
        case UnexpectedResponseError():
            return "Check the endpoint in storage_options, and the network for a proxy or a login page."
    return None


def own_error(error: BaseException) -> BaseException | None:
    """Return our own error, or the error of a redirect, from the chain of a library's error; None without either."""
    links = list(error_chain(error))
    own = next((link for link in links if isinstance(link, _OWN)), None)
    return own or next(filter(None, map(_redirect, links)), None)


def _redirect(link: BaseException) -> RedirectedError | None:
    """Return the error for a library's error that is about a redirect."""
    response = getattr(link, "response", None)
    if isinstance(response, Mapping):  # botocore's
        metadata, named = response.get("ResponseMetadata") or {}, (response.get("Error") or {}).get("Region")
        headers = metadata.get("HTTPHeaders") or {}
        is_redirect = named or metadata.get("HTTPStatusCode") in _REDIRECTS
        region = named or headers.get("x-amz-bucket-region")
        return RedirectedError(headers.get("location"), region) if is_redirect else None
    if getattr(link, "status_code", None) in _REDIRECTS:  # Azure's
        return RedirectedError((getattr(response, "headers", None) or {}).get("Location"))
    return None


def _name_contains(error: BaseException, words: Iterable[str]) -> bool:
    return any(word in name.lower() for name in error_names(error) for word in words)


def is_missing_file(error: BaseException) -> bool:
    """Return whether the error alone means that the file does not exist."""
    # A path below a file names nothing.
    return is_missing_folder(error) or isinstance(error, NotADirectoryError)


def is_missing_folder(error: BaseException) -> bool:
    """Return whether the error means that the requested folder does not exist.

    After any other error, the contents of the folder are unknown.
    """
    if getattr(error, "errno", None) == errno.ENAMETOOLONG:
        return True
    return (
        isinstance(error, FileNotFoundError)
        and own_error(error) is None
        and not is_missing_bucket(error)
        and not _is_in_doubt(error)
    )


def _is_in_doubt(error: BaseException) -> bool:
    """Return whether the library's error for a missing file may have another cause than the storage's answer."""
    # fsspec raises it for each error status of a web server, and for lost connections.
    return "404" in error_names(error) or any(map(_is_other_failure, error_chain(error)))


def _is_other_failure(link: BaseException) -> bool:
    answers = [*_statuses(link)]
    if type(link).__name__ == "ResourceNotFoundError" and not getattr(link, "error_code", None):
        return True  # without Azure's own error code (S3's is checked above), a gateway may have answered
    if answers:
        return any(status not in _MISSING_STATUSES for status in answers)
    return isinstance(link, OSError) and not isinstance(link, FileNotFoundError | NotADirectoryError)


def _answers(error: BaseException) -> Iterator[tuple[BaseException, int]]:
    """Yield the links of an error's chain that have an HTTP status, with it."""
    for link in error_chain(error):
        if isinstance(status := getattr(link, "status", None), int):
            yield link, status


def might_be_missing(error: BaseException) -> bool:
    """Return whether the error might mean a missing file, so that a check for the file is useful.

    Not after denied access or a lost connection: the check would fail the same way, or wait as long. Nor after a
    server's answer with another meaning.
    """
    is_known = own_error(error) is not None or isinstance(
        error, PermissionError | ConnectionError | TimeoutError | IsADirectoryError
    )
    answers = [status for link in error_chain(error) for status in _statuses(link)]
    is_other_answer = any(status not in _MISSING_STATUSES for status in answers)
    return not (is_known or is_other_answer or _name_contains(error, (*DENIED, *_UNREACHABLE)))


def _statuses(link: BaseException) -> Iterator[int]:
    """Yield the HTTP status of an answer, from the attributes that the clients of S3, Azure and the web use."""
    response = getattr(link, "response", None)
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    kept = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
    members = (getattr(source, name, None) for source in (link, response) for name in ("status", "status_code"))
    yield from (status for status in (kept, *members) if isinstance(status, int))


def detach(error: BaseException, ambient: BaseException | None) -> None:
    """Remove from an error the context that the caller was handling: it is unrelated to the storage."""
    if ambient is None:
        return
    for link in error_chain(error):
        if link.__context__ is ambient:
            link.__context__ = None


def ensure_backend(protocol: str) -> None:
    """Do nothing if the protocol's library can be imported."""
    if protocol == LOCAL:
        return
    import fsspec  # noqa: PLC0415 - local tables do without it, and it takes long to import

    try:
        fsspec.get_filesystem_class(protocol)
    except Exception as error:  # a library that is imported here may raise anything
        raise missing_backend(protocol, error) from error


def lacks_hadoop(protocol: str, error: BaseException) -> bool:
    """Return whether the error means that no Hadoop client is installed."""
    return protocol == "hdfs" and any(word in str(error).lower() for word in ("libjvm", "libhdfs", "unable to load"))


def missing_backend(protocol: str, error: BaseException) -> MissingDependencyError:
    """Return the error for a protocol that is unknown, or whose library is not installed."""
    if protocol in ("hdfs", "arrow_hdfs"):
        problem = "hdfs:// needs pyarrow and a Hadoop client: set JAVA_HOME, HADOOP_HOME and CLASSPATH"
    elif package := _PACKAGES.get(protocol):
        problem = f"{protocol}:// needs a package that is not installed. Install it with: pip install {package}"
    elif isinstance(error, ImportError):
        problem = f"{protocol}:// needs a package that is not installed. {shorten(str(error))}"
    else:
        near = difflib.get_close_matches(
            protocol, ("s3", "gs", "abfs", "oss", "hdfs", "file", "memory"), n=1, cutoff=0.5
        )
        advice = (
            f"Did you mean {near[0]}://?" if near else "Use a local path, s3://, gs://, abfs:// or another of fsspec's."
        )
        return MissingDependencyError(f"No known package reads {shorten(protocol)}://. {advice}")
    return MissingDependencyError(f"{problem}.")
