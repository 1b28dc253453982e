"""The diff of two tables: what is paired, proven, compared, refused and summarised."""

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snapshot_explorer as sx
from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    UnknownColumnError,
    UnsupportedFeatureError,
)
from tests.support.delta.table_builder import DeltaTable, add, metadata
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.pair_tables import DOUBLE, INT, LONG, STRING, Kind, struct_type, write

DATA = Path(__file__).parents[1] / "data"
FIELDS = [("id", "long"), ("name", "string"), ("amount", "double")]
ROWS = [(1, "a", 1.0), (2, "b", 2.0), (3, None, 3.0)]


def delta(root, rows, fields=FIELDS, **options):
    table = DeltaTable(None, root, fields=fields, **options)
    table.commit(table.data("a.parquet", rows))
    return open_table(str(root)).at("latest")


@pytest.fixture
def pair(tmp_path):
    a = delta(tmp_path / "orders", ROWS)
    b = delta(tmp_path / "copy", [(1, "A ", 1.001), (2, "b", 2.5), (4, "d", 4.0)])
    return a, b


def test_rows_of_two_tables_are_inserted_deleted_and_updated_by_key(pair):
    diff = sx.diff(*pair, key="id")

    assert diff.counts == {"inserted": 1, "deleted": 1, "updated": 2}
    assert diff.inserted.to_pylist() == [{"id": 4, "name": "d", "amount": 4.0}]
    assert diff.deleted.to_pylist() == [{"id": 3, "name": None, "amount": 3.0}]
    assert "Row diff: version 1 of orders to 1 of copy" in repr(diff)
    assert diff.plan.call.startswith("diff(open_table(")


def test_without_a_key_rows_are_compared_as_multisets(pair):
    assert sx.diff(*pair).counts == {"inserted": 3, "deleted": 3, "updated": 0}


def test_the_summary_by_column_counts_rows_and_has_examples(pair):
    summary = sx.diff(*pair, key="id").by_column.to_arrow().to_pylist()

    assert summary[0] == {
        "column": "amount",
        "type": "double",
        "updated_rows": 2,
        "examples": ["id=1: 1.0 → 1.001", "id=2: 2.0 → 2.5"],
    }
    assert summary[1]["updated_rows"] == 1
    with pytest.raises(InvalidArgumentError, match="Rows were compared without a key"):
        _ = sx.diff(*pair).by_column


def test_the_summary_by_partition_counts_the_rows_of_each(tmp_path):
    fields = [("id", "long"), ("part", "string")]
    sides = []
    for name, rows in (("a", {"x": [1, 2], "y": [3]}), ("b", {"x": [1], "y": [3, 4, 5]})):
        table = DeltaTable(None, tmp_path / name, fields=fields, partition_by=["part"])
        table.commit(
            *(
                table.data(f"part={part}/f.parquet", [(one,) for one in ids], partition={"part": part})
                for part, ids in rows.items()
            )
        )
        sides.append(open_table(str(tmp_path / name)).at("latest"))
    diff = sx.diff(*sides, key="id")

    assert diff.by_partition().to_arrow().to_pylist() == [
        {"part": "y", "inserted": 2, "deleted": 0, "updated": 0},
        {"part": "x", "inserted": 0, "deleted": 1, "updated": 0},
    ]
    assert len(diff.by_partition("id")) == 3


def parted(root, parts, **statistics):
    """Open a table with a file for each partition, which has these ids."""
    table = DeltaTable(None, root, fields=[("id", "long"), ("part", "string")], partition_by=["part"])
    table.commit(
        *(
            table.data(
                f"part={part}/f.parquet",
                [(number,) for number in ids],
                partition={"part": part},
                stats={
                    "numRecords": len(ids),
                    "minValues": {"id": min(number for number in ids if number is not None)},
                    "maxValues": {"id": max(number for number in ids if number is not None)},
                    "nullCount": {"id": ids.count(None)},
                }
                | statistics,
            )
            for part, ids in parts.items()
        )
    )
    return open_table(str(root)).at("latest")


