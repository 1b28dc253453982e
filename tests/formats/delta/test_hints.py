"""_last_checkpoint and checksum files: believed only as far as they go."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.storage import Storage
from tests.inner.delta import CheckpointHint, canonical, read_checksum, read_hint
from tests.support.delta.table_builder import DeltaTable

CORRUPTED = "_delta_log/_last_checkpoint is corrupted. Will search the checkpoint files directly"


@pytest.fixture
def table(tmp_path):
    return DeltaTable(None, tmp_path)


def hint_of(table, content):
    table.write("_delta_log/_last_checkpoint", content)
    return read_hint(Storage(table.root))


def test_without_a_hint_there_is_nothing_to_start_from(table):
    assert read_hint(Storage(table.root)) == (None, ())


@pytest.mark.parametrize("content", [b'{"version":10,"size":3}', b'{"version":"10"}', b'{"version":10,"unknown":{}}\n'])
def test_a_hint_names_a_version(table, content):
    assert hint_of(table, content) == (CheckpointHint(version=10, size_bytes=None), ())


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"7", b'{"size":3}', b'{"version":-1}', b'{"version":1.5}', b"\xff"]
)
def test_a_damaged_hint_is_passed_over_with_a_note(table, content):
    assert hint_of(table, content) == (None, (CORRUPTED,))


def test_a_hint_whose_own_checksum_does_not_fit_is_passed_over(table):
    reported = {"version": 10, "size": 3}
    fitting = hashlib.md5(canonical(reported).encode()).hexdigest()

    assert hint_of(table, json.dumps(reported | {"checksum": fitting}).encode())[0].version == 10
    assert hint_of(table, json.dumps(reported | {"size": 4, "checksum": fitting}).encode()) == (None, (CORRUPTED,))


def test_the_text_of_which_the_checksum_is_made_is_that_of_the_specification():
    sample = {
        "k0": "'v 0'",
        "checksum": "adsaskfljadfkjadfkj",
        "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
    }
    text = canonical(sample)

    assert text.startswith('"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1')
    assert hashlib.md5(text.encode()).hexdigest() == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_a_checksum_file_tells_counts_protocol_and_metadata(table):
    table.append([(1, "a")])
    table.checksum()

    found = read_checksum(Storage(table.root), 1)

    assert (found.files, found.metadata.id, found.protocol.min_reader_version) == (1, "table-0", 1)
    assert found.size_bytes > 0


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"numFiles":"x"}', b'{"protocol":{"minReaderVersion":1}}', b'{"metadata":{"id":7}}']
)
def test_a_damaged_checksum_file_tells_nothing(table, content):
    table.write(f"_delta_log/{0:020d}.crc", content)

    assert read_checksum(Storage(table.root), 0) is None
    assert read_checksum(Storage(table.root), 1) is None


@given(st.binary(max_size=40), st.integers(0, 200))
def test_whatever_is_in_them_nothing_fails(tmp_path_factory, noise, cut):
    table = DeltaTable(None, tmp_path_factory.mktemp("t"))
    table.hint(3)
    table.checksum()
    for path in ("_delta_log/_last_checkpoint", f"_delta_log/{0:020d}.crc"):
        content = table.read(path)
        table.write(path, content[:cut] + noise + content[cut + len(noise) :])

    read_hint(Storage(table.root))
    read_checksum(Storage(table.root), 0)
