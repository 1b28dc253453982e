"""Data files as Arrow: parquet, ORC and Avro under the schema that they were written with.

Whatever the file's physical types, a column comes out in exactly the Arrow type of its Paimon type.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow import int96, orc_tail
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.nesting import plain, with_entries, with_fields, with_items
from snapshot_explorer.arrow.positions import bare
from snapshot_explorer.errors import (
    CorruptTableError,
    MissingFileError,
    SnapshotExplorerError,
    UnsupportedFeatureError,
)
from snapshot_explorer.formats.avro.container import read_container
from snapshot_explorer.formats.corrupt_files import unreadable
from snapshot_explorer.formats.paimon.files.deletion_vectors import Vector
from snapshot_explorer.formats.paimon.metadata.schema import DataType, Field, arrow_field, arrow_type, spell
from snapshot_explorer.storage import Storage
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

_BATCH_ROWS = 65_536
_UTC_NAMES = frozenset(("", "UTC", "GMT", "Z", "UCT", "Zulu", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Universal"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """What reading one data file needs of its manifest entry. Picklable."""

    path: str
    """Its path for `Storage.open`."""
    format: str
    """parquet, orc or avro; blob for the values of a blob column, which `blobs` reads."""
    schema_id: int
    """The schema that it was written with."""
    rows: int
    """Physical rows."""
    size_bytes: int
    """Size of the file."""
    level: int
    """Level of the merge tree."""
    min_sequence: int
    """Least sequence number of its rows."""
    max_sequence: int
    """Greatest sequence number of its rows."""
    deleted_rows: int | None
    """Rows of kind -U or -D; None where the writer did not count them."""
    write_columns: tuple[str, ...] | None
    """Its physical columns; None for all columns of its schema."""
    first_row_id: int | None = None
    """The id of its first row; None where rows have none, or the file itself holds them."""
    vector: Vector | None = None
    """Where its deletion vector is; None where all its rows count."""


def batches(
    storage: Storage, file: DataFile, fields: Sequence[Field], *, legacy_zones: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data file, in file order.

    Args:
        storage: Where the file is.
        file: The file.
        fields: The columns, as the file's own schema has them. No others are read, but for Avro.
        legacy_zones: Whether ORC files hold TIMESTAMP_LTZ as clock times of the writer's zone
            (`orc.timestamp-ltz.legacy.type`): then a zone other than UTC is warned of.

    Yields:
        Batches with a column per field, named and typed like it; without fields, batches of rows only.

    Raises:
        CorruptTableError: The file is missing, damaged, lacks a column, or has another number of rows than its
            manifest says; the message names it.
        UnsupportedFeatureError: The file is encrypted, or holds what Arrow cannot.
    """
    log.debug("reading %s of %s (%s bytes)", [field.name for field in fields], file.path, file.size_bytes)
    reader = {"parquet": _parquet, "orc": _orc, "avro": _avro}[file.format]
    given = 0
    with _translated(file):
        for batch in reader(storage, file, fields, legacy_zones=legacy_zones):
            given += batch.num_rows
            yield _conformed(batch, file, fields)
    # A damaged file may say one number of rows and give another.
    _check_rows(file, given)


def check_schema(storage: Storage, file: DataFile, fields: Sequence[Field]) -> None:
    """Refuse a file that holds none of the columns that its own schema names, and others. Opens it.

    Raises:
        CorruptTableError: It is so, or the file is missing or damaged; the message names it.
    """
    with _translated(file):
        there = _names(storage, file)
    own = [field.name for field in fields if file.write_columns is None or field.name in file.write_columns]
    if file.rows and there and own and not set(own).intersection(there):
        raise CorruptTableError(
            f"The data file {file.path} has {file.rows} rows and none of the columns that schema/schema-"
            f"{file.schema_id} names, by which it was written. It may have been overwritten, or the schema file; "
            "compare both with a copy of the table."
        )