def test_a_preview_proves_what_numbers_of_rows_and_nulls_bounds_and_partitions_prove(tmp_path):
    a = parted(tmp_path / "a", {"x": [1, 2], "y": [3, 4], "z": [None, 8]})
    b = parted(tmp_path / "b", {"x": [1, 2], "y": [3, 4, 5], "z": [20, 21]})
    plan = sx.diff(a, b, key=[], preview=True)

    assert plan.proof == (
        "The rows differ: B has 1 row more. The rows differ: the files to read have other numbers of nulls in id "
        "(1 in A, 0 in B). At least 1 row of A differs: no file to read of B has its value of id, by its bounds. At "
        "least 2 rows of B differ: no file to read of A has their values of id, by its bounds. The rows differ in 1 "
        "partition of 3."
    )
    rows = plan.by_partition.to_arrow().select(["partition", "rows_a", "rows_b", "proof"]).to_pylist()
    assert [(*dict(row["partition"]).values(), row["rows_a"], row["rows_b"], row["proof"]) for row in rows] == [
        ("y", 2, 3, "different"),
        ("x", 2, 2, None),
        ("z", 2, 2, None),
    ]
    assert "part=y" in repr(plan)
    assert sx.diff(a, b, key=[]).plan.proof == "The rows differ: B has 1 row more."  # statistics are not read for it


def test_nothing_is_proven_by_equal_numbers_nor_by_statistics_that_are_missing(tmp_path):
    a = parted(tmp_path / "a", {"x": [1, 2]})
    for name, statistics in (("b", {}), ("c", {"nullCount": {}}), ("d", {"minValues": {}, "nullCount": {}})):
        assert sx.diff(a, parted(tmp_path / name, {"x": [2, 3]}, **statistics), preview=True).proof is None


def test_partitions_are_equal_by_the_same_files_and_compared_only_where_their_columns_are(tmp_path):
    a = parted(tmp_path / "a", {"x": [1, 2], "y": [3]})
    table = DeltaTable(None, tmp_path / "b", fields=[("id", "long"), ("part", "string")], partition_by=["part"])
    table.commit(
        add(f"file://{tmp_path}/a/part=x/f.parquet", rows=2, partition={"part": "x"}),
        table.data("part=y/f.parquet", [(4,)], partition={"part": "y"}),
    )
    b = open_table(str(tmp_path / "b")).at("latest")
    plan = sx.diff(a, b, preview=True)

    assert plan.by_partition.to_arrow()["proof"].to_pylist() == [None, "equal"]
    assert plan.proof == "Of 2 partitions, 1 is equal: both have the same files in it."
    assert sx.diff(a, b, exclude=["part"], preview=True).by_partition is None


def test_variants_are_equal_however_they_are_encoded_and_a_date_is_not_its_text(tmp_path):
    stored = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    sides = []
    for name, variants in (
        ("a", [(b"\x11\2\0\1\2ab", b"\2\2\0\1\0\2\4\x0c\1\5x"), (b"\1\0\0", b"\x2c\0\0\0\0"), None]),
        ("b", [(b"\1\2\0\1\2ba", b"\2\2\1\0\0\5\7\x14\1\0\0\0\5x"), (b"\1\0\0", b"\x291970-01-01"), None]),
    ):
        root = tmp_path / name
        table = DeltaTable(None, root, fields=[("id", "long"), ("v", "variant")], features=["variantType"])
        values = [value and dict(zip(("metadata", "value"), value, strict=True)) for value in variants]
        pq.write_table(pa.table({"id": [1, 2, 3], "v": pa.array(values, stored)}), root / "a.parquet")
        table.commit(add("a.parquet", size=(root / "a.parquet").stat().st_size, rows=3))
        sides.append(open_table(str(root)).at("latest"))

    assert sides[0].to_pandas()["v"].tolist()[:2] == ['{"a":1,"b":"x"}', '"1970-01-01"']
    assert sx.diff(*sides, key="id").updated["id"].to_pylist() == [2]
    assert sx.diff(*sides, key=[]).counts == {"inserted": 1, "deleted": 1, "updated": 0}


