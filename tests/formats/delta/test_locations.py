"""Paths in the log: decoded once, absolute ones in one spelling."""

from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.formats.delta.metadata.locations import decoded, decoded_array, is_absolute


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("special%20p@%23h", "special p@#h"),
        ("_2=bar+%252521/part", "_2=bar+%2521/part"),
        ("a+b", "a+b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:/a%20b", "/a b"),
        ("/a/b", "/a/b"),
        ("s3://bucket/a%20b", "s3://bucket/a b"),
        ("100%", "100%"),
        ("%ff", "%ff"),
    ],
)
def test_a_path_is_decoded_once_and_files_of_this_machine_are_spelled_alike(stored, meant):
    assert decoded(stored) == meant
    assert decoded_array(pa.array([stored, None, "x"])).to_pylist() == [meant, None, "x"]


@pytest.mark.parametrize(
    ("path", "answer"), [("/a", True), ("s3://b/c", True), ("hdfs:/c", True), ("a/b", False), ("k=a:b/c", False)]
)
def test_an_absolute_path_is_distinguished_from_a_relative_one(path, answer):
    assert is_absolute(path) is answer


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda path: not path.lower().startswith("file:")))
def test_a_path_that_was_escaped_comes_back(path):
    assert decoded(quote(path)) == path
