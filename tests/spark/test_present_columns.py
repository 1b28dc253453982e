"""Columns that are never null through Spark: as fast as others, and known to be there."""

from contextlib import redirect_stdout
from decimal import Decimal
from io import StringIO

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer import open_table
from snapshot_explorer.engines.spark import native
from snapshot_explorer.table import parts_of
from tests.support.canonical import canonical_rows
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol
from tests.support.iceberg.table_builder import SCHEMA, IcebergTable
from tests.support.spark_frames import arrow_table


def test_columns_that_are_never_null_are_left_to_sparks_own_readers(spark, tmp_path):
    kinds = {
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "decimal(10,2)": pa.decimal128(10, 2),
        "decimal(38,38)": pa.decimal128(38, 38),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    fields = [(f"c{number}", kind) for number, kind in enumerate(kinds)]
    table_metadata = metadata(fields)
    table_metadata["metaData"]["schemaString"] = table_metadata["metaData"]["schemaString"].replace(
        '"nullable": true', '"nullable": false'
    )
    table = DeltaTable(None, tmp_path / "present", fields=fields, first=(protocol(), table_metadata))
    values = {
        "binary": [b"a", b"b"],
        "boolean": [True, False],
        "string": ["a", "b"],
        "decimal(38,38)": [Decimal(0)] * 2,
    }
    rows = pa.table({f"c{n}": pa.array(values.get(one, [0, 1]), kinds[one]) for n, one in enumerate(kinds)})
    pq.write_table(rows, tmp_path / "present" / "part-0.parquet")
    table.commit(add("part-0.parquet", size=(tmp_path / "present" / "part-0.parquet").stat().st_size, rows=2))
    snapshot = open_table(str(tmp_path / "present")).current

    for name, _ in fields:
        frame = snapshot.to_spark(spark, columns=[name])

        with redirect_stdout(StringIO()) as plan:
            frame.explain()
        assert "FileScan parquet" in plan.getvalue(), name
        assert not frame.schema[name].nullable
        assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow(columns=[name])), name


def test_nested_values_of_which_something_is_never_null_are_not_asked_of_sparks_readers(spark_mode, tmp_path):
    """They cast no value that may be null to one that is never, and log the attempt as an error."""
    part = {"name": "l", "type": "long", "nullable": False, "metadata": {}}
    inside, whole = {"type": "struct", "fields": [part]}, {"type": "struct", "fields": [part | {"nullable": True}]}
    rows = pa.table({"s": pa.array([{"l": 1}], pa.struct([pa.field("l", pa.int64())]))})
    read = {}
    for number, (kind, nullable) in enumerate([(inside, True), (whole, False), (whole, True)]):
        table_metadata = metadata([("s", kind)])
        if not nullable:
            schema = table_metadata["metaData"]["schemaString"]
            table_metadata["metaData"]["schemaString"] = '"nullable": false'.join(schema.rsplit('"nullable": true', 1))
        table = DeltaTable(None, tmp_path / str(number), first=(protocol(), table_metadata))
        pq.write_table(rows, tmp_path / str(number) / "f.parquet")
        table.commit(add("f.parquet", rows=1))
        snapshot = open_table(str(tmp_path / str(number))).current
        groups, rest = native.native_groups(
            parts_of(snapshot).loaded.version, parts_of(snapshot).loaded.version.plan().splits, snapshot.arrow_schema
        )
        read[number] = len(groups), len(rest)

    assert read == {0: (0, 1), 1: (0, 1), 2: (1, 0)}


def test_a_column_with_another_name_in_the_file_is_found_by_its_id(spark, tmp_path):
    table = IcebergTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path), location=str(tmp_path))
    names = ("id", "1st name")  # Iceberg's writers store _1st_x20name
    fields = [dict(field, name=name) for field, name in zip(SCHEMA["fields"], names, strict=True)]
    table.metadata["schemas"] = [dict(SCHEMA, fields=fields)]
    table.commit([(1, "a"), (2, None)])
    table.write_metadata()

    frame = open_table(str(tmp_path)).current.to_spark(spark)

    assert canonical_rows(arrow_table(frame)) == [[1, "a"], [2, None]]