def test_numbers_within_a_tolerance_are_equal(pair):
    assert sx.diff(*pair, key="id", exclude=["name"], tolerance=0.01).counts["updated"] == 1
    assert sx.diff(*pair, key="id", exclude=["name"], tolerance={"amount": 0.5}).counts["updated"] == 0
    assert sx.diff(*pair, key="id", exclude=["name"], relative_tolerance=0.001).counts["updated"] == 1
    with pytest.raises(InvalidArgumentError, match="tolerance needs a key"):
        sx.diff(*pair, tolerance=0.1)
    with pytest.raises(InvalidArgumentError, match="names the column 'name', which is string"):
        sx.diff(*pair, key="id", tolerance={"name": 1})
    with pytest.raises(InvalidArgumentError, match="must be a number, 0 or more"):
        sx.diff(*pair, key="id", tolerance=-1)


def test_a_tolerance_is_exact_for_integers_and_decimals(tmp_path):
    filesystem = fsspec.filesystem("memory")
    kind = Kind(pa.decimal128(38, 2), "decimal(38,2)", None, None, None)
    big = 2**62
    for name, shift in (("a", 0), ("b", 1)):
        rows = pa.table(
            {
                "id": pa.array([1, 2], pa.int64()),
                "n": pa.array([big, big + shift], pa.int64()),
                "d": pa.array([Decimal(f"{10**35}.00"), Decimal(f"{10**35}.0{shift}")], kind.arrow),
            }
        )
        write("delta", filesystem, f"/{tmp_path.name}/{name}", [("id", LONG), ("n", LONG), ("d", kind)], [rows])
    a, b = (open_table(f"memory:///{tmp_path.name}/{name}").at("latest") for name in "ab")

    assert sx.diff(a, b, key="id", tolerance={"n": 1, "d": Decimal("0.01")}).is_empty
    assert sx.diff(a, b, key="id", tolerance={"n": 0.5, "d": Decimal("0.01")}).counts["updated"] == 1
    assert sx.diff(a, b, key="id", tolerance={"n": 1, "d": Decimal("0.009")}).counts["updated"] == 1


def test_texts_may_differ_in_case_and_blanks(pair):
    options = {"exclude": ["amount"], "ignore_case": True, "trim": True}

    assert sx.diff(*pair, key="id", **options).counts["updated"] == 0
    assert sx.diff(*pair, **options).counts == {"inserted": 1, "deleted": 1, "updated": 0}
    assert sx.diff(*pair, key="id", exclude=["amount"], trim=True).counts["updated"] == 1


def test_keys_that_are_equal_but_for_case_repeat(tmp_path):
    a = delta(tmp_path / "a", [(1, "x", 1.0), (2, "X", 2.0)])
    b = delta(tmp_path / "b", [(1, "x", 1.0)])

    with pytest.raises(InvalidArgumentError, match="The key name is not unique: several rows of version 1 of a"):
        sx.diff(a, b, key="name", ignore_case=True)
    assert sx.diff(a, b, key="name").counts == {"inserted": 0, "deleted": 1, "updated": 0}


def test_a_null_in_the_key_is_refused(pair):
    with pytest.raises(InvalidArgumentError, match="The key column 'name' is null in a row of version 1 of orders"):
        sx.diff(*pair, key="name")


def test_columns_are_paired_by_name_and_those_that_one_table_lacks_are_listed(tmp_path):
    a = delta(tmp_path / "a", [(1, "a", 1.0)])
    b = delta(tmp_path / "b", [(2.0, 1, "a")], [("Amount", "double"), ("order_id", "long"), ("label", "string")])
    diff = sx.diff(a, b, key="order_id", columns={"id": "order_id"})

    assert diff.plan.columns == ("Amount", "order_id")
    assert (diff.plan.columns_only_a, diff.plan.columns_only_b) == (("name",), ("label",))
    assert diff.counts == {"inserted": 0, "deleted": 0, "updated": 1}
    assert "only in B, not compared label" in " ".join(repr(diff).split())
    with pytest.raises(UnknownColumnError, match="'nope' of A in columns"):
        sx.diff(a, b, columns={"nope": "order_id"})
    with pytest.raises(InvalidArgumentError, match="The key column 'label' is not compared"):
        sx.diff(a, b, key="label")


