"""What a row diff gives, draws, exports and refuses."""

import gc
import json
import re
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import (
    InvalidArgumentError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from tests.inner.analysis import SplitRows
from tests.support.delta.table_builder import DeltaTable, metadata, remove

FIELDS = [("id", "long"), ("name", "string"), ("amount", "double")]


@pytest.fixture
def orders(tmp_path):
    """Three files: the second version writes the first file again with a row updated, one deleted and one added."""
    table = DeltaTable(None, tmp_path, fields=FIELDS)
    table.commit(
        table.data("a.parquet", [(1, "a", 1.0), (2, "b", 2.0), (3, None, 3.0)]),
        table.data("b.parquet", [(4, "d", 4.0)]),
    )
    table.commit(remove("a.parquet"), table.data("c.parquet", [(3, None, 3.0), (1, "<a>", 1.5), (5, "e", 5.0)]))
    return open_table(str(tmp_path))


def test_rows_are_inserted_deleted_and_updated_by_key(orders):
    diff = orders.diff_rows(1, 2, key="id")

    assert diff.counts == {"inserted": 1, "deleted": 1, "updated": 1}
    assert diff.inserted.to_pylist() == [{"id": 5, "name": "e", "amount": 5.0}]
    assert diff.deleted.to_pylist() == [{"id": 2, "name": "b", "amount": 2.0}]
    assert diff.updated.to_pylist() == [
        {
            "changed_columns": ["name", "amount"],
            "id": 1,
            "name_before": "a",
            "name_after": "<a>",
            "amount_before": 1.0,
            "amount_after": 1.5,
        }
    ]
    assert [row["id"] for row in diff.before.to_pylist()] == [2, 1]
    assert [row["id"] for row in diff.after.to_pylist()] == [5, 1]


def test_without_a_key_whole_rows_are_compared(orders):
    diff = orders.diff_rows(1, 2)

    assert diff.counts == {"inserted": 2, "deleted": 2, "updated": 0}
    assert orders.diff_rows(1, 2, key=[]).counts == diff.counts


def test_the_other_direction_is_the_mirror(orders):
    there, back = orders.diff_rows(1, 2, key="id"), orders.diff_rows(2, 1, key="id")

    assert there.before.to_pylist() == back.after.to_pylist()
    assert there.after.to_pylist() == back.before.to_pylist()


def test_a_file_that_both_versions_have_is_not_read(orders, tmp_path):
    (tmp_path / "b.parquet").unlink()

    diff = orders.diff_rows(1, 2)

    assert diff.counts["inserted"] == 2
    assert diff.plan.shared_files == 1


def test_a_version_does_not_differ_from_itself(orders):
    diff = orders.diff_rows(2, "latest")

    assert diff.is_empty
    assert diff.plan.a.files == diff.plan.b.files == 0
    assert "No row differs." in repr(diff)


def test_columns_and_a_condition_narrow_what_is_compared(orders):
    assert orders.diff_rows(1, 2, key="id", columns=["amount"]).updated.column_names == [
        "changed_columns",
        "id",
        "amount_before",
        "amount_after",
    ]
    assert orders.diff_rows(1, 2, columns=["name"]).before.to_pylist() == [{"name": "a"}, {"name": "b"}]
    assert orders.diff_rows(1, 2, key="id", where="amount >= 1.5").counts == {
        "inserted": 2,
        "deleted": 1,
        "updated": 0,
    }


def test_a_plan_says_what_is_read_and_how_many_rows_can_differ(orders, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"not opened")

    plan = orders.diff_rows(1, 2, preview=True)

    assert plan.announcement == orders.diff_rows(1, 2, preview=True).announcement
    assert (plan.most_deleted, plan.most_inserted, plan.shared_files) == (3, 3, 1)
    assert "Reads 1 file, 3 rows and" in repr(plan)
    assert "Not read: 1 file that both have." in plan.announcement


def test_a_diff_cites_its_sources_and_the_call_that_gives_it(orders, tmp_path):
    diff = orders.diff_rows(1, 2, key=["id"], where="amount > 0")

    drawn = repr(diff)

    assert "version 1 of 2026-01-01 00:01:00.000Z" in drawn
    assert str(tmp_path) in drawn
    assert "delta" in drawn
    assert diff.plan.call == f"open_table({str(tmp_path)!r}).diff_rows(1, 2, key=['id'], where='amount > 0')"
    assert eval(diff.plan.call, {"open_table": open_table}).to_arrow() == diff.to_arrow()


def test_changed_cells_are_marked_and_escaped(orders):
    diff = orders.diff_rows(1, 2, key="id")

    html = diff._repr_mimebundle_()["text/html"]

    assert '<td class="sx-changed">a → &lt;a&gt;</td>' in html
    assert re.search('<td class="sx-n sx-changed"[^>]*>1.0 → 1.5</td>', html)
    assert "~ updated" in repr(diff)
    assert "1.0 → 1.5" in repr(diff)


def test_what_is_not_drawn_is_noted(orders):
    diff = orders.diff_rows(1, 2, key="id").showing(1)

    assert "1 of 3 changed rows" in repr(diff)


def test_exports_have_all_changed_rows(orders, tmp_path_factory):
    diff, folder = orders.diff_rows(1, 2, key="id"), tmp_path_factory.mktemp("exports")

    rows = diff.to_arrow()
    diff.to_parquet(folder / "rows.parquet")
    diff.to_csv(folder / "rows.csv")
    diff.to_json(folder / "rows.json")

    assert rows["rowkind"].to_pylist() == ["-D", "+I", "-U", "+U"]
    assert rows["changed_columns"].to_pylist() == [None, None, ["name", "amount"], ["name", "amount"]]
    assert diff.to_pandas().shape == (4, 5)
    assert pq.read_table(folder / "rows.parquet") == rows
    assert json.loads((folder / "rows.json").read_text()) == json.loads(diff.to_json()) == rows.to_pylist()
    assert pyarrow.csv.read_csv(folder / "rows.csv")["id"].to_pylist() == [2, 5, 1, 1]
    assert diff.to_csv().splitlines()[3] == '"-U","[""name"",""amount""]",1,"a",1'


def test_nothing_is_written_into_the_table(orders, tmp_path):
    with pytest.raises(InvalidArgumentError, match="is in the table"):
        orders.diff_rows(1, 2).to_parquet(tmp_path / "diff.parquet")


def test_rows_beyond_the_memory_limit_give_the_same_diff(orders):
    for key in ("id", []):
        whole, spilled = orders.diff_rows(1, 2, key=key), orders.diff_rows(1, 2, key=key, memory_limit=1)

        assert spilled.counts == whole.counts
        kinds = ["rowkind", "id"]
        orders_of = [sorted(map(str, one.to_arrow().select(kinds).to_pylist())) for one in (whole, spilled)]
        assert orders_of[0] == orders_of[1]


def test_what_matching_needs_counts_for_the_memory_limit():
    rows = pa.record_batch({"id": pa.array(range(2_000), pa.int64())})
    hashes = np.arange(2_000, dtype=np.uint64)

    with closing(SplitRows([rows.schema], limit_bytes=100_000)) as split:  # three times the bytes of the rows
        split.add(0, (0, 0), rows, hashes)
        parts = [part.rows.num_rows for (part,) in split.parts()]

    assert len(parts) > 1
    assert sum(parts) == 2_000


def test_rows_with_equal_hashes_are_not_divided_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = pa.record_batch({"id": pa.array([1] * 100, pa.int64())})

    with closing(SplitRows([rows.schema], limit_bytes=0)) as split:
        split.add(0, (0, 0), rows, np.zeros(100, np.uint64))
        parts = split.parts()
        (part,) = next(parts)
        folders = list(tmp_path.glob("snapshot-*"))

    assert part.rows.num_rows == 100
    assert len(folders) == 1


def test_temporary_files_are_removed_with_the_diff_and_after_errors(orders, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    diff = orders.diff_rows(1, 2, key="id", memory_limit=1)
    held = list(folder.glob("snapshot-*"))  # a thread that another test left may write there too
    diff.to_parquet(folder / "rows.parquet")
    whole = pq.read_table(folder / "rows.parquet").num_rows
    del diff
    gc.collect()

    assert len(held) == 1
    assert whole == 4
    assert not list(folder.glob("snapshot-*"))


def test_names_that_the_package_uses_itself_may_be_columns():
    fields = [("hash", "long"), ("c0", "long"), ("rows", "long")]
    table = DeltaTable(fsspec.filesystem("memory"), "/own", fields=fields)
    table.commit(table.data("a.parquet", [(1, 1, 1), (2, 2, 2)]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(2, 2, 2), (1, 3, 1)]))
    opened = open_table("memory:///own")

    for limit in (None, 1):
        assert opened.diff_rows(1, 2, key="hash", memory_limit=limit).updated["c0_after"].to_pylist() == [3]


def test_nulls_nan_and_signed_zeros_are_compared_as_they_are_stored():
    table = DeltaTable(fsspec.filesystem("memory"), "/zeros", fields=FIELDS)
    nan = float("nan")
    table.commit(table.data("a.parquet", [(1, None, nan), (2, "", 0.0), (3, None, None)]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(1, None, nan), (2, "", -0.0), (3, None, None)]))

    diff = open_table("memory:///zeros").diff_rows(1, 2, key="id")

    assert diff.counts == {"inserted": 0, "deleted": 0, "updated": 1}
    assert str(diff.updated["amount_after"][0]) == "-0.0"


