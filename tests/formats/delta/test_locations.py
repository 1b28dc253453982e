"""Paths in the log: decoded once, absolute ones in one spelling."""

from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.delta import decode_path, decode_path_array


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("special%20p@%23h", "special p@#h"),
        ("_2=bar+%252521/part", "_2=bar+%2521/part"),
        ("a+b", "a+b"),
        ("file:/a/b", "file:///a/b"),
        ("file:///a/b", "file:///a/b"),
        ("file://localhost/a/b", "file:///a/b"),
        ("FILE:/a%20b", "file:///a b"),
        ("/a/b", "file:///a/b"),
        ("//a///./b", "file:///a/b"),
        ("file:////a/x/../b", "file:///a/b"),
        ("s3://bucket/a%20b", "s3://bucket/a b"),
        ("s3://bucket//a/./b", "s3://bucket/a/b"),
        ("hdfs:/a/b", "hdfs:///a/b"),
        ("./a", "a"),
        ("a//b", "a/b"),
        ("a/./b/../c", "a/c"),
        ("../a", "../a"),
        ("k=a:b/c", "k=a:b/c"),
        (".a/b./..c", ".a/b./..c"),
        ("100%", "100%"),
        ("%ff", "%ff"),
    ],
)
def test_a_path_is_decoded_once_and_has_one_normal_form(stored, meant):
    assert decode_path(stored) == meant
    assert decode_path_array(pa.array([stored, None, "x"])).to_pylist() == [meant, None, "x"]
    assert decode_path_array(pa.array(["x", stored])).to_pylist() == ["x", meant]


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda path: not {"", ".", ".."} & {*path.split("/")}))
def test_a_path_that_was_escaped_comes_back(path):
    assert decode_path(quote(path)) == path
