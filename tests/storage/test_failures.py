"""What storages raise, in our words."""

import errno
import http.client
import http.server
import io
import os
import pickle
import threading
import time
import traceback
import types
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer.errors import AccessDeniedError, MissingFileError, SnapshotExplorerError, StorageError
from snapshot_explorer.storage import Storage, retries
from tests.inner.storage import Mask, masked_cause
from tests.support import filesystems
from tests.support.outputs import shown_by


class FakeClientError(OSError):
    """Looks like botocore's."""

    def __init__(self, code, text):
        super().__init__(text)
        self.response = {"Error": {"Code": code}}


@pytest.fixture
def hurried(monkeypatch, first_wait):
    """No wait before a storage is asked again; the waits that there would have been, in seconds."""
    waits = []
    monkeypatch.setattr(retries, "FIRST_WAIT", first_wait)
    # Only for this module: threads that other tests have left also sleep.
    monkeypatch.setattr(retries, "time", types.SimpleNamespace(monotonic=time.monotonic, sleep=waits.append))
    return waits


def raised(register, error, *, gone=False, options=None):
    register(filesystems.failing(error, gone=gone))
    storage = Storage("failing://lake/t", options)
    caught = []
    for ask in (storage.read, storage.open, storage.list, storage.exists):
        try:
            caught.append(ask("a/b"))
        except SnapshotExplorerError as failure:
            caught.append(failure)
    return caught


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (PermissionError("Access Denied"), "Check the keys in storage_options, or the credentials in the environment."),
        (FakeClientError("InvalidAccessKeyId", "no such key"), "Check the keys in storage_options"),
        (TimeoutError("took too long"), "Check the endpoint in storage_options and the network, then try again."),
        (ConnectionResetError("reset"), "Check the endpoint in storage_options and the network, then try again."),
        (OSError(5, "disk on fire"), "Check the path and storage_options."),
        (ValueError("no such region"), "Check the path and storage_options."),
        (TypeError("unexpected keyword argument 'foo'"), "Check the path and storage_options."),
        (RuntimeError("loop"), "Check the path and storage_options."),
        (KeyError("what"), "Check the path and storage_options."),
    ],
)
def test_a_foreign_error_says_what_was_asked_what_was_found_and_what_to_do(register, error, advice, hurried):
    for failure in raised(register, error):
        assert type(failure) is (AccessDeniedError if "keys" in advice else StorageError)
        text = str(failure)
        said = error.strerror if getattr(error, "strerror", None) else str(error)
        assert text.startswith(f"Could not read a/b in failing://lake/t: {type(error).__name__}: {said}. {advice}")
        assert failure.__cause__ is error


def test_an_error_of_a_file_that_is_gone_means_that_it_is_missing(register):
    read, opened, listed, exists = raised(register, OSError("InternalServerError"), gone=True)

    assert isinstance(read, MissingFileError)
    assert isinstance(opened, MissingFileError)
    assert exists is False
    assert type(listed) is StorageError  # that there is no file of its name says nothing of a folder


@pytest.mark.parametrize(
    ("error", "tries"), [(PermissionError("no"), 1), (TimeoutError("late"), 5), (ConnectionError("lost"), 5)]
)
def test_after_a_refusal_or_a_lost_connection_nothing_else_is_asked(register, error, tries, hurried):
    kind = register(filesystems.failing(error, gone=True))

    with pytest.raises(StorageError) as caught:
        Storage("failing://lake/t").read("a")

    assert not isinstance(caught.value, MissingFileError)
    assert kind.asked == ["lake/t/a"] * tries


def test_a_message_is_one_line_of_bounded_length(register):
    failure = raised(register, OSError("first\nsecond\r\n\x1b[31mthird" + "x" * 10_000))[0]

    assert str(failure).isprintable()
    assert len(str(failure)) < 600


def test_a_path_from_metadata_can_not_forge_lines_in_a_message(tmp_path):
    with pytest.raises(MissingFileError) as caught:
        Storage(tmp_path).read("a\nTraceback: \x1b[31m" + "x" * 3000)

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_a_cause_without_secrets_is_kept_as_it_is():
    error = OSError("plain")

    assert masked_cause(error, Mask({"key": "SECRET"}, ())) is error


