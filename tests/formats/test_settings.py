"""Sizes as properties contain them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.formats import parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("134217728", 134_217_728),
        ("128 mb", 134_217_728),
        ("128MB", 134_217_728),
        (" 8 m ", 8_388_608),
        ("1 gibibytes", 1024**3),
        ("2kb", 2_048),
        ("1t", 1024**4),
        ("5 bytes", 5),
    ],
)
def test_a_size_is_read(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "mb", "0", "-1", "1.5 gb", "12 parsecs", "9" * 19, "999999999999 tb", "1 2", "٣"])
def test_what_is_not_a_size_is_none(text):
    assert parse_bytes(text) is None


@given(st.text(max_size=30))
def test_any_text_is_a_size_or_none(text):
    size = parse_bytes(text)

    assert size is None or 0 < size <= 2**62
