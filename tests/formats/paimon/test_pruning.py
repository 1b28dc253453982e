"""Which files a condition spares, on tables that Paimon wrote and on small ones of any shape."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import snapshot_explorer
from snapshot_explorer import open_table, samples
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import parts_of
from tests.inner.engines import parse_condition
from tests.inner.paimon import PaimonField, binary_row, buckets, parse_type, read_state
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[2] / "data" / "paimon"
SAMPLES = Path(samples.__file__).parent
UNREADABLE = ("aggregates_refused", "vectors_apart")
"""A table that Paimon cannot read either, and one that is refused."""
TABLES = sorted(
    folder
    for folder in [*DATA.iterdir(), SAMPLES / "orders", SAMPLES / "events"]
    if folder.is_dir() and folder.name not in UNREADABLE
)


def text(value):
    return "'" + str(value).replace("'", "''") + "'"


def conditions_on(rows):
    """Yield conditions on each column that has an order, around a value from its middle."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        quoted = '"' + name.replace('"', '""') + '"'
        values = sorted(
            {value for value in column.to_pylist() if isinstance(value, str | int) or hasattr(value, "year")}
        )
        if pa.types.is_nested(column.type) or not values:
            continue
        value = text(values[len(values) // 2])
        yield from (f"{quoted} = {value}", f"{quoted} > {value}")


@pytest.mark.parametrize("folder", TABLES, ids=lambda folder: folder.name)
def test_a_condition_gives_the_rows_that_it_gives_after_reading_all(folder):
    snapshot = open_table(str(folder)).current
    every = snapshot.to_arrow()

    for where in conditions_on(every):
        wanted = every.filter(parse_condition(where, every.schema).mask(every))

        assert sorted(map(repr, snapshot.to_arrow(where=where).to_pylist())) == sorted(map(repr, wanted.to_pylist()))


@pytest.mark.parametrize(("value", "hashed"), [(0, -300363099), (1, 1465514398), (7, -348168691)])
def test_hashes_are_those_of_java(value, hashed):
    field = PaimonField(id=0, name="k", type=parse_type("INT"))

    assert buckets.hash_of(buckets.encode([pa.scalar(value, pa.int32())], [field])) == hashed


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BOOLEAN", [True, None]),
        ("TINYINT", [-3, None]),
        ("SMALLINT", [-300, None]),
        ("INT", [-70_000, None]),
        ("BIGINT", [-(2**40), None]),
        ("STRING", ["", "a", "1234567", "12345678", "ünïcödé und länger", None]),
        ("DATE", [-1, 20_000, None]),
        ("DECIMAL(10, 2)", ["-1.50", None]),
        ("DECIMAL(38, 5)", ["-123456789987654321.45678", "128.00000", "-128.00000", None]),
        ("TIMESTAMP(3)", [-1, 1_700_000_000_123, None]),
        ("TIMESTAMP(6)", [-1, 1_700_000_000_123_456, None]),
        ("TIMESTAMP(9)", [-1, 1_700_000_000_123_456_789, None]),
    ],
)
def test_a_key_that_is_written_is_read_back(kind, values):
    from tests.inner.paimon import arrow_type

    field = PaimonField(id=0, name="k", type=parse_type(kind))
    plain = pa.array(values, pa.int32() if kind == "DATE" else None)
    column = plain.cast(arrow_type(field.type))
    encoded = [b"\0\0\0\1" + buckets.encode([value], [field]) for value in column]

    assert binary_row.decode(pa.array(encoded, pa.binary()), [field]).column(0).to_pylist() == column.to_pylist()


def keyed_states():
    for folder in TABLES:
        table = Paimon(Storage(str(folder)))
        listing = table.listing(0)
        for version in listing.versions[-1:]:
            snapshot = table.version(version)._snapshot
            yield folder.name, table.version(snapshot.id)._schema, read_state(table.storage, snapshot).entries


def test_keys_are_written_as_paimon_writes_them_and_lie_in_the_bucket_of_their_hash():
    compared, spread = 0, 0
    for name, schema, entries in keyed_states():
        key = buckets.bucket_key(schema)
        if not schema.primary_keys or key is None or [f.name for f in key] != list(schema.trimmed_primary_keys):
            continue
        for column in ("min_key", "max_key"):
            rows = entries.column(column).to_pylist()
            values = binary_row.decode(entries.column(column), key)
            for place, row in enumerate(rows):
                written = buckets.encode([part[place] for part in values.columns], key)
                total, bucket = entries["total_buckets"][place].as_py(), entries["bucket"][place].as_py()

                assert written == row[4:], name
                if total > 0 and bucket >= 0:
                    assert buckets.bucket_of(buckets.hash_of(written), total) == bucket, name
                    spread += total > 1
                compared += 1

    assert compared > 20
    assert spread > 4


def test_rows_of_a_table_with_a_bucket_key_lie_in_the_bucket_of_their_hash():
    table = Paimon(Storage(str(DATA / "append_bucketed")))
    version = table.listing().latest
    key = buckets.bucket_key(table.version(version)._schema)
    total = read_state(table.storage, table.version(version)._snapshot).entries["total_buckets"][0].as_py()
    checked = 0

    for split in table.version(version).plan().splits:
        for batch in table.version(version).read(split, [field.name for field in key]):
            for place in range(batch.num_rows):
                hashed = buckets.hash_of(buckets.encode([column[place] for column in batch.columns], key))
                assert buckets.bucket_of(hashed, total) == split.bucket
                checked += 1

    assert total > 1
    assert checked