@pytest.mark.parametrize("hiding", ["text", "argument", "cause", "context", "note", "quoted"])
def test_a_cause_with_a_secret_anywhere_is_replaced_by_one_without(hiding):
    secret = "SE CRET/+"
    error = OSError("plain")
    if hiding == "text":
        error = OSError(f"key {secret} is wrong")
    elif hiding == "argument":
        error = OSError(5, "plain", secret)
    elif hiding == "cause":
        error.__cause__ = ValueError(secret)
    elif hiding == "context":
        error.__context__ = ValueError(secret)
    elif hiding == "note":
        error.add_note(secret)
    else:
        error = OSError("https://h/?sig=SE%20CRET%2F%2B")

    shown = masked_cause(error, Mask({"deep": [{"key": secret}]}, ()))

    printed = "".join(traceback.format_exception(shown))
    assert shown is not error
    assert "CRET" not in printed
    assert "OSError" in printed


def test_short_values_are_not_masked():
    mask = Mask({"anon": True, "mode": "rw", "n": 5, "none": None}, ())

    assert mask("True rw 5 None") == "True rw 5 None"
    assert repr(mask) == "Mask(0 hidden)"


def test_bad_options_are_an_error_of_the_storage(register):
    kind = register(filesystems.counting("picky"))

    def refuse(self, *, port):
        raise ValueError(f"port {port!r} is not a number")

    kind.__init__ = refuse
    with pytest.raises(StorageError) as caught:
        Storage("picky://lake/t", {"port": "SECRET"}).read("a")

    assert str(caught.value) == (
        "Could not connect to picky://lake/t: ValueError: port '***' is not a number. "
        "Check the path and storage_options."
    )
    assert "SECRET" not in "".join(traceback.format_exception(caught.value.__cause__))


def test_a_local_file_that_may_not_be_read_is_not_a_missing_file(tmp_path, monkeypatch):
    import os

    opened = os.open

    def refuse(path, *options, **named):
        if Path(path).parent == tmp_path:
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *options, **named)  # for threads of other tests

    monkeypatch.setattr(os, "open", refuse)  # the tests may run as root, who may read all

    with pytest.raises(StorageError) as caught:
        Storage(tmp_path).read("a")
    assert str(caught.value) == (
        f"Could not read a in {tmp_path}: PermissionError: Permission denied. Check its permissions."
    )


class LibraryError(Exception):
    """Derives from Exception alone, and has attributes of its own."""

    def __init__(self, text, **attributes):
        super().__init__(text)
        vars(self).update(attributes)


class Request:
    """What libraries hang on their errors; its repr shows nothing."""

    __slots__ = ("headers",)

    def __init__(self, headers):
        self.headers = headers


SECRET = "canary-9f3a"


def secretive(kind):  # noqa: C901 - a case for each place
    plain = LibraryError("plain")
    match kind:
        case "text":
            return LibraryError(f"the key {SECRET} is wrong")
        case "attribute":
            return LibraryError("plain", request=Request({"Authorization": f"Bearer {SECRET}".encode()}))
        case "response":
            return LibraryError("plain", response={"Error": {"Code": "X", "Key": [SECRET]}})
        case "group":
            return ExceptionGroup("several", [OSError("plain"), LibraryError(SECRET)])
        case "attribute of a member":
            return ExceptionGroup("several", [OSError("plain"), LibraryError("plain", token=SECRET)])
        case "cause":
            plain.__cause__ = ExceptionGroup("several", [LibraryError("plain", token=SECRET)])
        case "context":
            plain.__context__ = LibraryError("plain", token=SECRET)
        case "note":
            plain.add_note(SECRET)
        case "without text":
            return SilentError(SECRET)
        case "endless":
            plain.deep = [[number, str(number)] for number in range(5_000)]
            plain.deep.append(SECRET)
    return plain


class SilentError(Exception):
    def __str__(self):
        raise ValueError("no text")