def test_all_types_that_are_not_equivalent_are_named_before_rows_are_read(tmp_path):
    a = delta(tmp_path / "a", ROWS)
    b = delta(tmp_path / "b", [(1, 1, True)], [("id", "long"), ("name", "long"), ("amount", "boolean")])
    (tmp_path / "a" / "a.parquet").write_bytes(b"not opened")

    with pytest.raises(
        UnsupportedFeatureError, match="'name' .string in A, int64 in B., 'amount' .double in A, bool in B"
    ):
        sx.diff(a, b)
    assert sx.diff(a, b, exclude=["name", "amount"], preview=True).columns == ("id",)


def test_structs_with_other_fields_are_not_equivalent(tmp_path):
    filesystem = fsspec.filesystem("memory")
    words = ("long", "BIGINT", "long", "long")
    kinds = struct_type(pa.int64(), words, "xy"), struct_type(pa.int64(), words, "x")
    for name, kind in zip("ab", kinds, strict=True):
        rows = pa.table({"id": pa.array([1], pa.int64()), "part": pa.array([{"x": 1}], kind.arrow)})
        write("delta", filesystem, f"/{tmp_path.name}/{name}", [("id", LONG), ("part", kind)], [rows])
    a, b = (open_table(f"memory:///{tmp_path.name}/{name}").at("latest") for name in "ab")

    for one, other in ((a, b), (b, a)):
        with pytest.raises(UnsupportedFeatureError, match="'part'"):
            sx.diff(one, other)


def test_a_value_that_does_not_fit_the_common_type_is_refused(tmp_path):
    kinds = ("decimal(38,0)", pa.decimal128(38, 0)), ("decimal(38,30)", pa.decimal128(38, 30))
    sides = []
    for name, (delta_type, kind) in zip("ab", kinds, strict=True):
        table = DeltaTable(None, tmp_path / name, fields=[("n", delta_type)])
        table.write("a.parquet", _parquet(pa.table({"n": pa.array([Decimal(10**20 if name == "a" else 1)], kind)})))
        table.commit(add("a.parquet", rows=1))
        sides.append(open_table(str(tmp_path / name)).at("latest"))

    with pytest.raises(UnsupportedFeatureError, match="A value of the column 'n' does not fit .* exclude="):
        sx.diff(*sides)


def _parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def test_a_condition_is_on_the_rows_of_both(pair):
    assert sx.diff(*pair, key="id", where="amount >= 2").counts == {"inserted": 1, "deleted": 1, "updated": 1}


def clone(tmp_path, files):
    """Make a table with the files of another one, as a shallow clone has them."""
    table = DeltaTable(None, tmp_path / "clone", fields=FIELDS)
    table.commit(*(add(f"file://{path}", size=path.stat().st_size, rows=rows) for path, rows in files))
    return open_table(str(tmp_path / "clone")).at("latest")


def test_a_clone_is_proven_equal_without_opening_a_data_file(tmp_path):
    a = delta(tmp_path / "orders", ROWS)
    file = tmp_path / "orders" / "a.parquet"
    b = clone(tmp_path, [(file, 3)])
    file.write_bytes(b"x" * file.stat().st_size)
    diff = sx.diff(a, b)

    assert diff.is_empty
    assert diff.plan.proof == "The rows are equal: both have the same 1 file."
    assert (diff.plan.shared_files, diff.plan.a.files, diff.plan.b.files) == (1, 0, 0)


def test_only_files_that_a_clone_does_not_share_are_read(tmp_path):
    a = delta(tmp_path / "orders", ROWS)
    b = clone(tmp_path, [(tmp_path / "orders" / "a.parquet", 3)])
    more = DeltaTable(None, tmp_path / "more", fields=FIELDS)
    more.commit(more.data("m.parquet", [(9, "i", 9.0)]))
    c = clone(tmp_path / "c", [(tmp_path / "orders" / "a.parquet", 3), (tmp_path / "more" / "m.parquet", 1)])

    assert sx.diff(b, c).counts == {"inserted": 1, "deleted": 0, "updated": 0}
    plan = sx.diff(a, c, preview=True)
    assert plan.proof == "The rows differ: B has 1 row more."
    assert (plan.shared_files, plan.a.files, plan.b.files) == (1, 0, 1)


