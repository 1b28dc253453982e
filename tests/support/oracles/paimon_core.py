"""Paimon's Java core in this process, through JPype: `make_paimon_java.Core` with values of every type.

Rows that are written and read are Python values, led by the column's type: a timestamp is a whole number of
nanoseconds since 1970, a date of days, a time of milliseconds; a row is a tuple, a map a list of pairs, a multiset a
list of element and count, a variant JSON text; the others are what Python has for them.
"""

from __future__ import annotations

import decimal
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jpype
import pyarrow as pa
import pyspark
from jpype import JException

from tests.scripts import make_paimon_java
from tests.scripts.tables_of_merges import Sketch
from tests.support import java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

JARS = ("hadoop-client", "slf4j-api", "snappy-java", "commons-logging", "zstd-jni", "log4j")
"""The first words of the jars of PySpark that Paimon's bundle needs."""
_NUMBERS = {
    "BOOLEAN": (jpype.JBoolean, bool, pa.bool_()),
    "TINYINT": (jpype.JByte, int, pa.int8()),
    "SMALLINT": (jpype.JShort, int, pa.int16()),
    "INTEGER": (jpype.JInt, int, pa.int32()),
    "DATE": (jpype.JInt, int, pa.date32()),
    "TIME_WITHOUT_TIME_ZONE": (jpype.JInt, int, pa.time32("ms")),
    "BIGINT": (jpype.JLong, int, pa.int64()),
    "FLOAT": (jpype.JFloat, float, pa.float32()),
    "DOUBLE": (jpype.JDouble, float, pa.float64()),
}
_WORDS = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY")
_MOMENTS = ("TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_WITH_LOCAL_TIME_ZONE")


