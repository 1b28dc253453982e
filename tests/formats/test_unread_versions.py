"""Reading what many versions record, although some cannot be read."""

import math
from functools import partial

import pytest

from snapshot_explorer.errors import (
    AccessDeniedError,
    CorruptTableError,
    InvalidArgumentError,
    LimitError,
    MissingFileError,
    SnapshotNotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from snapshot_explorer.storage import Storage
from tests.inner.formats import read_apart as read_versions_apart
from tests.inner.formats import unread_notes


class Reader:
    """Reads versions unless one of them is unreadable, and counts its calls."""

    def __init__(self, *unreadable, error=CorruptTableError, times=math.inf):
        self.unreadable, self.error, self.times, self.calls = set(unreadable), error, times, 0

    def __call__(self, versions):
        self.calls += 1
        bad = self.unreadable.intersection(versions)
        if bad and self.times:
            self.times -= 1
            raise self.error(f"Version {min(bad)} is damaged.")
        return [version * 10 for version in versions]


@pytest.fixture
def read_apart(tmp_path):
    (tmp_path / "file").touch()
    return partial(read_versions_apart, storage=Storage(tmp_path))


def flat(read):
    return [value for _, part in read.parts for value in part]


@pytest.mark.parametrize("unreadable", [(), (0,), (9,), (4,), (3, 4), (0, 9), (1, 3, 5, 7, 9), tuple(range(10))])
def test_every_version_is_read_or_named(read_apart, unreadable):
    read = read_apart(Reader(*unreadable), range(10))

    assert sorted(read.unread) == sorted(unreadable)
    assert flat(read) == [version * 10 for version in range(10) if version not in unreadable]


def test_versions_that_can_all_be_read_are_read_at_once(read_apart):
    reader = Reader()

    read_apart(reader, range(10_000))

    assert reader.calls == 1


def test_one_unreadable_version_costs_a_logarithm_of_reads(read_apart):
    reader = Reader(4_321)

    read_apart(reader, range(10_000))

    assert reader.calls <= 2 * math.ceil(math.log2(10_000)) + 2


@pytest.mark.parametrize("count", [1, 2, 7])
def test_one_wrong_answer_does_not_count(read_apart, count):
    read = read_apart(Reader(0, times=1), range(count))

    assert (flat(read), read.unread) == ([version * 10 for version in range(count)], {})


@pytest.mark.parametrize(
    "error",
    [
        CorruptTableError,
        SnapshotNotFoundError,
        UnsupportedFeatureError,
        MissingFileError,
        AccessDeniedError,
        LimitError,
    ],
)
def test_errors_of_a_version_are_named(read_apart, error):
    assert isinstance(read_apart(Reader(3, error=error), range(5)).unread[3], error)


@pytest.mark.parametrize("error", [StorageError, InvalidArgumentError, ZeroDivisionError])
def test_other_errors_are_raised(read_apart, error):
    with pytest.raises(error):
        read_apart(Reader(3, error=error), range(5))


def test_versions_of_one_reason_are_named_together():
    errors = {version: CorruptTableError("a.json is damaged.") for version in (4, 5, 6, 9)}

    assert unread_notes(errors) == ("Versions 4 to 6 and 9 cannot be read: a.json is damaged.",)
    assert unread_notes({2: errors[4]}, "the commit of") == (
        "The commit of version 2 cannot be read: a.json is damaged.",
    )


def test_an_error_that_is_kept_holds_no_frames(read_apart):
    error = read_apart(Reader(3), range(5)).unread[3]

    assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)


def test_a_wrong_answer_that_is_kept_for_a_call_is_requested_again(tmp_path):
    (tmp_path / "file").write_text("cut")
    storage = Storage(tmp_path)

    def read(versions):
        content = storage.read("file", immutable=True)
        if content == b"cut":
            (tmp_path / "file").write_text("whole")  # what the storage answers from now on
            raise CorruptTableError("file is cut short.")
        return list(versions)

    with storage.keeping_immutable():
        found = read_versions_apart(read, [7], storage)

    assert (flat(found), found.unread) == ([7], {})