def test_numbers_of_rows_that_differ_are_proven_whatever_the_columns_are_called_in_files():
    a, b = (open_table(samples.path("payments")) for _ in range(2))

    assert sx.diff(a.at(21), b.at(19), preview=True).proof == "The rows differ: A has 12 rows more."


def test_a_file_with_columns_of_other_names_or_types_is_read(tmp_path):
    delta(tmp_path / "orders", ROWS)
    file = tmp_path / "orders" / "a.parquet"
    table = DeltaTable(None, tmp_path / "swapped", fields=[("id", "long"), ("label", "string"), ("amount", "double")])
    table.commit(add(f"file://{file}", size=file.stat().st_size, rows=3))
    swapped = open_table(str(tmp_path / "swapped")).at("latest")
    diff = sx.diff(open_table(str(tmp_path / "orders")).at("latest"), swapped, columns={"name": "label"})

    assert diff.plan.shared_files == 0
    assert diff.counts == {"inserted": 2, "deleted": 2, "updated": 0}


def test_an_iceberg_table_over_the_files_of_a_delta_table_is_proven_by_their_footers(tmp_path):
    local = fsspec.filesystem("file", auto_mkdir=True)
    columns = [("id", LONG), ("name", STRING), ("amount", DOUBLE)]
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", None], "amount": [1.0, 2.0]})
    root = tmp_path / "twin"
    write("iceberg", local, str(root), columns, [rows])
    data = root / "data" / "data-1.parquet"
    table = DeltaTable(None, root, fields=FIELDS)
    table.commit(add("data/data-1.parquet", size=data.stat().st_size, rows=2))
    iceberg, twin = (open_table(str(root), format=name).at("latest") for name in ("iceberg", "delta"))
    diff = sx.diff(iceberg, twin)

    assert diff.plan.proof == "The rows are equal: both have the same 1 file."
    assert diff.plan.format == "iceberg and delta"


def migrated(root, names, rows):
    """Open an Iceberg table over the data file of a Delta table, which it finds by a name mapping."""
    local = fsspec.filesystem("file", auto_mkdir=True)
    table = IcebergTable(local, str(root))
    kinds = ("long", "string", "double")
    fields = [
        {"id": place, "name": name, "required": False, "type": kind}
        for place, (name, kind) in enumerate(zip(("id", "name", "amount"), kinds, strict=True), 1)
    ]
    table.metadata["schemas"] = [{"type": "struct", "schema-id": 0, "fields": fields}]
    mapping = [{"field-id": place, "names": [name]} for place, name in enumerate(names, 1)]
    table.metadata["properties"] = {"schema.name-mapping.default": json.dumps(mapping)}
    size = (root / "a.parquet").stat().st_size
    table.data_file = lambda *_: {
        "content": 0,
        "file_path": table.path("a.parquet"),
        "file_format": "PARQUET",
        "partition": {},
        "record_count": rows,
        "file_size_in_bytes": size,
    }
    table.commit(pa.table({"id": [1]}))
    return open_table(str(root), format="iceberg").at("latest")


@pytest.mark.parametrize(
    ("names", "shared"), [(("id", "name", "amount"), 1), (("id", "amount", "name"), 0), (("id", "name"), 0)]
)
def test_a_table_migrated_in_place_is_proven_equal_if_its_mapping_has_the_same_names(tmp_path, names, shared):
    rows = [(1, "a", 1.0), (2, None, 2.0)]
    delta(tmp_path / "orders", rows)
    iceberg = migrated(tmp_path / "orders", names, len(rows))
    a = open_table(str(tmp_path / "orders"), format="delta").at("latest")

    plan = sx.diff(a, iceberg, exclude=["name", "amount"] if not shared else None, preview=True)
    assert plan.shared_files == shared
    assert (plan.proof == "The rows are equal: both have the same 1 file.") is bool(shared)