KINDS = (
    "text",
    "attribute",
    "response",
    "group",
    "attribute of a member",
    "cause",
    "context",
    "note",
    "without text",
    "endless",
)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_storage_raises_is_our_error_and_holds_no_secret(register, kind):
    for failure in raised(register, secretive(kind), options={"token": SECRET}):
        assert type(failure) is StorageError
        assert failure.__cause__ is not None
        assert not [text for text in shown_by(failure) if SECRET in text]
        assert str(pickle.loads(pickle.dumps(failure))) == str(failure)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_storage_raises_while_it_is_made_is_our_error_and_holds_no_secret(register, kind):
    made = register(filesystems.counting("picky"))

    def refuse(self, **_):
        raise secretive(kind)

    made.__init__ = refuse

    with pytest.raises(StorageError, match="^Could not connect to picky://lake/t: ") as caught:
        Storage("picky://lake/t", {"token": SECRET}).read("a")

    assert not [text for text in shown_by(caught.value) if SECRET in text]


@pytest.mark.parametrize("error", [MemoryError("full"), KeyboardInterrupt(), SystemExit(3)])
def test_what_is_not_a_failure_of_the_storage_passes_through(register, error):
    register(filesystems.failing(error))

    with pytest.raises(type(error)):
        Storage("failing://lake/t").read("a")


def test_an_error_of_a_class_of_its_own_while_a_file_is_read_in_ranges_is_ours(register, memory_root):
    filesystem, root = memory_root
    kind = register(filesystems.counting("lazy"))
    out = io.BytesIO()
    rows = pa.Array.from_buffers(pa.int64(), 400_000, [None, pa.py_buffer(os.urandom(3_200_000))])
    pq.write_table(pa.table({"a": rows}), out, compression="none", use_dictionary=False)
    filesystem.pipe_file(f"{root}/a.parquet", out.getvalue())
    opened = Storage(f"lazy://{root}", {"token": SECRET}).open("a.parquet")

    def fail(self, path, **_):
        raise LibraryError("plain", token=SECRET)

    kind.cat_file = fail
    with pytest.raises(StorageError, match="^Could not read a.parquet in .*: LibraryError: plain") as caught:
        pq.ParquetFile(opened).read()

    assert not [text for text in shown_by(caught.value) if SECRET in text]


def test_a_secret_of_the_environment_is_masked(register, monkeypatch):
    monkeypatch.setenv("SOME_STORAGE_ACCOUNT_KEY", SECRET)
    monkeypatch.setenv("HOW_TO_KEY", "always")

    failure = raised(register, LibraryError(f"{SECRET} is always wrong"))[0]

    assert "LibraryError: *** is always wrong." in str(failure)
    assert not [text for text in shown_by(failure) if SECRET in text]


class Recovering(filesystems.AbstractFileSystem):
    """Fails a number of times before it answers."""

    protocol = "recovering"
    root_marker = ""
    error: BaseException | None = None
    left = 0

    def cat_file(self, path, **_):
        return self._answer(b"content")

    def ls(self, path, **_):
        return self._answer([{"name": f"{path}/a", "type": "file", "size": 7}])

    def info(self, path, **_):
        return self._answer({"name": path, "type": "file", "size": 7})

    def _answer(self, answer):
        kind = type(self)
        if kind.left:
            kind.left -= 1
            raise kind.error
        return answer


class FakeConnectionError(Exception):
    """Looks like botocore's EndpointConnectionError: its cause says why."""


def unreachable(cause):
    """The error of botocore where connecting fails so."""
    error = FakeConnectionError('Could not connect to the endpoint URL: "http://127.0.0.1:9"')
    error.__cause__ = cause
    return error


