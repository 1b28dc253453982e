"""Files that lack columns: null where that may be so, and refused where the log or the file says otherwise."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol, schema_json

NAMED, BY_ID = ({"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"} for mode in ("name", "id"))
MODES = {"none": {}, "name": NAMED, "id": BY_ID}


def mapped(number, name):
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}


FIELDS = [("a", "long", mapped(7, "col-7")), ("b", "string", mapped(8, "col-8"))]


def columns(**named):
    """Return Arrow columns, each given as its values, or as its id and values."""
    found = {name: value if isinstance(value, tuple) else (None, value) for name, value in named.items()}
    schema = [
        pa.field(name, pa.array(values).type, metadata=None if number is None else {"PARQUET:field_id": str(number)})
        for name, (number, values) in found.items()
    ]
    return pa.table([pa.array(values) for _, values in found.values()], schema=pa.schema(schema))


def opened(root, rows, *, mode="none", stats=None, fields=FIELDS, partition_by=(), said=None):
    """Return the newest version of a table with one file, and `stats` for it; by default it has a number of rows."""
    table_metadata = metadata(schema_json(fields), configuration=MODES[mode], partition_by=partition_by)
    table = DeltaTable(None, root, first=[said or protocol(2, 5), table_metadata])
    pq.write_table(rows, root / "f.parquet")
    size = (root / "f.parquet").stat().st_size
    partition = dict.fromkeys(partition_by, "1")
    stats = {"numRecords": len(rows)} if stats is None else stats
    table.commit(add("f.parquet", size=size, stats=stats, partition=partition))
    return open_table(root).current


OTHERS = columns(x=[1, 2], y=["a", "b"])
COUNTED = {"numRecords": 2, "nullCount": {"x": 0, "y": 0}, "minValues": {"x": 1}, "maxValues": {"x": 2}}


@pytest.mark.parametrize("stats", [{"numRecords": 2}, COUNTED, "", "{}"])
@pytest.mark.parametrize("wanted", [None, ["a"], ["b", "a"]])
def test_a_file_of_other_columns_is_refused_by_name(tmp_path, stats, wanted):
    snapshot = opened(tmp_path, OTHERS, stats=stats)

    with pytest.raises(CorruptTableError, match=r"f\.parquet has 2 rows and none of the table's columns \('a', 'b'\)"):
        snapshot.to_arrow(columns=wanted)
    assert snapshot.to_arrow(columns=[]).num_rows == 2


@pytest.mark.parametrize(
    "rows",
    [OTHERS.slice(0, 0), columns(a=[1, 2]), columns(B=["x", "y"], z=[1, 2]), columns(p=[1, 1])],
    ids=["no rows", "a column that came later", "other cases and columns", "partition columns alone"],
)
def test_what_may_have_been_so_written_is_null(tmp_path, rows):
    snapshot = opened(tmp_path, rows, fields=[*FIELDS, ("p", "string", mapped(9, "col-9"))], partition_by=["p"])

    assert snapshot.to_arrow().num_rows == rows.num_rows
    assert snapshot.to_arrow(columns=["a"])["a"].to_pylist() == (
        rows["a"].to_pylist() if "a" in rows.schema.names else [None] * len(rows)
    )
    assert snapshot.to_arrow(columns=["b"]).num_rows == rows.num_rows


def test_a_file_of_other_columns_is_read_where_its_statistics_count_nulls_only(tmp_path):
    snapshot = opened(tmp_path, OTHERS, stats={"numRecords": 2, "nullCount": {"a": 2, "b": 2}})

    assert snapshot.to_arrow().to_pylist() == [{"a": None, "b": None}] * 2


@pytest.mark.parametrize(
    "stats",
    [
        {"nullCount": {"b": 0}},
        {"nullCount": {"b": 1}},
        {"nullCount": {"b": 1}, "tightBounds": True},
        {"nullCount": {"b": 0}, "tightBounds": False},
        {"minValues": {"b": "x"}},
        {"maxValues": {"b": "x"}},
    ],
)
def test_a_column_of_which_values_were_counted_is_not_null(tmp_path, stats):
    snapshot = opened(tmp_path, columns(a=[1, 2]), stats={"numRecords": 2} | stats)

    with pytest.raises(
        CorruptTableError, match=r"f\.parquet has no column 'b', but its statistics .* count values of it"
    ):
        snapshot.to_arrow()
    assert snapshot.to_arrow(columns=["a"])["a"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "stats",
    [
        {"nullCount": {"b": 2}},
        {"nullCount": {"b": 1}, "tightBounds": False},
        {"nullCount": {"b": "x"}},
        {"nullCount": []},
    ],
)
def test_a_column_of_which_no_value_was_counted_for_certain_is_null(tmp_path, stats):
    snapshot = opened(tmp_path, columns(a=[1, 2]), stats={"numRecords": 2} | stats)

    assert snapshot.to_arrow()["b"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        ("name", columns(x=[1, 2])),
        ("name", columns(a=[1, 2])),
        ("name", columns(**{"col-1": (1, [1, 2]), "col-2": (2, [1, 2])})),
        ("id", columns(**{"col-1": (1, [1, 2])})),
    ],
    ids=["before columns were mapped", "a name that came again", "dropped columns", "dropped columns, by id"],
)
def test_a_file_of_dropped_columns_is_null_in_those_that_came_later(tmp_path, mode, rows):
    snapshot = opened(tmp_path, rows, mode=mode)

    assert snapshot.to_arrow().to_pylist() == [{"a": None, "b": None}] * 2


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        ("name", columns(x=(7, [1, 2]))),
        ("name", columns(**{"col-1": (1, [1, 2]), "col-77": (77, [1, 2])})),
        ("id", columns(x=(10, [1, 2]))),
    ],
    ids=["the id of another name", "an id that no column had", "an id that no column had, by id"],
)
def test_a_file_of_columns_that_were_never_the_tables_is_refused(tmp_path, mode, rows):
    snapshot = opened(tmp_path, rows, mode=mode)

    with pytest.raises(CorruptTableError, match=r"f\.parquet has 2 rows and none of the table's columns"):
        snapshot.to_arrow(columns=["a"])


PROTOCOLS = {
    "reader 1": protocol(1, 2),
    "reader 2": protocol(2, 5),
    "writer feature": {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["columnMapping"]}},
    "writer's feature alone": {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [],
            "writerFeatures": ["columnMapping"],
        }
    },
    "both": protocol(features=["columnMapping"]),
}


@pytest.mark.parametrize("said", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_mapped_as_the_property_says_whatever_the_protocol_lists(tmp_path, said, mode):
    """As Spark reads them: compared with Spark 4.1 and Delta 4.4."""
    rows = columns(**{"col-7": (7, [1, 2]), "col-8": (8, ["x", "y"])})

    assert opened(tmp_path, rows, mode=mode, said=said).to_arrow().to_pylist() == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "y"},
    ]


def test_mapped_columns_without_the_feature_among_others_are_refused_as_by_spark(tmp_path):
    snapshot = opened(tmp_path, columns(a=[1]), mode="name", said=protocol(features=["deletionVectors"]))

    with pytest.raises(CorruptTableError, match="its protocol lists no columnMapping"):
        snapshot.to_arrow()