@pytest.mark.parametrize("name", ["delta/dv_partitioned", "iceberg/v3_dv", "paimon/dv", "hudi/v9_mor_basic"])
def test_a_copy_of_a_table_equals_it_whatever_its_deletes(tmp_path, name):
    shutil.copytree(DATA / name, tmp_path / "copy")
    a, b = open_table(str(DATA / name)).at("latest"), open_table(str(tmp_path / "copy")).at("latest")

    assert sx.diff(a, b, key=[]).is_empty


def test_versions_of_one_table_share_files_that_no_other_reader_can_read(tmp_path):
    table = open_table(str(DATA / "paimon" / "dv"))
    versions = table.versions()
    plan = sx.diff(table.at(versions[0]), table.at(versions[-1]), key=[], preview=True)

    assert sx.diff(table.at(versions[-1]), table.at(versions[-1])).plan.a.files == 0
    assert plan.a.label.endswith(" of dv")


def test_rows_beyond_the_memory_limit_are_spilled(pair):
    assert sx.diff(*pair, key="id", memory_limit=0).counts == sx.diff(*pair, key="id").counts


def in_files(root, rows, size):
    """Open a table of rows in files of this many."""
    table = DeltaTable(None, root, fields=FIELDS)
    table.commit(*(table.data(f"{at}.parquet", rows[at : at + size]) for at in range(0, len(rows), size)))
    return open_table(str(root)).at("latest")


@pytest.mark.parametrize("key", ["id", []])
@pytest.mark.parametrize("limit", [20_000, 100_000])
def test_equal_rows_are_dropped_while_both_sides_are_read(tmp_path, key, limit):
    rows = [(number, f"n{number % 7}", number / 4) for number in range(3_000)]
    changed = [(number, name, amount + (number % 500 == 0)) for number, name, amount in rows[5:]]
    changed += [(5_000, "new", None)]
    a, b = in_files(tmp_path / "a", rows, 300), in_files(tmp_path / "b", changed, 450)
    diff = sx.diff(a, b, key, memory_limit=limit)

    assert sorted(diff.before.to_pydict()["id"]) == [0, 1, 2, 3, 4, *range(500, 3_000, 500)]
    assert sorted(diff.after.to_pydict()["id"]) == [*range(500, 3_000, 500), 5_000]


def test_rows_that_repeat_are_counted_and_a_key_that_repeats_is_refused_though_equal_rows_were_dropped(tmp_path):
    rows = [(number, None, 1.0) for number in range(3_000)]
    a, b = in_files(tmp_path / "a", [*rows, *rows[:3], rows[0]], 400), in_files(tmp_path / "b", rows, 400)

    assert sorted(sx.diff(a, b, [], memory_limit=50_000).deleted["id"].to_pylist()) == [0, 0, 1, 2]
    for pair in ((a, b), (b, a)):
        with pytest.raises(InvalidArgumentError, match="The key id is not unique: several rows of version 1 of a"):
            sx.diff(*pair, "id", memory_limit=50_000)


@pytest.mark.parametrize("limit", [50_000, None])
def test_a_key_that_repeats_in_both_tables_alike_is_refused_too(tmp_path, limit):
    rows = [(number, None, 1.0) for number in range(3_000)]
    a, b = (in_files(tmp_path / name, [*rows, rows[0]], 400) for name in "ab")

    assert sx.diff(a, b, [], memory_limit=limit).is_empty
    with pytest.raises(
        InvalidArgumentError, match="The key id is not unique: several rows of version 1 of a have id=0"
    ):
        sx.diff(a, b, "id", memory_limit=limit)


def test_a_version_whose_files_are_gone_is_named_and_is_neither_equal_nor_different(pair, tmp_path):
    (tmp_path / "copy" / "a.parquet").unlink()

    assert "Version 1 of copy cannot be read" in repr(sx.diff(*pair, key="id", preview=True)).replace("\n", " ")
    with pytest.raises(CorruptTableError, match=r"a\.parquet"):
        sx.diff(*pair, key="id")


