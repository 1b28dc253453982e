"""Measure how fast manifests are read: ours and fastavro, over the same bytes, in one run.

    python tests/benchmarks/paimon_manifests.py [entries] [manifests]

Prints seconds, the best of several runs; asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
import io
import random
import struct
import sys
from pathlib import Path
from typing import Any

import fastavro
import fastavro._read as fastavro_read
import pyarrow as pa

from tests.inner.paimon import manifests

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.timing import best
from tests.support.paimon.avro_bytes import written
from tests.support.paimon.avro_schemas import newest_manifest

ENTRY = newest_manifest()


def binary_row(*values: int) -> bytes:
    return struct.pack(">i", len(values)) + bytes(8) + b"".join(struct.pack("<q", value) for value in values)


def entry(number: int, columns: int = 10) -> dict[str, Any]:
    chance = random.Random(number)
    least, greatest = sorted((chance.getrandbits(40), chance.getrandbits(40)))
    low, high = binary_row(*[least] * columns), binary_row(*[greatest] * columns)
    counts = [0] * columns
    return {
        "_VERSION": 2,
        "_KIND": 0,
        "_PARTITION": binary_row(20_000 + number % 100),
        "_BUCKET": number % 8,
        "_TOTAL_BUCKETS": 8,
        "_FILE": {
            "_FILE_NAME": f"data-{chance.getrandbits(128):032x}-{number}.parquet",
            "_FILE_SIZE": chance.randrange(1_000, 100_000_000),
            "_ROW_COUNT": chance.randrange(1, 1_000_000),
            "_MIN_KEY": binary_row(least),
            "_MAX_KEY": binary_row(greatest),
            "_KEY_STATS": {"_MIN_VALUES": binary_row(least), "_MAX_VALUES": binary_row(greatest), "_NULL_COUNTS": [0]},
            "_VALUE_STATS": {"_MIN_VALUES": low, "_MAX_VALUES": high, "_NULL_COUNTS": counts},
            "_MIN_SEQUENCE_NUMBER": number * 100,
            "_MAX_SEQUENCE_NUMBER": number * 100 + 99,
            "_SCHEMA_ID": 0,
            "_LEVEL": number % 6,
            "_EXTRA_FILES": [],
            "_CREATION_TIME": 1_767_225_600_000 + number,
            "_DELETE_ROW_COUNT": 0,
            "_EMBEDDED_FILE_INDEX": None,
            "_FILE_SOURCE": 0,
            "_VALUE_STATS_COLS": None,
            "_EXTERNAL_PATH": None,
            "_FIRST_ROW_ID": None,
            "_WRITE_COLS": None,
        },
    }


def manifest(entries: list[dict[str, Any]]) -> bytes:
    """Return a manifest in blocks of about 64 kB, compressed with zstandard."""
    return written(ENTRY, entries, "zstandard", per_block=100)


def read_zstandard(file: io.BytesIO) -> io.BytesIO:
    packed = fastavro.schemaless_reader(file, "bytes", None)
    stream = pa.CompressedInputStream(pa.BufferReader(packed), "zstd")
    return io.BytesIO(stream.read())


def with_fastavro(files: list[tuple[str, bytes]]) -> int:
    return sum(len(list(fastavro.reader(io.BytesIO(content)))) for _, content in files)


def main() -> None:
    # fastavro needs a further package for zstandard; here it is given pyarrow's, as ours has.
    fastavro_read.BLOCK_READERS["zstandard"] = read_zstandard
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    each = max(1, entries // count)
    files = [
        (f"manifest-{index}", manifest([entry(index * each + row) for row in range(each)])) for index in range(count)
    ]
    size = sum(len(content) for _, content in files)
    print(f"{each * count} entries in {count} manifests, {size / 1e6:.1f} MB")
    theirs = best(lambda: with_fastavro(files))
    ours = best(lambda: manifests.read_entries(files))
    whole = best(lambda: manifests.live_entries(manifests.read_entries(files)[0]))
    print(f"fastavro, rows as dicts        {theirs:.3f} s")
    print(f"ours, ENTRIES as Arrow         {ours:.3f} s   {theirs / ours:.1f} times as fast")
    print(f"ours, live files               {whole:.3f} s   {theirs / whole:.1f} times as fast")


if __name__ == "__main__":
    main()
