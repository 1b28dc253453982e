"""Write test tables with Apache Paimon 1.4.2's Java core, and the rows that the same core reads from them.

    python -m tests.scripts.make_paimon_java JARS [NAME...]

No connector for Spark newer than 0.9.0 was at hand, so these tables come from Paimon's Java interface, called
through py4j. JARS is a class path: the jar of `org.apache.paimon:paimon-bundle:1.4.2` and, out of PySpark 3.5.9's
`jars` folder, those whose names begin with hadoop-client, slf4j-api, snappy-java, commons-logging and zstd-jni.
Needs Java 17.
"""

# ruff: noqa: FBT003 - Java knows no arguments by name

from __future__ import annotations

import datetime as dt
import decimal
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from tests.scripts import expect, make_samples, tables_of_branches, tables_of_files
from tests.scripts.tables_of_merges import HISTORIES, Change, Exact, History, Long, Sketch, lookup_commits, row_type
from tests.support.canonical import canonical_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DATA = Path(__file__).resolve().parents[1] / "data"
SOURCE = "Apache Paimon 1.4.2 (Java core)"
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock arithmetic


class Core:
    """Paimon's Java core over one warehouse, in a Java process of its own."""

    def __init__(self, jars: str, folder: Path, zone: str = "UTC") -> None:
        self.clock = make_samples.Clock(folder)
        self.warehouse = folder / "warehouse"
        port, token = launch_gateway(
            classpath=jars,
            jarpath=str(next((Path(sys.prefix) / "share" / "py4j").glob("py4j*.jar"))),
            javaopts=[f"-Duser.timezone={zone}", "-Duser.name=lake"],
            die_on_exit=True,
            enable_auth=True,
            **({"java_path": _clocked_java(folder, self.clock)} if self.clock.environment() else {}),
        )
        self.gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        self.paimon = self.gateway.jvm.org.apache.paimon
        options = self.paimon.options.Options()
        options.set("warehouse", self.warehouse.as_uri())
        self.catalog = self.paimon.catalog.CatalogFactory.createCatalog(
            self.paimon.catalog.CatalogContext.create(options)
        )
        self.catalog.createDatabase("d", True)
        self.hours = 0

    def tick(self) -> None:
        """Let six hours of the writer's clock pass."""
        self.hours += 6
        moment = dt.datetime(2026, 11, 1) + dt.timedelta(hours=self.hours)  # noqa: DTZ001
        self.clock.set(moment.isoformat())

    def table(self, name: str, **options: str) -> Any:
        """Return the table; `options` hold for this handle alone."""
        found = self.catalog.getTable(self.paimon.catalog.Identifier.create("d", name))
        return found.copy({key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})

    def create(
        self, name: str, columns: Mapping[str, Any], keys: str, options: dict[str, str], parts: str = ""
    ) -> None:
        """Create a table; a column's type is written as in Paimon's schema files."""
        self.hours = 0
        self.tick()
        builder = self.paimon.schema.Schema.newBuilder()
        for column, kind in columns.items():
            builder = builder.column(column, self.type(kind))
        for key, value in options.items():
            builder = builder.option(key, value)
        builder = builder.primaryKey(keys.split()).partitionKeys(parts.split())
        self.catalog.createTable(self.paimon.catalog.Identifier.create("d", name), builder.build(), False)

    def type(self, kind: object) -> Any:
        """Return Paimon's type for its form in schema files."""
        mapper = self.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper()
        return self.paimon.types.DataTypeJsonParser.parseDataType(mapper.readTree(json.dumps(kind)))

    def alter(self, name: str, *changes: Any) -> None:
        """Change the schema."""
        self.tick()
        self.catalog.alterTable(self.paimon.catalog.Identifier.create("d", name), list(changes), False)

    def write(
        self,
        name: str,
        rows: Sequence[tuple[Any, ...]],
        *,
        delete: bool = False,
        overwrite: bool = False,
        table: Any = None,
    ) -> None:
        """Commit rows, as inserts, deletes, or instead of everything; through `table`, if given."""
        self.tick()
        builder = self.paimon.table.sink.BatchWriteBuilderImpl(table or self.table(name))
        builder = builder.withOverwrite() if overwrite else builder
        writer = builder.newWrite()
        writer.withIOManager(self.paimon.disk.IOManager.create(str(self.warehouse)))
        for row in rows:
            record = self.row(row)
            if delete:
                record.setRowKind(self.paimon.types.RowKind.DELETE)
            writer.write(record)
        self.commit(builder, writer)

    def replace_options(self, name: str, options: Mapping[str, str | None]) -> None:
        """Write a second schema by hand, whose options Paimon would not change itself; None removes one."""
        folder = self.warehouse / "d.db" / name / "schema"
        schema = json.loads((folder / "schema-0").read_text())
        merged = schema["options"] | options
        schema |= {"id": 1, "options": {key: value for key, value in merged.items() if value is not None}}
        (folder / "schema-1").write_text(json.dumps(schema, indent=2))
        self.catalog.invalidateTable(self.paimon.catalog.Identifier.create("d", name))

    def change(self, name: str, changes: Sequence[Change]) -> None:
        """Commit rows, each of its own kind."""
        self.tick()
        builder = self.paimon.table.sink.BatchWriteBuilderImpl(self.table(name))
        writer = builder.newWrite()
        writer.withIOManager(self.paimon.disk.IOManager.create(str(self.warehouse)))
        for kind, values in changes:
            record = self.row(values)
            record.setRowKind(self.paimon.types.RowKind.fromShortString(kind))
            writer.write(record)
        self.commit(builder, writer)

    def compact(self, name: str, buckets: Sequence[int]) -> None:
        """Compact buckets of an unpartitioned table fully."""
        self.tick()
        builder = self.paimon.table.sink.BatchWriteBuilderImpl(self.table(name, write_only="false"))
        writer = builder.newWrite()
        writer.withIOManager(self.paimon.disk.IOManager.create(str(self.warehouse)))
        for bucket in buckets:
            writer.compact(self.paimon.data.BinaryRow.EMPTY_ROW, bucket, True)
        self.commit(builder, writer)

    def commit(self, builder: Any, writer: Any) -> None:
        """Commit what a writer has prepared."""
        commit = builder.newCommit()
        commit.commit(writer.prepareCommit())
        writer.close()
        commit.close()

    def row(self, values: Sequence[Any]) -> Any:
        """Return a row in Paimon's own form."""
        record = self.paimon.data.GenericRow(len(values))
        for index, value in enumerate(values):
            record.setField(index, self.value(value))
        return record

    def value(self, value: Any) -> Any:  # noqa: C901, PLR0911 - one case for each kind of value
        """Return a value in Paimon's own form; a tuple is a row, a list an array."""
        data = self.paimon.data
        match value:
            case bytes():
                return data.BlobData(value)
            case str():
                return data.BinaryString.fromString(value)
            case tuple():
                return self.row(value)
            case list():
                array = self.gateway.new_array(self.gateway.jvm.java.lang.Object, len(value))
                for index, item in enumerate(value):
                    array[index] = self.value(item)
                return data.GenericArray(array)
            case dict():
                entries = self.gateway.jvm.java.util.HashMap()
                for key, item in value.items():
                    entries.put(self.value(key), self.value(item))
                return data.GenericMap(entries)
            case Sketch():
                return self.sketch(value)
            case Exact():
                number = self.gateway.jvm.java.math.BigDecimal(str(value.number))
                return data.Decimal.fromBigDecimal(number, value.precision, 0)
            case decimal.Decimal():
                number = self.gateway.jvm.java.math.BigDecimal(str(value))
                return data.Decimal.fromBigDecimal(number, 10, -value.as_tuple().exponent)
            case dt.datetime():
                micros = (value - _EPOCH) // dt.timedelta(microseconds=1)
                return data.Timestamp.fromEpochMillis(micros // 1000, micros % 1000 * 1000)
            case dt.date():
                return (value - _EPOCH.date()).days
        return value

    def sketch(self, sketch: Sketch) -> Any:
        """Return a set of numbers as bytes."""
        made = getattr(self.paimon.utils, sketch.kind)
        is_wide = sketch.kind == "RoaringBitmap64"
        numbers = self.gateway.new_array(
            self.gateway.jvm.long if is_wide else self.gateway.jvm.int, len(sketch.numbers)
        )
        for index, number in enumerate(sketch.numbers):
            numbers[index] = Long(number) if is_wide else number
        if sketch.kind.startswith("RoaringBitmap"):
            return made.bitmapOf(numbers).serialize()
        return made.sketchOf(numbers)

    def read(self, name: str, **options: str) -> pa.Table:
        """Return the rows that the core reads."""
        table = self.table(name, **options)
        builder = self.paimon.table.source.ReadBuilderImpl(table)
        kind = builder.readType()
        schema = pa.schema([(field.name(), _arrow(field.type())) for field in kind.getFields()])
        got = []
        reader = builder.newRead()
        for split in builder.newScan().plan().splits():  # one by one: py4j does not see Java's default methods
            rows = self.paimon.reader.RecordReaderIterator(reader.createReader(split))
            while rows.hasNext():
                got.append(_python(rows.next(), kind))
            rows.close()
        return pa.Table.from_pylist([dict(zip(schema.names, row.values(), strict=True)) for row in got], schema)

    def close(self) -> None:
        """End the Java process."""
        self.gateway.shutdown()


def _clocked_java(folder: Path, clock: make_samples.Clock) -> str:
    script = folder / "java"
    variables = " ".join(f"{key}={value}" for key, value in clock.environment().items())
    script.write_text(f'#!/bin/sh\nexec env TZ=UTC {variables} {shutil.which("java")} "$@"\n')
    script.chmod(0o755)
    return str(script)


def _arrow(kind: Any) -> pa.DataType:
    root = kind.getTypeRoot().toString()
    match root:
        case "ROW":
            return pa.struct([(field.name(), _arrow(field.type())) for field in kind.getFields()])
        case "ARRAY":
            return pa.list_(_arrow(kind.getElementType()))
        case "MAP":
            return pa.map_(_arrow(kind.getKeyType()), _arrow(kind.getValueType()))
        case "DECIMAL":
            return pa.decimal128(kind.getPrecision(), kind.getScale())
    return {
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "FLOAT": pa.float32(),
        "CHAR": pa.string(),
        "VARCHAR": pa.string(),
        "BLOB": pa.binary(),
        "VARBINARY": pa.binary(),
        "BOOLEAN": pa.bool_(),
        "DATE": pa.date32(),
        "TIMESTAMP_WITHOUT_TIME_ZONE": pa.timestamp("us"),
        "TIMESTAMP_WITH_LOCAL_TIME_ZONE": pa.timestamp("us", "UTC"),
    }[root]


def _python(row: Any, kind: Any) -> dict[str, Any]:
    fields = kind.getFields()
    return {field.name(): _field(row, index, field.type()) for index, field in enumerate(fields)}


def _field(row: Any, index: int, kind: Any) -> Any:
    if row.isNullAt(index):
        return None
    match kind.getTypeRoot().toString():
        case "ROW":
            return _python(row.getRow(index, kind.getFieldCount()), kind)
        case "ARRAY":
            array = row.getArray(index)
            return [_field(array, position, kind.getElementType()) for position in range(array.size())]
        case "MAP":
            pairs, both = row.getMap(index), (kind.getKeyType(), kind.getValueType())
            sides = zip((pairs.keyArray(), pairs.valueArray()), both, strict=True)
            return list(zip(*([_field(side, at, of) for at in range(pairs.size())] for side, of in sides), strict=True))
        case "TIMESTAMP_WITHOUT_TIME_ZONE" | "TIMESTAMP_WITH_LOCAL_TIME_ZONE":
            stamp = row.getTimestamp(index, kind.getPrecision())
            return _EPOCH + dt.timedelta(
                milliseconds=stamp.getMillisecond(), microseconds=stamp.getNanoOfMillisecond() // 1000
            )
        case root:
            return _simple(row, index, kind, root)


def _simple(row: Any, index: int, kind: Any, root: str) -> Any:
    if root == "DECIMAL":
        return decimal.Decimal(row.getDecimal(index, kind.getPrecision(), kind.getScale()).toString())
    if root == "DATE":
        return _EPOCH.date() + dt.timedelta(days=row.getInt(index))
    if root in ("CHAR", "VARCHAR"):
        return row.getString(index).toString()
    if root == "VARBINARY":
        return bytes(row.getBinary(index))
    if root == "BLOB":
        return row.getBlob(index).toData()
    getters = {
        "INTEGER": row.getInt,
        "BIGINT": row.getLong,
        "DOUBLE": row.getDouble,
        "FLOAT": row.getFloat,
        "BOOLEAN": row.getBoolean,
    }
    return getters[root](index)


BIG = 5_000_000_000
_MONEY = {"k": "INT NOT NULL", "v": "STRING", "amount": "DECIMAL(10, 2)", "n": "BIGINT"}


def written_by_1_4(core: Core, name: str, **more: str) -> None:
    """Write a primary-key table: insert, upsert, delete, compaction, overwrite; tag, branch."""
    amount = decimal.Decimal
    options = {"bucket": "2", "write-only": "true", "snapshot.num-retained.min": "1000"} | more
    core.create(name, _MONEY, "k", options)
    core.write(name, [(1, "a", amount("1.10"), BIG), (2, "b", None, None), (3, None, amount("-3.00"), BIG + 3)])
    core.write(name, [(2, "B", amount("2.22"), BIG), (4, "d", amount("4.00"), None)])
    core.write(name, [(1, None, None, None)], delete=True)
    core.compact(name, [0, 1])
    core.table(name).createTag("v1", 3)
    core.table(name).createBranch("dev", "v1")
    core.write(name, [(9, "only", amount("9.99"), BIG * 9)], overwrite=True)


def manifests_1_4(file_format: str) -> Callable[[Core, str], None]:
    """Return a writer of a table whose manifests are in another format than Avro."""
    return lambda core, name: written_by_1_4(core, name, **{"manifest.format": file_format})


def evolution_nested(core: Core, name: str) -> None:
    """Write an append table whose nested fields change, also inside an array."""
    columns = {"k": "INT", "r": row_type(x="INT", y="STRING")}
    columns["l"] = {"type": "ARRAY", "element": row_type(p="INT", q="STRING")}
    core.create(name, columns, "", {"bucket": "-1"})
    core.write(name, [(1, (1, "one"), [(1, "p"), None]), (2, None, None), (3, (None, "x"), [])])
    change, array = core.paimon.schema.SchemaChange, core.gateway.new_array

    def names(*path: str) -> Any:
        text = array(core.gateway.jvm.java.lang.String, len(path))
        for index, part in enumerate(path):
            text[index] = part
        return text

    types, move = core.paimon.types.DataTypes, None
    core.alter(name, change.addColumn(names("r", "z"), types.STRING(), None, move))
    core.write(name, [(4, (4, "four", "new"), [(4, "q")])])
    core.alter(name, change.renameColumn(names("r", "y"), "why"))
    core.alter(name, change.updateColumnType(names("r", "x"), types.BIGINT(), False))
    core.alter(name, change.addColumn(names("l", "element", "added"), types.INT(), None, move))
    core.alter(name, change.dropColumn(names("l", "element", "q")))
    core.write(name, [(5, (BIG, "five", None), [(5, 55), (6, None)])])


def partition_names(core: Core, name: str) -> None:
    """Write a table whose partition folders carry SQL text instead of day numbers."""
    columns = {"k": "INT", "day": "DATE", "at": "TIMESTAMP(6)", "yes": "BOOLEAN"}
    core.create(name, columns, "", {"bucket": "-1", "partition.legacy-name": "false"}, "day at yes")
    moment = dt.datetime(2026, 11, 1, 2, 3, 4, 500)  # noqa: DTZ001
    core.write(name, [(1, moment.date(), moment, True), (2, None, None, None), (3, dt.date(1950, 1, 1), _EPOCH, False)])


def ltz_orc(core: Core, name: str) -> None:
    """Write timestamps with a local time zone into ORC, in the legacy way; the zone is the Java process's."""
    columns = {"k": "INT", "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "wall": "TIMESTAMP(6)"}
    core.create(name, columns, "", {"bucket": "-1", "file.format": "orc"})
    moments = [dt.datetime(2026, 11, 1, 2, 3, 4, 500000), dt.datetime(1960, 7, 1), _EPOCH]  # noqa: DTZ001
    core.write(name, [*((number, moment, moment) for number, moment in enumerate(moments)), (9, None, None)])


def char_orc(core: Core, name: str) -> None:
    """Write CHAR into ORC, which fills it up with blanks: as the bucket key and in a ROW, with blanks and without."""
    row = {"type": "ROW", "fields": [{"id": 5, "name": "c", "type": "CHAR(4)"}]}
    options = {"bucket": "4", "bucket-key": "c", "file.format": "orc"}
    core.create(name, {"c": "CHAR(5)", "n": "INT", "v": "VARCHAR(5)", "r": row}, "", options)
    core.write(
        name, [("ab", 1, "ab ", ("a",)), ("ab   ", 2, "", ("a   ",)), ("q", 3, None, None), (None, 4, "q", None)]
    )
    core.write(name, [("q    ", 5, "q", ("",)), ("zz", 6, "zz", (None,))])


def char_orc_keyed(core: Core, name: str) -> None:
    """Write keys of CHAR into ORC, with and without blanks, and merge them."""
    core.create(name, {"c": "CHAR(5) NOT NULL", "n": "INT"}, "c", {"bucket": "1", "file.format": "orc"})
    for number, key in enumerate(("ab   ", "ab", "aa   ", "b")):
        core.write(name, [(key, number)])


def orc_hive_names(core: Core, name: str) -> None:
    """Write ORC with columns called as an old Hive did, which Spark's reader takes by their places."""
    core.create(name, {"_col1": "INT", "_col0": "INT"}, "", {"bucket": "-1", "file.format": "orc"})
    core.write(name, [(10, 1), (20, 2)])


def of_history(history: History) -> Callable[[Core, str], None]:
    """Return a writer of a table of a merge engine."""

    def fill(core: Core, name: str) -> None:
        options = {"bucket": "1", "write-only": "true", "file.format": "avro", "snapshot.num-retained.min": "1000"}
        core.create(name, history.columns, history.keys, options | history.options)
        for changes in history.commits:
            core.change(name, changes)
        if history.later:
            core.replace_options(name, history.later)
        if history.compact:
            core.compact(name, [0])

    return fill


def aggregates_lookup(core: Core, name: str) -> None:
    """Write an aggregating table whose lookup producer compacts every commit: a level holds what lower ones had."""
    options = {"merge-engine": "aggregation", "changelog-producer": "lookup", "file.format": "avro", "bucket": "1"}
    options |= {"fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "listagg"}
    options |= {"num-sorted-run.compaction-trigger": "4", "snapshot.num-retained.min": "1000"}
    core.create(name, {"k": "INT NOT NULL", "n": "BIGINT", "v": "STRING"}, "k", options)
    for changes in lookup_commits():
        core.change(name, changes)


def first_row_ignore_delete(core: Core, name: str) -> None:
    """Write a first-row table that passes over deletes, compacted and not."""
    options = {"merge-engine": "first-row", "ignore-delete": "true", "file.format": "avro", "bucket": "1"}
    core.create(name, {"k": "INT NOT NULL", "v": "STRING", "n": "BIGINT"}, "k", options)
    core.change(name, [("+I", (1, "a", Long(1))), ("+I", (2, None, None)), ("-D", (3, "x", None))])
    core.change(name, [("-D", (1, "a", Long(1))), ("+I", (2, "b", Long(2))), ("+I", (3, "c", None))])
    core.change(name, [("+I", (3, "C", Long(3))), ("+I", (1, "A", Long(9))), ("+U", (4, "d", None))])


TABLES: dict[str, tuple[str, Callable[[Core, str], None]]] = {
    "written_by_1_4": ("UTC", written_by_1_4),
    "manifests_orc_1_4": ("UTC", manifests_1_4("orc")),
    "manifests_parquet_1_4": ("UTC", manifests_1_4("parquet")),
    "evolution_nested": ("UTC", evolution_nested),
    "partition_names": ("UTC", partition_names),
    "ltz_orc_utc": ("UTC", ltz_orc),
    "ltz_orc_tokyo": ("Asia/Tokyo", ltz_orc),
    "orc_hive_names": ("UTC", orc_hive_names),
    "char_orc": ("UTC", char_orc),
    "char_orc_keyed": ("UTC", char_orc_keyed),
    **tables_of_branches.TABLES,
    **tables_of_files.TABLES,
    "aggregates_lookup": ("UTC", aggregates_lookup),
    "first_row_ignore_delete": ("UTC", first_row_ignore_delete),
    **{name: ("UTC", of_history(history)) for name, history in HISTORIES.items()},
}


def judge(core: Core, name: str) -> None:
    """Write down the rows of every version, tag and branch."""
    _judge(core, name, DATA / "expected" / "paimon" / name)
    if name == "blobs":
        describe(core, name)
    if name in tables_of_files.TRACKED:
        _judge(core, name, DATA / "expected" / "row_ids" / name, "$row_tracking")


def describe(core: Core, name: str) -> None:
    """Write down where the blobs of every version of a table are: key, file, offset, length."""
    paimon, found = core.paimon, {}
    path = paimon.fs.Path((DATA / "paimon" / name).as_uri())
    table = paimon.table.FileStoreTableFactory.create(paimon.fs.local.LocalFileIO.create(), path)
    for _, _, version, _ in expect.versions(DATA / "paimon" / name):
        one = table.copy({"scan.snapshot-id": version, "blob-as-descriptor": "true"})
        builder = paimon.table.source.ReadBuilderImpl(one)
        reader = builder.newRead()
        rows = found[version] = []
        for split in builder.newScan().plan().splits():
            records = paimon.reader.RecordReaderIterator(reader.createReader(split))
            while records.hasNext():
                row = records.next()
                blob = None if row.isNullAt(1) else row.getBlob(1).toDescriptor()
                place = [blob.uri().rsplit("/", 1)[1], blob.offset(), blob.length()] if blob else None
                rows.append([row.getInt(0), place])
            records.close()
    folder = DATA / "expected" / "blob_descriptors"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(found) + "\n")


def _judge(core: Core, name: str, folder: Path, kind: str = "") -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, suffix, version, extra in expect.versions(DATA / "paimon" / name):
        whole = (name if "tag" in extra else name + suffix) + kind
        body = {**extra, **_answer(core, whole, version, tagged="tag" in extra), "source": SOURCE}
        (folder / file).write_text(json.dumps(body, ensure_ascii=False) + "\n")


def _answer(core: Core, name: str, version: str, *, tagged: bool) -> dict[str, Any]:
    try:
        chosen = {"scan__tag_name": version.strip("'")} if tagged else {"scan__snapshot_id": version}
        rows = core.read(name, **chosen)
    except Py4JJavaError as error:
        return {"outcome": "error", "message": str(error.java_exception.getMessage()).splitlines()[0]}
    return {"outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows)}


def main() -> None:
    """Write every table, each in a Java process of its own, and have it read there."""
    for name in sys.argv[2:] or TABLES:
        zone, fill = TABLES[name]
        with tempfile.TemporaryDirectory() as folder:
            core = Core(sys.argv[1], Path(folder), zone)
            try:
                fill(core, name)
                shutil.rmtree(DATA / "paimon" / name, ignore_errors=True)
                make_samples.clean_copy(core.warehouse / "d.db" / name, DATA / "paimon" / name)
                judge(core, name)
            except Exception:  # noqa: BLE001 - one table that fails must not stop the others
                pass
            core.close()


if __name__ == "__main__":
    main()