def test_a_diff_is_that_of_the_pinned_versions_whatever_is_committed_or_cleaned_up_meanwhile(pair, tmp_path):
    pinned = [snapshot.to_arrow() and snapshot for snapshot in pair]
    table = DeltaTable(None, tmp_path / "orders", fields=FIELDS)
    table.commit(table.data("c.parquet", [(9, "z", 9.0)]))
    table.checkpoint()
    for version in (0, 1):
        (tmp_path / "orders/_delta_log" / f"{version:020}.json").unlink()

    assert sx.diff(*pinned, key="id").counts == {"inserted": 1, "deleted": 1, "updated": 2}


def test_a_table_is_not_compared_without_a_version(pair):
    table = open_table(samples.path("orders"))
    with pytest.raises(InvalidArgumentError, match=r"got Table. A snapshot is table.at\(7\) or table.at"):
        sx.diff(table, pair[0])


def test_integers_of_other_widths_are_equal(tmp_path):
    filesystem = fsspec.filesystem("memory")
    for name, kind in (("a", LONG), ("b", INT)):
        rows = pa.table({"id": pa.array([1, 2], kind.arrow)})
        write("delta", filesystem, f"/{tmp_path.name}/{name}", [("id", kind)], [rows])
    a, b = (open_table(f"memory:///{tmp_path.name}/{name}").at("latest") for name in "ab")
    diff = sx.diff(a, b)

    assert diff.is_empty
    assert diff.plan.conversions == ("id: int64 and int32, compared as int64",)


def places(root, kind, *, wkb=b"\x01\x02"):
    table = DeltaTable(None, root, fields=[("id", "long"), ("g", kind)])
    value, dtype = (wkb, pa.binary()) if isinstance(kind, str) else ([wkb], pa.list_(pa.binary()))
    table.append([(1, value)], schema=pa.schema({"id": pa.int64(), "g": dtype}))
    return open_table(str(root))


def array_of(kind):
    return {"type": "array", "elementType": kind, "containsNull": True}


@pytest.mark.parametrize(
    ("kind", "other", "shown"),
    [
        ("geometry", "geometry(EPSG:3857)", "crs OGC:CRS84 in A, crs EPSG:3857 in B"),
        ("geometry(EPSG:3857)", "geometry(EPSG:3395)", "crs EPSG:3857 in A, crs EPSG:3395 in B"),
        ("geometry", "geography", "crs OGC:CRS84 in A, crs OGC:CRS84 and edges spherical in B"),
        (
            "geography",
            "geography(karney)",
            "crs OGC:CRS84 and edges spherical in A, crs OGC:CRS84 and edges karney in B",
        ),
        (array_of("geometry"), array_of("geometry(a)"), "crs OGC:CRS84 in A, crs a in B"),
    ],
)
def test_places_of_different_reference_systems_are_not_compared(tmp_path, kind, other, shown):
    left, right = places(tmp_path / "a", kind), places(tmp_path / "b", other)

    with pytest.raises(UnsupportedFeatureError, match=re.escape(f"'g' (places with {shown})")):
        sx.diff(left.current, right.current, key="id")
    assert not sx.diff(left.current, right.current, key="id", exclude=["g"]).to_arrow().num_rows


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("geometry", "geometry(OGC:CRS84)"),
        ("geography", "geography(OGC:CRS84, SPHERICAL)"),
        ("geometry", "binary"),
        (array_of("geometry(a)"), array_of("geometry(a)")),
    ],
)
def test_places_of_one_reference_system_are_compared_by_their_bytes(tmp_path, kind, other):
    tables = [places(tmp_path / name, *more) for name, *more in (("a", kind), ("b", other))]
    moved = places(tmp_path / "c", other, wkb=b"\x01\x03")

    assert sx.diff(tables[0].current, tables[1].current, key="id").to_arrow().num_rows == 0
    assert sx.diff(tables[0].current, moved.current, key="id").to_arrow()["rowkind"].to_pylist() == ["-U", "+U"]


def test_versions_between_which_a_reference_system_changed_are_not_compared(tmp_path):
    places(tmp_path, "geometry")
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("g", "geometry(EPSG:3857)")], first=None)
    table.commit(metadata(table.fields), version=2)

    with pytest.raises(UnsupportedFeatureError, match="have crs OGC:CRS84 at version 1 and crs EPSG:3857 at version 2"):
        open_table(str(tmp_path)).diff_rows(1, 2, key="id")