class Core(make_paimon_java.Core):
    """Paimon's Java core over one warehouse, in this process: one for each process."""

    def __init__(self, bundle: Path, folder: Path) -> None:  # the parent's would start a process of its own
        spark = Path(pyspark.__file__).parent / "jars"
        jars = [*bundle.glob("*.jar"), *(jar for jar in spark.glob("*.jar") if jar.name.startswith(JARS))]
        options = [
            "-Xmx1g",
            *java.SHORT_LIVED,
            "-Duser.timezone=UTC",
            "-Duser.name=lake",
            "-Dlog4j2.level=ERROR",
        ]
        jpype.startJVM(*options, classpath=[str(jar) for jar in jars], convertStrings=True)
        self.gateway = SimpleNamespace(
            jvm=SimpleNamespace(org=jpype.JPackage("org"), java=jpype.JPackage("java")),
            new_array=lambda kind, length: jpype.JArray(kind)(length),
        )
        self.paimon = self.gateway.jvm.org.apache.paimon
        self.warehouse = folder / "warehouse"
        context = self.paimon.options.Options()
        context.set("warehouse", self.warehouse.as_uri())
        self.catalog = self.paimon.catalog.CatalogFactory.createCatalog(
            self.paimon.catalog.CatalogContext.create(context)
        )
        self.catalog.createDatabase("d", True)  # noqa: FBT003 - Java knows no arguments by name

    def tick(self) -> None:
        """Leave the clock alone."""

    @contextmanager
    def clock_of(self, zone: str) -> Iterator[None]:
        """Have the process live in a time zone for a while, then in UTC again."""
        zones = jpype.java.util.TimeZone
        zones.setDefault(zones.getTimeZone(zone))
        try:
            yield
        finally:
            zones.setDefault(zones.getTimeZone("UTC"))

    def alter(self, name: str, *changes: Any) -> None:
        """Change the schema."""
        self.catalog.alterTable(self.paimon.catalog.Identifier.create("d", name), _listed(changes), False)  # noqa: FBT003

    def change(
        self,
        name: str,
        changes: Sequence[tuple[Any, ...]],
        *,
        overwrite: dict[str, str] | None = None,
        table: Any = None,
    ) -> None:
        """Commit changes: a row kind, the values and, for tables with dynamic buckets, the bucket."""
        table = table or self.table(name)
        builder = self.paimon.table.sink.BatchWriteBuilderImpl(table)
        if overwrite is not None:
            builder = builder.withOverwrite(overwrite)
        writer = builder.newWrite()
        writer.withIOManager(self.paimon.disk.IOManager.create(str(self.warehouse)))
        encode = encoder(self.paimon, table.rowType())
        for kind, values, *bucket in changes:
            record = encode(values)
            record.setRowKind(self.paimon.types.RowKind.fromShortString(kind))
            writer.write(record, *map(jpype.JInt, bucket))
        self.commit(builder, writer)

    def write(
        self, name: str, rows: Sequence[tuple[Any, ...]], *, delete: bool = False, table: Any = None, **_: Any
    ) -> None:
        """Commit rows as inserts or deletes; through `table`, if given."""
        self.change(name, [("-D" if delete else "+I", row) for row in rows], table=table)

    def compact_all(self, name: str, *, full: bool) -> None:
        """Compact every bucket of a table; of one without a key and without buckets, all files of a partition."""
        table = self.table(name, write_only="false")
        places = {}
        for entry in table.store().newScan().plan().files():
            if entry.bucket() >= 0:
                places.setdefault((entry.partition().hashCode(), entry.bucket()), []).append(entry)
        if not table.primaryKeys() and table.coreOptions().bucket() < 0:
            return self._compact_files(table, [[one.file() for one in entries] for entries in places.values()], places)
        builder = self.paimon.table.sink.BatchWriteBuilderImpl(table)
        writer = builder.newWrite()
        writer.withIOManager(self.paimon.disk.IOManager.create(str(self.warehouse)))
        for (_, bucket), entries in places.items():
            writer.compact(entries[0].partition(), jpype.JInt(bucket), full)
        return self.commit(builder, writer)

    def _compact_files(self, table: Any, files: list[list[Any]], places: dict[Any, list[Any]]) -> None:
        kinds = self.paimon.append
        task = getattr(kinds, "AppendCompactTask", None) or kinds.UnawareAppendCompactionTask
        writer = table.store().newWrite("compaction")
        if table.options().get("row-tracking.enabled") == "true":
            writer.withWriteType(self.paimon.table.SpecialFields.rowTypeWithRowTracking(table.rowType()))
        messages = [
            task(entries[0].partition(), _listed(some)).doCompact(table, writer)
            for some, entries in zip(files, places.values(), strict=True)
            if len(some) > 1
        ]
        commit = self.paimon.table.sink.BatchWriteBuilderImpl(table).newCommit()
        commit.commit(_listed(messages))
        commit.close()
        writer.close()

    def record(self, name: str, names: Sequence[str], values: tuple[Any, ...]) -> Any:
        """Return some columns of a row of a table in Paimon's own form."""
        kind = self.table(name).rowType()
        chosen = [values[kind.getFieldNames().index(one)] for one in names]
        return encoder(self.paimon, kind.project(list(names)))(chosen)

    def refusal(self, step: Callable[[], Any]) -> str:
        """Take a step; return why Paimon refused it, and nothing if it did not."""
        try:
            step()
        except JException as error:
            return str(error).splitlines()[0]
        return ""

    def row(self, values: Any) -> Any:
        """Return a row in Paimon's own form; one that is in it is itself."""
        return super().row(values) if isinstance(values, tuple) else values

    def value(self, value: Any) -> Any:
        """Return a value in Paimon's own form; a whole number is an int, if it fits and is not told to be a long."""
        if isinstance(value, int) and not isinstance(value, bool):
            short = -(2**31) <= value < 2**31 and not isinstance(value, make_paimon_java.Long)
            return jpype.JInt(value) if short else jpype.JLong(int(value))
        return super().value(value)

    def read(self, name: str, **options: str) -> pa.Table:
        """Return the rows that the core reads."""
        builder = self.table(name, **options).newReadBuilder()
        kind = builder.readType()
        decode, fields = decoder(self.paimon, kind), list(kind.getFields())
        rows = builder.newRead().createReader(builder.newScan().plan())
        got = []
        iterator = self.paimon.reader.RecordReaderIterator(rows)
        while iterator.hasNext():
            got.append(decode(iterator.next()))
        iterator.close()
        columns = [
            pa.array([row[index] for row in got], arrow_type(field.type())) for index, field in enumerate(fields)
        ]
        return pa.Table.from_arrays(columns, names=[field.name() for field in fields])


def _listed(values: Iterable[Any]) -> Any:
    listed = jpype.java.util.ArrayList()
    for value in values:
        listed.add(value)
    return listed


def arrow_type(kind: Any) -> pa.DataType:  # noqa: PLR0911 - one case for each kind of type
    """Return the Arrow type that holds decoded values."""
    root = kind.getTypeRoot().toString()
    if root in _NUMBERS:
        return _NUMBERS[root][2]
    if root in _WORDS:
        return pa.string()
    if root in _MOMENTS:
        unit = "ns" if kind.getPrecision() > 6 else "us"
        return pa.timestamp(unit, "UTC" if root == _MOMENTS[1] else None)
    match root:
        case "ROW":
            return pa.struct([(field.name(), arrow_type(field.type())) for field in kind.getFields()])
        case "ARRAY":
            return pa.list_(arrow_type(kind.getElementType()))
        case "MAP":
            return pa.map_(arrow_type(kind.getKeyType()), arrow_type(kind.getValueType()))
        case "MULTISET":
            return pa.map_(arrow_type(kind.getElementType()), pa.int32())
        case "DECIMAL":
            return pa.decimal256(76, kind.getScale())  # a sum may have more digits than its type
        case "VARIANT":
            return pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    return pa.binary()


def encoder(paimon: Any, kind: Any) -> Callable[[Any], Any]:
    """Return a function from a Python value to Paimon's own form of a type."""
    make = _encoder(paimon, kind)
    return lambda value: None if value is None else make(value)


