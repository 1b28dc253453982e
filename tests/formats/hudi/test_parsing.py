"""Names, properties and log files of any content: what is intact is found, and nothing else is raised or read."""

import io
import string
from pathlib import Path

import fastavro
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.storage import Entry, Storage
from tests.inner.core import DEFAULT
from tests.inner.hudi import (
    MAGIC,
    Archive,
    TableConfig,
    blocks,
    parse_properties,
    read_commits,
    timeline_of,
    written_files,
)
from tests.support.hudi.table_builder import deletes, records

CONFIGS = [TableConfig(values={}, version=6, layout=1), TableConfig(values={}, version=9, layout=2)]
TIMES = st.integers(1, 10**17 - 1).map(lambda number: f"{number:017d}")
ACTIONS = st.sampled_from(["commit", "deltacommit", "replacecommit", "clean", "compaction", "x", "inflight", ""])
NAMES = st.one_of(
    st.text(max_size=30),
    st.tuples(TIMES, st.sampled_from(["", "_"]), st.one_of(st.just(""), TIMES), ACTIONS, ACTIONS).map(
        lambda parts: f"{parts[0]}{parts[1]}{parts[2]}.{parts[3]}.{parts[4]}".rstrip(".")
    ),
)


@given(st.lists(NAMES, max_size=12), st.sampled_from(CONFIGS))
def test_any_names_are_a_timeline_whose_instants_are_among_them(names, config):
    entries = [Entry(name=name, is_folder=False, size_bytes=0, modified=None) for name in names]
    timeline = timeline_of(entries, config)

    assert set(timeline.names) <= set(names)
    assert list(timeline.writes) == sorted(timeline.writes)
    assert all(instant.path.rpartition("/")[2] in names for instant in timeline.instants if "/" not in "".join(names))


GOOD = [records(number, [(number, "a")]) for number in (2, 3)] + [deletes(4, [1])]


@settings(max_examples=200)
@given(st.lists(st.one_of(st.sampled_from(GOOD), st.binary(min_size=1, max_size=60), st.just(MAGIC)), max_size=6))
def test_intact_blocks_are_found_behind_any_other_bytes(parts):
    content = b"".join(parts)
    assume(content[: len(MAGIC)] == MAGIC)

    found = [block.header[0] for block in blocks(content, "t.log")]

    # Bytes right behind a block make it look cut short, as to Hudi.
    sure = [
        part
        for index, part in enumerate(parts)
        if part in GOOD and (index + 1 == len(parts) or parts[index + 1] in GOOD or parts[index + 1] == MAGIC)
    ]
    assert found == [block.header[0] for part in sure for block in blocks(part, "t.log")]


@settings(max_examples=200)
@given(st.sampled_from(GOOD), st.integers(0, 10**4), st.integers(0, 7))
def test_a_flipped_bit_leaves_a_block_that_is_read_or_skipped(block, place, bit):
    changed = bytearray(block)
    changed[place % len(block)] ^= 1 << bit
    try:
        found = list(blocks(bytes(changed), "t.log"))
    except CorruptTableError:
        return
    assert len(found) <= 1


COMMIT = min((Path(__file__).parents[2] / "data/hudi/v9_cow_basic/.hoodie/timeline").glob("*_*.commit")).read_bytes()
PATHS = st.just("p=x/a_1-0-1_7.parquet")
TEXTS = st.one_of(st.none(), st.text(max_size=6), st.integers(1, 9000).map("x".__mul__), PATHS)
COUNTS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-70, 70))
STATS = st.fixed_dictionaries(
    {"fileId": TEXTS, "path": TEXTS},
    optional={
        **dict.fromkeys(["prevCommit", "partitionPath", "tempPath"], TEXTS),
        **dict.fromkeys(["numWrites", "numInserts", "fileSizeInBytes", "totalLogBlocks"], COUNTS),
        "logFiles": st.lists(st.text(max_size=5), max_size=2),
        "cdcStats": st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2),
    },
)


