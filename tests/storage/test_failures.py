"""What storages raise, in our words."""

import traceback

import pytest

import stores
from snapshot_explorer.errors import MissingFileError, SnapshotExplorerError, StorageError
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.failures import Mask, cause


class FakeClientError(OSError):
    """Looks like botocore's."""

    def __init__(self, code, text):
        super().__init__(text)
        self.response = {"Error": {"Code": code}}


def raised(register, error, *, gone=False, options=None):
    register(stores.failing(error, gone=gone))
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
def test_a_foreign_error_says_what_was_asked_what_was_found_and_what_to_do(register, error, advice):
    for failure in raised(register, error):
        assert type(failure) is StorageError
        text = str(failure)
        said = error.strerror if getattr(error, "strerror", None) else str(error)
        assert text.startswith(f"Could not read a/b in failing://lake/t: {type(error).__name__}: {said}. {advice}")
        assert failure.__cause__ is error


def test_an_error_of_a_file_that_is_gone_means_that_it_is_missing(register):
    read, opened, listed, exists = raised(register, OSError("InternalServerError"), gone=True)

    assert isinstance(read, MissingFileError)
    assert isinstance(opened, MissingFileError)
    assert listed == []
    assert exists is False


@pytest.mark.parametrize("error", [PermissionError("no"), TimeoutError("late"), ConnectionError("lost")])
def test_after_a_refusal_or_a_lost_connection_nothing_more_is_asked(register, error):
    kind = register(stores.failing(error, gone=True))

    with pytest.raises(StorageError):
        Storage("failing://lake/t").read("a")

    assert kind.asked == ["lake/t/a"]


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

    assert cause(error, Mask({"key": "SECRET"}, ())) is error


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

    shown = cause(error, Mask({"deep": [{"key": secret}]}, ()))

    printed = "".join(traceback.format_exception(shown))
    assert shown is not error
    assert "CRET" not in printed
    assert "OSError" in printed


def test_short_values_are_not_masked():
    mask = Mask({"anon": True, "mode": "rw", "n": 5, "none": None}, ())

    assert mask("True rw 5 None") == "True rw 5 None"
    assert repr(mask) == "Mask(0 hidden)"


def test_bad_options_are_an_error_of_the_storage(register):
    kind = register(stores.counting("picky"))

    def refuse(self, *, port):
        raise ValueError(f"port {port!r} is no number")

    kind.__init__ = refuse
    with pytest.raises(StorageError) as caught:
        Storage("picky://lake/t", {"port": "SECRET"}).read("a")

    assert str(caught.value) == (
        "Could not connect to picky://lake/t: ValueError: port '***' is no number. Check the path and storage_options."
    )
    assert "SECRET" not in "".join(traceback.format_exception(caught.value.__cause__))


def test_a_local_file_that_may_not_be_read_is_no_missing_file(tmp_path, monkeypatch):
    import os

    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)  # the tests may run as root, who may read all

    with pytest.raises(StorageError) as caught:
        Storage(tmp_path).read("a")
    assert str(caught.value) == (
        f"Could not read a in {tmp_path}: PermissionError: Permission denied. Check its permissions."
    )