def _encoder(paimon: Any, kind: Any) -> Callable[[Any], Any]:  # noqa: PLR0911 - one case for each kind of type
    root, data = kind.getTypeRoot().toString(), paimon.data
    if root in _NUMBERS:
        return _NUMBERS[root][0]
    if root in _WORDS:
        return data.BinaryString.fromString
    if root in _MOMENTS:
        return lambda nanos: data.Timestamp.fromEpochMillis(nanos // 10**6, jpype.JInt(nanos % 10**6))
    match root:
        case "DECIMAL":
            precision, scale = kind.getPrecision(), kind.getScale()
            number = jpype.java.math.BigDecimal
            return lambda value: data.Decimal.fromBigDecimal(
                number(str(getattr(value, "number", value))), precision, scale
            )
        case "ROW":
            fields = [encoder(paimon, field.type()) for field in kind.getFields()]
            return lambda values: _row(data, fields, values)
        case "ARRAY":
            element = encoder(paimon, kind.getElementType())
            return lambda values: data.GenericArray(_objects(map(element, values)))
        case "MAP" | "MULTISET":
            key, value = (encoder(paimon, side) for side in _sides(paimon, kind))
            return lambda pairs: _map(data, [(key(one), value(other)) for one, other in _pairs(pairs)])
        case "VARIANT":
            return data.variant.GenericVariant.fromJson
        case "BLOB":
            return data.BlobData
    return lambda value: _bytes(paimon, value)


def _bytes(paimon: Any, value: bytes | Sketch) -> Any:
    if not isinstance(value, Sketch):
        return jpype.JArray(jpype.JByte)(value)
    made = getattr(paimon.utils, value.kind)
    wide = value.kind == "RoaringBitmap64"
    numbers = jpype.JArray(jpype.JLong if wide else jpype.JInt)(value.numbers)
    return made.bitmapOf(numbers).serialize() if value.kind.startswith("Roaring") else made.sketchOf(numbers)


def _sides(paimon: Any, kind: Any) -> tuple[Any, Any]:
    if kind.getTypeRoot().toString() == "MULTISET":
        return kind.getElementType(), paimon.types.DataTypes.INT()
    return kind.getKeyType(), kind.getValueType()


def _row(data: Any, fields: list[Callable[[Any], Any]], values: Sequence[Any]) -> Any:
    record = data.GenericRow(len(fields))
    for index, (field, value) in enumerate(zip(fields, values, strict=True)):
        record.setField(index, field(value))
    return record


def _objects(values: Any) -> Any:
    listed = list(values)
    array = jpype.JArray(jpype.java.lang.Object)(len(listed))
    for index, value in enumerate(listed):
        array[index] = value
    return array


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _map(data: Any, pairs: list[tuple[Any, Any]]) -> Any:
    entries = jpype.java.util.HashMap()
    for key, value in pairs:
        entries.put(key, value)
    return data.GenericMap(entries)


def decoder(paimon: Any, kind: Any) -> Callable[[Any], Any]:
    """Return a function from Paimon's own form of a type to a value that Arrow takes."""
    make = _decoder(paimon, kind)
    return lambda value: None if value is None else make(value)


def _decoder(paimon: Any, kind: Any) -> Callable[[Any], Any]:  # noqa: PLR0911 - one case for each kind of type
    root, data = kind.getTypeRoot().toString(), paimon.data
    if root in _NUMBERS:
        return _NUMBERS[root][1]
    if root in _WORDS:
        return lambda value: str(value.toString())
    if root in _MOMENTS:
        digits = 1 if kind.getPrecision() > 6 else 1000
        return lambda value: (value.getMillisecond() * 10**6 + value.getNanoOfMillisecond()) // digits
    match root:
        case "DECIMAL":
            return lambda value: decimal.Decimal(str(value.toString()))
        case "ROW":
            getters = [
                (data.InternalRow.createFieldGetter(field.type(), index), decoder(paimon, field.type()))
                for index, field in enumerate(kind.getFields())
            ]
            return lambda row: tuple(decode(getter.getFieldOrNull(row)) for getter, decode in getters)
        case "ARRAY":
            return _array_decoder(paimon, kind.getElementType())
        case "MAP" | "MULTISET":
            key, value = (_array_decoder(paimon, side) for side in _sides(paimon, kind))
            return lambda pairs: list(zip(key(pairs.keyArray()), value(pairs.valueArray()), strict=True))
        case "VARIANT":
            return lambda value: (bytes(value.value()), bytes(value.metadata()))
        case "BLOB":
            return lambda value: bytes(value.toData())
    return bytes


def _array_decoder(paimon: Any, kind: Any) -> Callable[[Any], list[Any]]:
    getter, decode = paimon.data.InternalArray.createElementGetter(kind), decoder(paimon, kind)
    return lambda array: [decode(getter.getElementOrNull(array, index)) for index in range(array.size())]