def _names(storage: Storage, file: DataFile) -> Sequence[str]:
    """Return what the columns in a file are called."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time
    from pyarrow import orc  # noqa: PLC0415 - likewise

    with storage.open(file.path) as source:
        if file.format == "parquet":
            names: Sequence[str] = pq.ParquetFile(source).schema_arrow.names
            return names
        if file.format == "orc":
            orc_tail.check_types(source)
            return [str(name) for name in orc.ORCFile(source).schema.names]
        container = read_container(source.read(), file.path, {})
    return [str(field["name"]) for field in orjson.loads(container.spelled)["fields"]]


@contextmanager
def _translated(file: DataFile) -> Iterator[None]:
    """Turn what pyarrow and Avro raise into errors that name the file."""
    try:
        yield
    except MissingFileError as error:
        raise CorruptTableError(
            f"The data file {file.path} is not there. The version may have expired while it was read, or the file "
            "was removed by hand. Try a newer version."
        ) from error
    except SnapshotExplorerError:
        raise
    except (pa.ArrowException, CorruptBytesError, OSError, ValueError, LookupError, OverflowError) as error:
        raise unreadable(file.path, file.format, error) from error


def _check_rows(file: DataFile, rows: int) -> None:
    if rows != file.rows:
        raise CorruptTableError(
            f"The data file {file.path} has {rows} rows, but its manifest says {file.rows}. "
            "It may have been overwritten; compare it with a copy of the table."
        )


def _check_names(file: DataFile, there: Sequence[str], fields: Sequence[Field]) -> None:
    known = frozenset(there)
    for field in fields:
        if field.name not in known:
            raise CorruptTableError(
                f"The data file {file.path} has no column {field.name!r}, which schema/schema-{file.schema_id} names."
            )


def _bare_batches(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _BATCH_ROWS):
        yield bare(min(_BATCH_ROWS, rows - start))


def _parquet(
    storage: Storage, file: DataFile, fields: Sequence[Field], *, legacy_zones: bool
) -> Iterator[pa.RecordBatch]:
    del legacy_zones  # an ORC matter
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    with storage.open(file.path) as source:
        reader = pq.ParquetFile(source, page_checksum_verification=True)
        _check_rows(file, reader.metadata.num_rows)
        _check_names(file, reader.schema_arrow.names, fields)
        if not fields:
            yield from _bare_batches(file.rows)
            return
        if any(reader.schema.column(index).physical_type == "INT96" for index in range(len(reader.schema))):
            reader = pq.ParquetFile(source, metadata=int96.bytes_metadata(source), page_checksum_verification=True)
        yield from reader.iter_batches(_BATCH_ROWS, columns=[field.name for field in fields])


def _orc(storage: Storage, file: DataFile, fields: Sequence[Field], *, legacy_zones: bool) -> Iterator[pa.RecordBatch]:
    from pyarrow import orc  # noqa: PLC0415 - likewise

    with storage.open(file.path) as source:
        orc_tail.check_types(source)
        reader = orc.ORCFile(source)
        _check_rows(file, reader.nrows)
        _check_names(file, reader.schema.names, fields)
        if not fields:
            yield from _bare_batches(file.rows)
            return
        if legacy_zones and any(_has_zone(field.type) for field in fields):
            _warn_of_zone(storage, file)
        # pyarrow takes a dot in a name for a path into a struct: then all columns are read.
        names = [field.name for field in fields]
        wanted = None if any("." in name for name in names) else names
        for index in range(reader.nstripes):
            yield reader.read_stripe(index, columns=wanted)


def _warn_of_zone(storage: Storage, file: DataFile) -> None:
    """Say so where ORC holds TIMESTAMP_LTZ by the clock of another zone than UTC.

    Paimon stores the clock time in UTC as if it were one of the JVM's zone, and reads it back so: which instant
    comes out depends on the zone of the reader's JVM. Here it is what comes out where that zone is UTC.
    """
    with storage.open(file.path) as tail:
        zone = orc_tail.writer_zone(tail)
    if zone not in _UTC_NAMES:
        log.warning(
            "%s holds times by the clock of %s (orc.timestamp-ltz.legacy.type): its TIMESTAMP_LTZ columns are given as "
            "Paimon gives them in a JVM whose zone is UTC, and differ from what it gives in %s",
            file.path,
            zone,
            zone,
        )


def _has_zone(kind: DataType) -> bool:
    """Return whether a TIMESTAMP_LTZ is in a type."""
    parts = [part for part in (kind.key, kind.element) if part] + [field.type for field in kind.fields]
    return kind.root == "TIMESTAMP_LTZ" or any(_has_zone(part) for part in parts)


def _avro(storage: Storage, file: DataFile, fields: Sequence[Field], *, legacy_zones: bool) -> Iterator[pa.RecordBatch]:
    from snapshot_explorer.formats.paimon.files import avro_rows  # noqa: PLC0415 - likewise, for fastavro

    del legacy_zones
    with storage.open(file.path) as source:
        container = read_container(source.read(), file.path, {}, limits=storage.limits)
    _check_rows(file, container.rows)
    if fields:
        yield from avro_rows.batches(container, fields, _BATCH_ROWS)
    else:
        yield from _bare_batches(file.rows)


def _conformed(batch: pa.RecordBatch, file: DataFile, fields: Sequence[Field]) -> pa.RecordBatch:
    """Return the batch with exactly the fields, each in the Arrow type of its Paimon type."""
    if not fields:
        return batch
    columns = []
    for field in fields:
        try:
            columns.append(conform(batch.column(field.name), field.type, is_orc=file.format == "orc"))
        except (pa.ArrowException, KeyError) as error:
            if "out of range" in str(error):
                raise
            raise CorruptTableError(
                f"The column {field.name!r} of the data file {file.path} cannot be read as {spell(field.type)}: "
                f"{error}."
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([_nullable(field) for field in fields]))


def _nullable(field: Field) -> pa.Field:
    return arrow_field(field).with_nullable(True)  # noqa: FBT003 - pyarrow's own signature


def conform(values: pa.Array, kind: DataType, *, is_orc: bool = False) -> pa.Array:
    """Return physical values in the Arrow type of a Paimon type; structs are matched by field name.

    Args:
        values: What the file's reader gave.
        kind: The type in the file's schema.
        is_orc: Whether they are of an ORC file: blanks at the end of a CHAR are the file's, not the value's.

    Raises:
        pyarrow.ArrowException: The values are not of the type.
        KeyError: A struct lacks a field.

    Source: orc StringExpr.rightTrimAndTruncate, by which Paimon's own reader gives them.
    """
    values, wanted = plain(values), arrow_type(kind)
    if kind.root in ("ROW", "VARIANT"):
        return _conform_struct(values, kind, wanted, is_orc=is_orc)
    if kind.root in ("MAP", "MULTISET"):
        keys, items = (kind.element, DataType(root="INT")) if kind.root == "MULTISET" else (kind.key, kind.element)
        if not isinstance(values, pa.MapArray) or keys is None or items is None:
            raise pa.ArrowTypeError(f"it is {values.type}")
        children = (conform(values.keys, keys, is_orc=is_orc), conform(values.items, items, is_orc=is_orc))
        return with_entries(values, wanted, *children)
    if kind.root == "ARRAY" and kind.element:
        if not isinstance(values, pa.ListArray):
            values = values.cast(pa.list_(values.type.value_type))
        return with_items(values, wanted, conform(values.values, kind.element, is_orc=is_orc))
    if pa.types.is_timestamp(wanted):
        return _conform_timestamp(values, wanted)
    if kind.root in ("TIME", "DATE") and pa.types.is_int32(values.type):
        return values.view(wanted)
    if is_orc and kind.root in ("CHAR", "VARCHAR"):
        values.validate(full=True)  # the reader of ORC does not look whether text is UTF-8
    if is_orc and kind.root == "CHAR":
        values = pc.utf8_rtrim(values, " ")
    return values if values.type == wanted else values.cast(wanted)


def _conform_struct(values: pa.Array, kind: DataType, wanted: pa.StructType, *, is_orc: bool) -> pa.Array:
    if not isinstance(values, pa.StructArray):
        raise pa.ArrowTypeError(f"it is {values.type}")
    there = {item.name: index for index, item in enumerate(values.type)}
    fields = kind.fields
    if kind.root == "VARIANT":
        if set(there) != {"value", "metadata"}:
            raise UnsupportedFeatureError(f"Shredded VARIANT columns ({', '.join(there)}) are not read.")
        fields = tuple(
            Field(id=0, name=item.name, type=DataType(root="VARBINARY", length=2_147_483_647)) for item in wanted
        )
    children = [conform(values.field(there[field.name]), field.type, is_orc=is_orc) for field in fields]
    return with_fields(values, wanted, children)


def _conform_timestamp(values: pa.Array, wanted: pa.TimestampType) -> pa.Array:
    """Return timestamps in the wanted unit; the wanted zone is set, as files of one meaning differ in it."""
    if pa.types.is_int64(values.type):
        return values.view(wanted)
    if pa.types.is_fixed_size_binary(values.type):
        values = int96.timestamps(values)
    if not pa.types.is_timestamp(values.type):
        raise pa.ArrowTypeError(f"it is {values.type}")
    return values.view(pa.timestamp(values.type.unit)).cast(pa.timestamp(wanted.unit)).view(wanted)