def test_nested_values_decimals_and_times_are_compared_by_value():
    kinds = {
        "m": pa.map_(pa.string(), pa.int64()),
        "s": pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
        "d": pa.decimal128(10, 2),
        "t": pa.timestamp("us", tz="UTC"),
        "b": pa.binary(),
    }
    fields = [
        ("id", "long"),
        ("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}),
        (
            "s",
            {
                "type": "struct",
                "fields": [
                    {"name": "x", "type": "long", "nullable": True, "metadata": {}},
                    {
                        "name": "y",
                        "type": {"type": "array", "elementType": "string", "containsNull": True},
                        "nullable": True,
                        "metadata": {},
                    },
                ],
            },
        ),
        ("d", "decimal(10,2)"),
        ("t", "timestamp"),
        ("b", "binary"),
    ]
    schema = pa.schema([("id", pa.int64()), *kinds.items()])
    time = datetime(2026, 1, 1, tzinfo=UTC)
    row = {"m": [("a", 1), ("b", 2)], "s": {"x": 1, "y": ["p", None]}, "d": Decimal("1.10"), "t": time, "b": b"\x00"}
    others = [{"m": [("b", 2), ("a", 1)]}, {"m": [("a", 1)]}, {"s": {"x": 1, "y": ["p"]}}, {"d": Decimal("1.11")}]
    others += [{"b": b"\x01"}, {"s": None}, {"t": None}]
    table = DeltaTable(fsspec.filesystem("memory"), "/nested", fields=fields)
    before = [{"id": number} | row for number in range(len(others))]
    after = [{"id": number} | row | other for number, other in enumerate(others)]
    table.commit(table.data("a.parquet", before, schema=schema))
    table.commit(remove("a.parquet"), table.data("b.parquet", after, schema=schema))

    diff = open_table("memory:///nested").diff_rows(1, 2, key="id")

    changed = dict(zip(diff.updated["id"].to_pylist(), diff.updated["changed_columns"].to_pylist(), strict=True))
    assert changed == {1: ["m"], 2: ["s"], 3: ["d"], 4: ["b"], 5: ["s"], 6: ["t"]}
    assert "hex" not in diff.to_csv()
    assert len(json.loads(diff.to_json())) == 12


def test_names_of_columns_before_and_after_never_collide():
    fields = [("id", "long"), ("x", "long"), ("x_before", "long"), ("rowkind", "long")]
    table = DeltaTable(fsspec.filesystem("memory"), "/names", fields=fields)
    table.commit(table.data("a.parquet", [(1, 1, 1, 1)]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(1, 2, 2, 1)]))

    diff = open_table("memory:///names").diff_rows(1, 2, key=["id", "x_before"], columns=["x"])
    other = open_table("memory:///names").diff_rows(1, 2, key="id")

    assert diff.updated.column_names == ["changed_columns", "id", "x_before", "x__before", "x__after"]
    assert other.to_arrow().column_names[:2] == ["rowkind_", "changed_columns"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["x"]}, r"Unknown column 'x' in columns\. Columns: id, name, amount\."),
        ({"key": "nam"}, r"Unknown column 'nam' in key\. Did you mean name\?"),
        ({"key": 5}, r"key must be a list of names, got 5\."),
        ({"where": 5}, r"A condition is SQL text, got 5\."),
        ({"columns": "id"}, r"columns is one text, 'id'\. Give a list of names"),
        ({"columns": []}, "columns names no column"),
        ({"where": "x > 1"}, "Unknown column 'x' in the condition"),
        ({"where": "amount >"}, "is not SQL"),
        (
            {"key": "name"},
            r"The key column 'name' is null in a row of version 1: name=-\. A key must identify every row",
        ),
        ({"engine": "flink"}, r"No engine is called 'flink'\. Engines: local, spark\."),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(orders, arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        orders.diff_rows(1, 2, **arguments)


def test_a_key_of_several_rows_is_refused_with_a_bounded_example():
    table = DeltaTable(fsspec.filesystem("memory"), "/twice", fields=FIELDS)
    table.commit(table.data("a.parquet", [(1, "x\x1b" * 500, 1.0), (2, "x\x1b" * 500, 1.0)]))

    with pytest.raises(
        InvalidArgumentError, match="The key name is not unique: several rows of version 1 have"
    ) as error:
        open_table("memory:///twice").diff_rows(0, 1, key="name")

    assert len(str(error.value)) < 300
    assert "\x1b" not in str(error.value)


def test_a_key_that_repeats_in_a_file_of_both_versions_leaves_the_changed_rows_right():
    table = DeltaTable(fsspec.filesystem("memory"), "/shared", fields=FIELDS)
    table.commit(table.data("a.parquet", [(1, "a", 1.0)]), table.data("b.parquet", [(2, "b", 2.0)]))
    table.commit(remove("b.parquet"), table.data("c.parquet", [(1, "c", 3.0), (2, "b", 2.5)]))

    diff = open_table("memory:///shared").diff_rows(1, 2, key="id")

    # id 1 is in a.parquet too, which both versions have and nobody reads.
    assert diff.inserted["name"].to_pylist() == ["c"]
    assert diff.before.to_pylist() == [{"id": 2, "name": "b", "amount": 2.0}]
    assert diff.after["id"].to_pylist() == [1, 2]
    with pytest.raises(InvalidArgumentError, match="The key id is not unique: several rows of version 2 have id=1"):
        open_table("memory:///shared").diff_rows(0, 2, key="id")


def test_nulls_of_a_key_are_refused_before_its_duplicates_and_a_before_b():
    table = DeltaTable(fsspec.filesystem("memory"), "/order", fields=FIELDS)
    table.commit(table.data("a.parquet", [(1, "x", 1.0), (1, None, 1.0)]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(None, "x", 2.0), (2, "x", 2.0)]))
    opened = open_table("memory:///order")

    with pytest.raises(InvalidArgumentError, match="several rows of version 1 have id=1"):
        opened.diff_rows(1, 2, key="id")
    with pytest.raises(InvalidArgumentError, match="'id' is null in a row of version 2"):
        opened.diff_rows(1, 2, key="id", where="name = 'x'")
    with pytest.raises(InvalidArgumentError, match="'name' is null in a row of version 1"):
        opened.diff_rows(1, 2, key="name")