def test_an_equality_on_the_bucket_key_reads_one_bucket():
    snapshot = open_table(str(DATA / "append_bucketed")).current
    key = buckets.bucket_key(parts_of(snapshot).loaded.version._schema)[0].name
    value = snapshot.to_arrow([key])[key][0].as_py()

    plan = snapshot.plan(f"{key} = {text(value)}").to_arrow().to_pylist()

    assert len({row["bucket"] for row in plan if row["skipped"] is None}) == 1
    assert any(row["skipped"] == "bucket" for row in plan)


@pytest.fixture
def three_files(memory_root):
    filesystem, root = memory_root
    written = PaimonTable(filesystem, root, statistics=True)
    written.commit([(1, "a"), (2, "b")])
    written.commit([(3, "c"), (4, None)])
    written.commit([(5, "e")])
    return written


def test_the_plan_says_what_is_skipped_and_why(three_files):
    plan = open_table(f"memory://{three_files.root}").current.plan("id >= 3 AND name < 'd'")

    assert [(row["files"], row["rows"], row["skipped"]) for row in plan.to_dict()] == [
        (1, 2, None),
        (1, 2, "statistics of id"),
        (1, 1, "statistics of name"),
    ]


def test_a_condition_that_no_file_can_match_opens_none(counted, three_files):
    snapshot = open_table(f"counted://{three_files.root}").current
    counted.requests.clear()

    assert snapshot.to_arrow(where="id > 100").num_rows == 0
    assert snapshot.count("id IS NULL") == 0
    assert not [request for request in counted.requests if "bucket-" in request.path]

    assert snapshot.to_arrow(where="id = 3")["name"].to_pylist() == ["c"]
    assert {request.path.rsplit("/", 1)[-1] for request in counted.requests if "bucket-" in request.path} == {
        "data-2.parquet"
    }


def test_times_in_orc_files_are_not_believed():
    """Paimon's statistics of them are by the writer's clock, or cut: see `_without_orc_times`."""
    snapshot = open_table(str(DATA / "ltz_orc_utc")).current
    names = [name for name in snapshot.to_arrow().column_names if pa.types.is_timestamp(snapshot.to_arrow()[name].type)]

    assert names
    for name in names:
        assert snapshot.plan(f"\"{name}\" > '2200-01-01'")["skipped"].to_pylist() == [None]


def test_a_table_without_statistics_is_read_whole(memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, root).commit([(1, "a")])

    plan = open_table(f"memory://{root}").current.plan("id = 7")

    assert plan["skipped"].to_pylist() == [None]


def test_statistics_that_do_not_fit_the_schema_skip_nothing(memory_root, caplog):
    filesystem, root = memory_root
    written = PaimonTable(filesystem, root, statistics=True)
    written.statistics_of = lambda rows: {"_MIN_VALUES": b"\0\0\0\7xx", "_MAX_VALUES": b"", "_NULL_COUNTS": None}
    written.commit([(1, "a")])

    rows = snapshot_explorer.open_table(f"memory://{root}").at(1).to_arrow(where="id = 1")

    assert rows.num_rows == 1
    assert "no file is skipped by its statistics" in caplog.text


def test_a_newer_version_of_a_key_is_never_skipped_by_its_values():
    """The sample was updated and deleted from: skipping a file of the newer rows would bring old ones back."""
    table = open_table(str(SAMPLES / "orders"))
    for version in table.history()["version"].to_pylist():
        snapshot = table.at(version)
        every = snapshot.to_arrow()
        for where in list(conditions_on(every))[-4:]:
            wanted = every.filter(parse_condition(where, every.schema).mask(every))
            assert snapshot.count(where) == wanted.num_rows, (version, where)


FILES = st.lists(
    st.lists(st.tuples(st.integers(-3, 3), st.one_of(st.none(), st.text("abé", max_size=2))), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)
CONDITIONS = st.builds(
    "{}(id {} {} {} name {} '{}')".format,
    st.sampled_from(["", "NOT "]),
    st.sampled_from(["=", "<>", "<", ">="]),
    st.integers(-3, 3),
    st.sampled_from(["AND", "OR"]),
    st.sampled_from(["=", "<", ">", "LIKE", "NOT LIKE"]),
    st.text("abé%", max_size=2),
)


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=FILES, where=CONDITIONS)
def test_pruning_loses_no_row(memory_root, files, where):
    filesystem, root = memory_root
    if filesystem.exists(root):
        filesystem.rm(root, recursive=True)
    written = PaimonTable(filesystem, root, statistics=True)
    for rows in files:
        written.commit(rows)
    snapshot = open_table(f"memory://{root}").current
    every = snapshot.to_arrow()

    wanted = every.filter(parse_condition(where, every.schema).mask(every))

    assert snapshot.to_arrow(where=where).to_pylist() == wanted.to_pylist()
