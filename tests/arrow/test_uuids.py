"""UUIDs as text."""

import uuid

import pyarrow as pa
import pytest

from tests.inner.arrow import uuid_texts


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_uuids_are_the_texts_of_python(offset):
    values = [uuid.UUID(int=2**127 + 7).bytes, None, bytes(16), b"\xff" * 16, None]

    texts = uuid_texts(pa.array(values, pa.binary(16)).slice(offset))

    assert texts.to_pylist() == [None if value is None else str(uuid.UUID(bytes=value)) for value in values[offset:]]
    assert texts.type == pa.string()
    assert uuid_texts(pa.array([], pa.binary(16))).to_pylist() == []
