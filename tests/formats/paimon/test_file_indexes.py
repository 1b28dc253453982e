"""Which indexes data files have: as Paimon's classes read them, empty ones, and containers that are damaged."""

import contextlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer import errors, open_table
from tests.inner.paimon import FileIndex, parse_container

DATA = Path(__file__).parents[2] / "data"
MAGIC = 1493475289347502


def text(value):
    return struct.pack(">H", len(value)) + value


def container(*indexes, version=1, magic=MAGIC, body=b"12345678", shift=0):
    """Return a container: each index is column, kind, begin in the body (None for an empty one) and length."""
    middle = b""
    size = 24 + sum(4 + 2 + len(column) + 2 + len(kind) + 8 for column, kind, _, _ in indexes)
    for column, kind, begin, length in indexes:
        place = struct.pack(">ii", -1 if begin is None else size + begin, length)
        middle += text(column) + struct.pack(">i", 1) + text(kind) + place
    head = struct.pack(">qii", magic, version, size + shift) + struct.pack(">i", len(indexes)) + middle
    return head + struct.pack(">i", 0) + body


def test_the_indexes_are_those_that_paimon_s_classes_read():
    opened = open_table(str(DATA / "paimon" / "file_indexed"))
    expected = json.loads((DATA / "expected" / "file_indexes" / "file_indexed.json").read_text())

    rows = opened.inspect("file_indexes").to_dict()

    for row in rows:
        for name in ("file_path", "index_file_path"):
            row[name] = row[name] and row[name].removeprefix(f"{opened.path}/")
    reported = [{name: row[name] for name in expected[0]} for row in rows]
    assert sorted(reported, key=json.dumps) == sorted(expected, key=json.dumps)
    assert {(row["storage_type"], row["partition"]) for row in rows} == {
        ("FILE", "{x}"),
        ("FILE", "{null}"),
        ("EMBEDDED", "{y}"),
    }
    assert all(row["schema_id"] == row["bucket"] == 0 and row["record_count"] > 0 for row in rows)


def test_a_version_has_the_indexes_of_its_own_files():
    opened = open_table(str(DATA / "paimon" / "file_indexed"))

    assert opened.inspect("file_indexes", 1).num_rows == 8
    assert opened.inspect("file_indexes", 2).num_rows == 12
    assert opened.inspect("file_indexes", 4).num_rows == opened.inspect("file_indexes", 3).num_rows == 16


def test_an_index_of_no_values_is_empty():
    content = container((b"a", b"bitmap", 0, 8), (b"b", b"bloom-filter", None, 0))

    assert parse_container(content, "f.index") == [
        FileIndex(column="a", kind="bitmap", begin=len(content) - 8, length=8),
        FileIndex(column="b", kind="bloom-filter", begin=-1, length=0),
    ]


def test_names_are_in_java_s_own_form_of_utf_8():
    smile = "\U0001f600".encode("utf-16-be")
    surrogates = "".join(chr(unit) for unit in struct.unpack(">HH", smile)).encode("utf-8", "surrogatepass")

    found = parse_container(container((surrogates + b"\xc0\x80", b"x", 0, 1)), "f.index")

    assert found[0].column == "\U0001f600\0"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "unpack_from requires a buffer"),
        (container(magic=7), "it does not begin like one"),
        (container(shift=1_000_000), "its header would have 1000024 of 32 bytes"),
        (container(shift=-20), "its header would have 4 of 32 bytes"),
        (container((b"a", b"bitmap", 1, 8)), "an index of 'a' would be at"),
        (container((b"a", b"bitmap", -40, 8)), "an index of 'a' would be at"),
        (container((b"a", b"bitmap", None, 8)), "an index of 'a' would be at -1, with 8 bytes"),
        (container((b"\xff", b"bitmap", 0, 8)), "can't decode byte"),
    ],
)
def test_a_damaged_container_is_named(content, why):
    with pytest.raises(errors.CorruptTableError, match=f"x/f.index is not a readable file index .*{why}"):
        parse_container(content, "x/f.index")


def test_a_container_of_another_version_is_refused():
    with pytest.raises(errors.UnsupportedFeatureError, match="The file index x/f.index has version 2; version 1 is"):
        parse_container(container(version=2), "x/f.index")


@given(st.data())
def test_no_bytes_do_more_than_raise_our_errors(data):
    whole = container((b"a", b"bitmap", 0, 8), (b"b", b"bsi", None, 0))
    place = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(0, len(whole)))
    mutated = whole[:place] + data.draw(st.binary(max_size=4)) + whole[place + 1 : end]

    with contextlib.suppress(errors.CorruptTableError, errors.UnsupportedFeatureError):
        assert len(parse_container(mutated, "f.index")) < len(whole)


def test_an_index_file_that_is_gone_is_named(tmp_path):
    import shutil

    shutil.copytree(DATA / "paimon" / "file_indexed", tmp_path / "t")
    file = next((tmp_path / "t").rglob("*.index"))
    file.unlink()

    with pytest.raises(errors.CorruptTableError, match=f"An index file does not exist .*{file.name}"):
        open_table(str(tmp_path / "t")).inspect("file_indexes")