def test_a_side_that_cannot_be_read_is_named_before_rows_are_read(orders, tmp_path):
    (tmp_path / "a.parquet").unlink()

    with pytest.raises(SnapshotNotFoundError, match=r"Version 1 has expired: the data file a\.parquet does not exist"):
        orders.diff_rows(1, 2)


def test_a_missing_version_is_named(orders):
    with pytest.raises(SnapshotNotFoundError, match="Version 9 does not exist"):
        orders.diff_rows(1, 9)


def test_an_added_column_is_null_before_and_a_dropped_one_is_not_compared(orders, tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("name", "string"), ("more", "long")], first=None)
    table.version = 2
    table.commit(metadata(table.fields), remove("c.parquet"), table.data("d.parquet", [(3, None, None), (1, "<a>", 7)]))

    diff = open_table(str(tmp_path)).diff_rows(2, 3, key="id")

    assert diff.plan.columns_only_a == ("amount",)
    assert diff.counts == {"inserted": 0, "deleted": 1, "updated": 1}
    assert diff.updated.to_pylist() == [
        {
            "changed_columns": ["more"],
            "id": 1,
            "name_before": "<a>",
            "name_after": "<a>",
            "more_before": None,
            "more_after": 7,
        }
    ]


def test_types_that_do_not_compare_are_refused_by_name(orders, tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("name", "string"), ("amount", "string")], first=None)
    table.version = 2
    table.commit(
        metadata(table.fields), remove("b.parquet"), remove("c.parquet"), table.data("d.parquet", [(1, "", "")])
    )
    opened = open_table(str(tmp_path))

    with pytest.raises(
        UnsupportedFeatureError, match="The column 'amount' is double at version 2 and string at version 3"
    ):
        opened.diff_rows(2, 3)
    assert opened.diff_rows(2, 3, columns=["id"]).counts["deleted"] == 3