@given(st.dictionaries(st.text(max_size=5), st.lists(STATS, max_size=3), max_size=3), st.integers(0, 10**6))
def test_avro_commits_are_what_fastavro_reads_of_them_and_a_damaged_one_is_refused(stats, cut):
    reader = fastavro.reader(io.BytesIO(COMMIT))
    record = next(reader) | {"partitionToWriteStats": stats}
    file = io.BytesIO()
    fastavro.writer(file, reader.writer_schema, [record])
    content = file.getvalue()
    damaged = content[: 4 + cut % (len(content) - 20)]
    parsed = rows_of(read_commits({"t.commit": record}, {}, DEFAULT, {})["t.commit"])
    files = {f"{number}.commit": content for number in range(256)}

    together = read_commits(files, {}, DEFAULT, {})

    assert rows_of(read_commits({"t.commit": content}, {}, DEFAULT, {})["t.commit"]) == parsed
    assert [rows_of(together[path]) for path in ("0.commit", "128.commit", "255.commit")] == [parsed] * 3
    with pytest.raises(CorruptTableError, match="damaged.commit"):
        read_commits(files | {"damaged.commit": damaged}, {}, DEFAULT, {})


def test_a_large_commit_is_read_by_columns_and_left_to_fastavro_if_an_id_is_missing(monkeypatch):
    reader = fastavro.reader(io.BytesIO(COMMIT))
    (stat,) = next(fastavro.reader(io.BytesIO(COMMIT)))["partitionToWriteStats"]["p=x"]
    ids = [f"0a1b2c3d-0000-4000-8000-{number:012}-{number % 12}" for number in range(3_000)]
    stats = [stat | {"fileId": name, "path": f"p=ä/{name}_\x02L{name}.parquet", "prevCommit": None} for name in ids]
    lists = {"p=ä": stats[:1_000], "": [], "q" * 70: stats[1_000:]}
    schema, record = reader.writer_schema, next(reader) | {"partitionToWriteStats": lists}

    def content():
        file = io.BytesIO()
        fastavro.writer(file, schema, [record])
        return file.getvalue()

    expected = rows_of(read_commits({"t.commit": record}, {}, DEFAULT, {})["t.commit"])
    with monkeypatch.context() as patch:
        patch.setattr("snapshot_explorer.formats.hudi.metadata.commits.read_raw", None)
        assert rows_of(read_commits({"t.commit": content()}, {}, DEFAULT, {})["t.commit"]) == expected

    stats[2_000]["fileId"] = None
    expected[2_000]["file_id"] = "None"
    assert rows_of(read_commits({"t.commit": content()}, {}, DEFAULT, {})["t.commit"]) == expected


def rows_of(commit):
    """Return the files that a commit wrote; an empty map of change data is as good as none."""
    return [file | {"change_files": file["change_files"] or None} for file in written_files({1: commit}).to_pylist()]


KEYS = st.text(string.ascii_letters + string.digits + ".-_", min_size=1, max_size=12)


@given(st.dictionaries(KEYS, st.text(string.printable + "äß漢", max_size=20).map(str.strip), max_size=6))
def test_properties_that_java_would_write_are_read_as_they_were(values):
    escapes = {
        "\\": "\\\\",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\f": "\\f",
        ":": "\\:",
        "=": "\\=",
        "\x0b": "\\u000b",
    }
    lines = [f"{key}={''.join(escapes.get(letter, letter) for letter in value)}" for key, value in values.items()]

    assert dict(parse_properties("#comment\n" + "\n".join(lines) + "\n")) == values


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"files": 3}', b'{"files": [{}]}', b'{"files": [{"fileName": "../x"}]}']
)
def test_a_manifest_of_the_archive_that_is_not_one_is_named(tmp_path, content):
    folder = tmp_path / ".hoodie" / "timeline" / "history"
    folder.mkdir(parents=True)
    (folder / "manifest_1").write_bytes(content)

    listing = Archive(Storage(str(tmp_path))).list(CONFIGS[1])

    (error,) = listing.unread.values() or [listing.problem]
    assert isinstance(error, CorruptTableError)
    assert "manifest_1" in str(error)
