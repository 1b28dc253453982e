"""Types in ORC footers that would end the process: refused before pyarrow sees them."""

import decimal
import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from snapshot_explorer.errors import CorruptTableError
from tests.inner.arrow import CorruptBytesError, check_types
from tests.inner.paimon import read_entries

STRUCT, LIST, INT, DECIMAL = 12, 10, 3, 14


def varint(number):
    parts = []
    while True:
        number, low = number >> 7, number & 127
        parts.append(low | 128 if number else low)
        if not number:
            return bytes(parts)


def field(number, value):
    """Return a field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def orc_file(*types):
    """Return an ORC file without rows, of these types: each is a number, the numbers of its parts, and more fields."""
    described = b"".join(
        field(4, field(1, kind) + field(2, b"".join(map(varint, parts))) + more) for kind, parts, more in types
    )
    footer = field(1, 3) + field(2, 3) + described + field(6, 0)
    script = field(1, len(footer)) + field(2, 0) + field(3, 262_144) + field(5, 0) + field(6, 6) + field(8000, b"ORC")
    return b"ORC" + footer + script + bytes([len(script)])


def root(*names):
    return b"".join(field(3, name) for name in names)


def nested(depth):
    """Return the types of a list of lists of ... integers."""
    return [(STRUCT, [1], root(b"a")), *((LIST, [at + 1], b"") for at in range(1, depth)), (INT, [], b"")]


def check(content):
    check_types(pa.BufferReader(content))


@pytest.mark.parametrize("packed", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_files_that_orc_writes_pass(packed):
    value = {"l": [[1], None], "m": [("k", decimal.Decimal("1.5"))]}
    kind = pa.struct([("l", pa.list_(pa.list_(pa.int32()))), ("m", pa.map_(pa.string(), pa.decimal128(38, 10)))])
    out = io.BytesIO()
    orc.write_table(pa.table({"s": pa.array([value], kind), "d": [decimal.Decimal("2.25")]}), out, compression=packed)

    check(out.getvalue())


def test_the_files_made_here_are_ones_that_pyarrow_reads():
    content = orc_file((STRUCT, [1, 2], root(b"a", b"d")), (INT, [], b""), (DECIMAL, [], field(5, 38) + field(6, 2)))

    check(content)
    assert orc.ORCFile(pa.BufferReader(content)).schema.field("d").type == pa.decimal128(38, 2)


@pytest.mark.parametrize(
    ("types", "why"),
    [
        ([(STRUCT, [1], root(b"d")), (DECIMAL, [], field(5, 39))], "a decimal would have 39 digits"),
        ([(STRUCT, [1], root(b"d")), (2**32 + DECIMAL, [], field(5, 76))], "a decimal would have 76 digits"),
        ([(STRUCT, [1], root(b"d")), (DECIMAL, [], field(5, 9) + field(5, 40))], "a decimal would have 40 digits"),
        (nested(102), "its types are nested more than 100 deep"),
        ([(STRUCT, [0], root(b"a"))], "its types are not a tree"),
        ([(STRUCT, [1, 1], root(b"a", b"b")), (INT, [], b"")], "its types are not a tree"),
        ([(STRUCT, [1], root(b"a")), (INT, [], b""), (INT, [], b"")], "its types are not a tree"),
    ],
)
def test_types_that_can_not_be_are_refused(types, why):
    with pytest.raises(CorruptBytesError, match=why):
        check(orc_file(*types))


@pytest.mark.parametrize("content", [b"", b"ORC", b"ORC" + bytes(9), b"ORC\xff\xff\xff\xff\xff\xff\xff"])
def test_a_file_that_is_cut_short_is_refused(content):
    with pytest.raises(CorruptBytesError):
        check(content)


@settings(max_examples=200)
@given(st.data())
def test_no_bytes_do_more_than_raise_our_error(data):
    whole = orc_file((STRUCT, [1, 2], root(b"a", b"d")), (INT, [], b""), (DECIMAL, [], field(5, 38)))
    place = data.draw(st.integers(0, len(whole) - 1))
    mutated = whole[:place] + data.draw(st.binary(max_size=3)) + whole[place + 1 :]

    try:
        check(mutated)
    except CorruptBytesError:
        return


def test_a_manifest_of_such_types_is_named():
    with pytest.raises(CorruptTableError, match="manifest/m is not readable metadata: a decimal would have 76 digits"):
        read_entries([("manifest/m", orc_file((STRUCT, [1], root(b"d")), (DECIMAL, [], field(5, 76))))])


MUTANTS = """
import random, sys
import pyarrow as pa
from pyarrow import orc
from snapshot_explorer.errors import SnapshotExplorerError
from tests.inner.paimon import read_entries

rows = pa.table({"k": [1, 2], "d": pa.array([None, None], pa.decimal128(9, 2)), "l": [[[1]], None], "_KIND": [0, 1]})
sink = pa.BufferOutputStream()
orc.write_table(rows, sink, compression="uncompressed")
whole = sink.getvalue().to_pybytes()
chance = random.Random(7)
for _ in range(2_000):
    content = bytearray(whole)
    for _ in range(chance.choice((1, 2, 4))):
        content[chance.randrange(3, len(content))] = chance.randrange(256)
    try:
        read_entries([("m", bytes(content))])
    except SnapshotExplorerError:
        pass
print("alive")
"""


def test_two_thousand_damaged_files_end_no_process():
    command, root = [sys.executable, "-c", MUTANTS], Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)

    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr[-500:]