def test_versions_without_a_common_column_are_refused(orders, tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("other", "long")], first=None)
    table.version = 2
    table.commit(metadata(table.fields), remove("b.parquet"), remove("c.parquet"), table.data("d.parquet", [(1,)]))

    with pytest.raises(InvalidArgumentError, match="Versions 2 and 3 have no column in common"):
        open_table(str(tmp_path)).diff_rows(2, 3)


def test_without_a_key_a_column_that_is_unique_is_suggested(orders, tmp_path):
    a, b = orders.versions()[-2:]

    found = orders.diff_rows(a, b)

    assert found.suggested_key == "id"
    assert f"table.diff_rows({a}, {b}, key=['id'])" in str(found)
    some = orders.diff_rows(a, b, columns=["id", "name"], where="id > 0")
    same = f"""table.diff_rows({a}, {b}, key=['id'], columns=['id', 'name'], where='id > 0')"""
    assert same in " ".join(str(some).split())
    assert orders.diff_rows(a, b, key="id").suggested_key is None
    assert "next" not in str(orders.diff_rows(a, b, key="id"))

    table = DeltaTable(None, tmp_path / "other", fields=FIELDS)
    table.commit(table.data("a.parquet", [(1, "a", 1.0), (1, "b", 2.0)]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(1, "c", 3.0), (1, "d", 4.0)]))
    doubled = open_table(str(tmp_path / "other"))
    assert doubled.diff_rows(*doubled.versions()[-2:]).suggested_key is None