class ThrottledError(Exception):
    status = 429


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        TimeoutError("late"),
        OSError(errno.EBUSY, "SlowDown"),
        ThrottledError("later"),
        FakeClientError("SlowDown", "later"),
        FakeClientError("InternalError", "later"),
        ExceptionGroup("several", [ConnectionError("lost")]),
        http.client.IncompleteRead(b"x"),
        unreachable(ConnectionRefusedError(111, "no")),
    ],
)
def test_an_error_that_passes_is_waited_for(register, hurried, error):
    kind = register(Recovering)
    kind.error = error

    for ask, answer in ((Storage.read, b"content"), (Storage.exists, True), (Storage.list, 1)):
        kind.left = 4
        found = ask(Storage("recovering://lake/t"), "a")
        assert (len(found) if ask is Storage.list else found) == answer
        assert kind.left == 0

    assert len(hurried) == 12
    for place, wait in enumerate(hurried):
        assert 0.05 <= wait / 2 ** (place % 4) <= 0.15


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        FakeClientError("AccessDenied", "no"),
        FileNotFoundError("no"),
        OSError("no"),
    ],
)
def test_an_error_that_stays_is_not_waited_for(register, hurried, error):
    kind = register(Recovering)
    kind.error, kind.left = error, 99

    with pytest.raises(StorageError):
        Storage("recovering://lake/t").read("a")

    assert hurried == []


def test_what_is_slow_to_fail_is_not_tried_for_longer_than_half_a_minute(register, monkeypatch):
    now = [0.0]
    clock = types.SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(retries, "time", clock)
    asked = []

    class Slow(Recovering):
        def cat_file(self, path, **_):
            now[0] += 14
            asked.append(now[0])
            raise TimeoutError("late")

    register(Slow)

    with pytest.raises(StorageError, match="TimeoutError: late"):
        Storage("recovering://lake/t").read("a")

    assert 2 <= len(asked) <= 4


def test_a_page_in_the_place_of_a_file_is_not_taken_for_it(register, hurried, memory_root):
    filesystem, root = memory_root
    register(filesystems.counting())
    filesystem.pipe_file(f"{root}/a", b"\n <!DOCTYPE html><html><body>Please log in</body></html>")

    with pytest.raises(StorageError, match="Could not read a in .*: the storage answered with an HTML page instead of"):
        Storage(f"counted://{root}").read("a")


def test_part_of_a_file_is_not_taken_for_it(register, hurried, memory_root):
    filesystem, root = memory_root
    kind = register(filesystems.counting())
    filesystem.pipe_file(f"{root}/small", b"x" * 1000)
    filesystem.pipe_file(f"{root}/large", os.urandom(3 << 20))
    storage = Storage(f"counted://{root}")
    whole = kind.cat_file
    kind.cat_file = lambda self, path, **options: whole(self, path, **options)[:-1]

    with pytest.raises(StorageError, match="the storage answered with 999 of 1,000 bytes"):
        storage.open("small", size_bytes=1000)
    with pytest.raises(StorageError, match="Could not read large in .* with 131,071 of 131,072 bytes"):
        storage.open("large").read()


@pytest.mark.parametrize(
    ("status", "message"),
    [(403, "403, message='Forbidden', .* Check the keys in storage_options"), (500, "500, message='Internal Server")],
)
def test_a_web_server_that_answers_with_an_error_has_no_empty_folder(monkeypatch, caplog, status, message):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(retries, "FIRST_WAIT", 0)
    caplog.set_level("DEBUG", "fsspec.http")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(status)

        def do_HEAD(self):
            self.send_error(status)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        storage = Storage(f"http://user:canary@127.0.0.1:{server.server_port}/t?sig=canary")
        for ask in (storage.read, storage.exists, storage.list, storage.read_present):
            with pytest.raises(StorageError, match=message):
                ask(["a"] if ask == storage.read_present else "a")
        server.shutdown()
    assert "http://...@127.0.0.1" in caplog.text  # fsspec logs each URL
    assert "canary" not in caplog.text


class FailedRequestError(Exception):
    """An error of a client of HTTP, which has the status of the answer in some place."""

    def __init__(self, place, status):
        super().__init__("failed")
        if place == "response":
            self.response = types.SimpleNamespace(status_code=status)
        else:
            setattr(self, place, status)


@pytest.mark.parametrize("place", ["status", "status_code", "code", "response"])
@pytest.mark.parametrize(
    ("status", "is_tried_again"), [(408, True), (429, True), (503, True), (400, False), (501, False)]
)
def test_a_status_that_may_pass_is_tried_again(register, place, status, is_tried_again, hurried):
    raised(register, FailedRequestError(place, status))

    assert bool(hurried) == is_tried_again
