"""Reads data files as Arrow: Parquet, ORC and Avro under the schema that they were written with.

Whatever the file's physical types, each column has exactly the Arrow type of its Paimon type.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import int96, orc_tail, orc_timestamps, parquet_footers, variants, vectors
from snapshot_explorer.arrow.chunks import under
from snapshot_explorer.arrow.nesting import as_list, parts_of, plain, with_parts
from snapshot_explorer.arrow.positions import batches_without_columns
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Predicate
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import row_groups
from snapshot_explorer.formats.avro.container import read_container
from snapshot_explorer.formats.corrupt_files import (
    absent_file_error,
    check_rows,
    check_size,
    column_named_in_errors,
    named_in_errors,
)
from snapshot_explorer.formats.files import variant_columns
from snapshot_explorer.formats.files.orc_file import OrcFile
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.paimon.files.deletion_vectors import PaimonVector
from snapshot_explorer.formats.paimon.metadata.data_types import (
    PaimonDataType,
    PaimonField,
    arrow_field,
    arrow_type,
    type_text,
)
from snapshot_explorer.storage import Storage

if TYPE_CHECKING:
    import pyarrow.parquet as pq

log = logger_of(__name__)

_BATCH_ROWS = 65_536
_MICROS_OR_COARSER = frozenset(pa.timestamp(unit, zone) for unit in ("s", "ms", "us") for zone in (None, "UTC"))


class PaimonDataFile(NamedTuple):
    """A data file to read, from its manifest entry. Picklable. A tuple, since there may be a million."""

    path: str
    format: str
    """parquet, orc or avro; blob for a blob file, which `blobs` reads."""
    schema_id: int
    rows: int
    """Physical rows."""
    size_bytes: int
    level: int
    min_sequence: int
    max_sequence: int
    deleted_rows: int | None
    """Rows of kind -U or -D; None if not recorded."""
    write_columns: tuple[str, ...] | None
    """Its physical columns; None for all columns of its schema."""
    first_row_id: int | None = None
    """The id of its first row; None if rows have no ids, or the file contains them."""
    vector: PaimonVector | None = None
    """The location of its deletion vector; None if all its rows are live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupSelection:
    """The row groups of a Parquet file to read; files of other formats are read whole."""

    keep: Positions | None = None
    """Positions of the rows that are needed, ascending: row groups with one of them are read. None is all."""
    predicate: Predicate | None = None
    """A condition: row groups whose statistics rule out each row are not read."""
    names: Mapping[str, str]
    """The file's names of the predicate's columns whose values are returned as stored in the file."""


class PaimonColumns:
    """Columns that are read from one file after another."""

    def __init__(
        self, fields: Sequence[PaimonField], schema: pa.Schema | None = None, *, target: pa.Schema | None = None
    ) -> None:
        """Start without a file.

        Args:
            fields: The columns, from the schema that the files were written with.
            schema: The schema of the batches, with the Arrow types of the fields; None for their names, all nullable.
            target: The schema to which the batches are converted. The size of its vectors limits their rows.
        """
        self.fields = fields
        self.names = [field.name for field in fields]
        self.schema = pa.schema([_nullable(field) for field in fields]) if schema is None else schema
        self.target = self.schema if target is None else target

    def conform_batch(self, batch: pa.RecordBatch, file: PaimonDataFile) -> pa.RecordBatch:
        """Return a batch with exactly these columns, each in the Arrow type of its Paimon type."""
        if not self.fields:
            return batch
        # The other formats also need conversions that depend on the file.
        are_exact = file.format == "parquet" and self._are_exact(batch.schema)
        if are_exact:
            return under(self.schema, batch)
        return pa.RecordBatch.from_arrays(_conformed(batch, file, self.fields), schema=self.schema)

    def _are_exact(self, schema: pa.Schema) -> bool:
        return (
            schema.names == self.names
            and len(set(self.names)) == len(self.names)
            and schema.types == self.schema.types
            and not any(pa.types.is_nested(dtype) for dtype in schema.types)
        )


def batches(
    storage: Storage,
    file: PaimonDataFile,
    columns: PaimonColumns,
    *,
    legacy_zones: bool,
    chosen: RowGroupSelection | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a data file in file order, each batch after the position of its first row.

    Args:
        columns: The columns, from the file's own schema. Other columns are not read, except in Avro files.
        legacy_zones: Whether ORC files store TIMESTAMP_LTZ in the writer's local time
            (`orc.timestamp-ltz.legacy.type`). Then a zone other than UTC logs a warning.
        chosen: The row groups of a Parquet file to read; None for all.

    Yields:
        Batches with the schema of the columns; without fields, batches of rows without columns.
    """
    log.debug("reading %s of %s (%s bytes)", columns.names, file.path, file.size_bytes)
    with _translate_errors(file):
        if file.format == "parquet":
            numbered_batches = _parquet(storage, file, columns, chosen)
        else:
            readers: Mapping[str, Callable[..., Iterator[pa.RecordBatch]]] = {"orc": _orc, "avro": _avro}
            numbered_batches = _with_positions(
                readers[file.format](storage, file, columns.fields, legacy_zones=legacy_zones), file
            )
        for start, batch in numbered_batches:
            at = start
            for portion in vectors.portions(batch, columns.target):
                yield at, columns.conform_batch(portion, file)
                at += portion.num_rows


def _with_positions(
    batches: Iterator[pa.RecordBatch], file: PaimonDataFile, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield consecutive rows of a file, each batch after the position of its first row."""
    end = file.rows if end is None else end
    for batch in batches:
        yield start, batch
        start += batch.num_rows
    # The number of rows in a damaged file's footer may differ from the rows read.
    _check_rows(file, file.rows - end + start)


def check_schema(storage: Storage, file: PaimonDataFile, fields: Sequence[PaimonField]) -> None:
    """Raise for a file that contains columns, but none of its own schema. Opens the file."""
    with _translate_errors(file):
        stored_names = _names(storage, file)
    own = [field.name for field in fields if file.write_columns is None or field.name in file.write_columns]
    if file.rows and stored_names and own and not set(own).intersection(stored_names):
        raise CorruptTableError(
            f"The data file {file.path} has {file.rows} rows and none of the columns of schema/schema-"
            f"{file.schema_id}, with which it was written. The file or the schema file may have been overwritten; "
            "compare both with a copy of the table."
        )


def _names(storage: Storage, file: PaimonDataFile) -> Sequence[str]:
    with open_data_file(storage, file) as source:
        if file.format == "parquet":
            names: Sequence[str] = parquet_footers.open_file(source).schema_arrow.names
            return names
        if file.format == "orc":
            return [str(name) for name in OrcFile(source).schema.names]
        container = read_container(source.read(), file.path, {})
    from snapshot_explorer.formats.paimon.files import avro_rows  # noqa: PLC0415 - likewise, for fastavro

    return avro_rows.names(container)


@contextmanager
def open_data_file(storage: Storage, file: PaimonDataFile) -> Iterator[pa.NativeFile]:
    """Open a data file or a blob file until the end of the block."""
    with storage.open(file.path, size_bytes=file.size_bytes) as source:
        check_size(f"The data file {file.path}", source.size(), file.size_bytes, by="its manifest")
        yield source


def _translate_errors(file: PaimonDataFile) -> AbstractContextManager[None]:
    return named_in_errors(file.path, file.format, partial(absent_file_error, f"The data file {file.path}"))


def _check_rows(file: PaimonDataFile, rows: int) -> None:
    check_rows(f"The data file {file.path}", rows, file.rows, by="its manifest")


def _check_names(file: PaimonDataFile, stored_names: Sequence[str], fields: Sequence[PaimonField]) -> None:
    known = frozenset(stored_names)
    for field in fields:
        if field.name not in known:
            raise CorruptTableError(
                f"The data file {file.path} has no column {field.name!r} of schema/schema-{file.schema_id}."
            )


def _parquet(
    storage: Storage, file: PaimonDataFile, columns: PaimonColumns, chosen: RowGroupSelection | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    with open_data_file(storage, file) as source:
        parquet = open_parquet(source)
        _check_rows(file, parquet.reader.metadata.num_rows)
        _check_names(file, parquet.reader.schema_arrow.names, columns.fields)
        if not columns.fields:
            yield from _with_positions(batches_without_columns(file.rows), file)
            return
        for groups, start, rows in _runs(parquet.reader, columns, chosen):
            yield from _with_positions(parquet.batches(columns.names, groups, rows), file, start, start + rows)


def _runs(
    reader: "pq.ParquetFile", columns: PaimonColumns, chosen: RowGroupSelection | None
) -> Iterator[row_groups.Run]:
    if chosen is None or chosen.predicate is None:
        yield from row_groups.runs(reader.metadata, None if chosen is None else chosen.keep)
        return
    types = dict(zip(columns.names, columns.schema.types, strict=True))
    stored = {name: reader.schema_arrow.field(index) for name, index in chosen.names.items()}
    as_stored = {
        name: stored_field for name, stored_field in stored.items() if stored_field.type == types[stored_field.name]
    }
    matching = row_groups.matching(reader.metadata, as_stored, chosen.predicate)
    yield from row_groups.runs(reader.metadata, chosen.keep, matching)


def _orc(
    storage: Storage, file: PaimonDataFile, fields: Sequence[PaimonField], *, legacy_zones: bool
) -> Iterator[pa.RecordBatch]:
    with open_data_file(storage, file) as source:
        reader = OrcFile(source)
        _check_rows(file, reader.rows)
        _check_names(file, reader.schema.names, fields)
        if legacy_zones and any(field.type.has("TIMESTAMP_LTZ") for field in fields):
            _warn_of_zone(storage, file)
        micros = {field.name for field in fields if arrow_type(field.type) in _MICROS_OR_COARSER}
        yield from reader.batches([field.name for field in fields], micros)


def _warn_of_zone(storage: Storage, file: PaimonDataFile) -> None:
    """Log a warning if an ORC file stores TIMESTAMP_LTZ in the local time of a zone other than UTC.

    Paimon stores the UTC time as if it were in the JVM's zone, and reads it in the same way: the instant that it
    returns depends on the zone of the reader's JVM. This package returns the instant of a JVM in UTC.
    """
    with open_data_file(storage, file) as tail:
        zone = orc_tail.writer_zone(tail)
    if zone not in orc_timestamps.UTC_NAMES:
        storage.warn_once(
            log,
            "%s stores times in the local time of %s (orc.timestamp-ltz.legacy.type): its TIMESTAMP_LTZ columns are "
            "read as in a JVM whose zone is UTC, and differ from those of a JVM in %s",
            file.path,
            zone,
            zone,
        )


def _avro(
    storage: Storage, file: PaimonDataFile, fields: Sequence[PaimonField], *, legacy_zones: bool
) -> Iterator[pa.RecordBatch]:
    from snapshot_explorer.formats.paimon.files import avro_rows  # noqa: PLC0415 - likewise, for fastavro

    del legacy_zones
    with open_data_file(storage, file) as source:
        container = read_container(source.read(), file.path, {}, limits=storage.limits)
    _check_rows(file, container.rows)
    if fields:
        yield from avro_rows.batches(container, fields, _BATCH_ROWS)
    else:
        yield from batches_without_columns(file.rows)


def _conformed(batch: pa.RecordBatch, file: PaimonDataFile, fields: Sequence[PaimonField]) -> list[pa.Array]:
    columns = []
    for field in fields:
        with column_named_in_errors(
            field.name, type_text(field.type), f"the data file {file.path}", distant_times=True
        ):
            columns.append(conform(batch.column(field.name), field.type, is_orc=file.format == "orc"))
    return columns


def _nullable(field: PaimonField) -> pa.Field:
    return arrow_field(field).with_nullable(True)  # noqa: FBT003 - pyarrow's own signature


def conform(values: pa.Array, data_type: PaimonDataType, *, is_orc: bool = False) -> pa.Array:
    """Return physical values in the Arrow type of a Paimon type. Struct fields are matched by name.

    Args:
        is_orc: Whether they are from an ORC file: trailing blanks of a CHAR are padding then.

    Raises:
        pyarrow.ArrowException: The values have another type.
        KeyError: A struct lacks a field.

    Source: orc StringExpr.rightTrimAndTruncate, which Paimon's own reader uses.
    """
    values, target = plain(values), arrow_type(data_type)
    if data_type.root in ("ROW", "MAP", "MULTISET", "ARRAY"):
        names = {part.name: index for index, part in enumerate(parts_of(values.type))}
        result = with_parts(values, target, partial(_part, data_type, names, is_orc=is_orc))
        if result is None:
            raise pa.ArrowTypeError(f"it is {values.type}")
        return result
    if data_type.root == "VARIANT":
        if not variants.is_group(values.type):
            raise pa.ArrowTypeError(f"it is {values.type}")
        return variant_columns.unshred_variants(values, target)
    if data_type.root == "VECTOR" and data_type.element:
        values = as_list(values)
        return vectors.from_lists(values, target, conform(values.values, data_type.element))
    if pa.types.is_timestamp(target):
        return _conform_timestamp(values, target)
    if data_type.root in ("TIME", "DATE") and pa.types.is_int32(values.type):
        return values.view(target)
    if is_orc and data_type.root == "CHAR":
        values = pc.utf8_rtrim(values, " ")
    return values if values.type == target else values.cast(target)


def _part(
    data_type: PaimonDataType, names: Mapping[str, int], index: int, stored: Sequence[pa.Array], *, is_orc: bool
) -> pa.Array:
    """Return a part of nested values, by its name in rows."""
    if data_type.root == "ROW":
        field = data_type.fields[index]
        return conform(stored[names[field.name]], field.type, is_orc=is_orc)
    counts = PaimonDataType(root="INT")
    parts = {"MAP": (data_type.key, data_type.element), "MULTISET": (data_type.element, counts)}
    part = parts.get(data_type.root, (data_type.element,))[index]
    if part is None:
        raise pa.ArrowTypeError(f"it is a {data_type.root} without a type of its parts")
    return conform(stored[index], part, is_orc=is_orc)


def _conform_timestamp(values: pa.Array, target: pa.TimestampType) -> pa.Array:
    """Return timestamps in the unit and zone of the type. The zone in the file is ignored: writers differ in it."""
    if pa.types.is_int64(values.type):
        return values.view(target)
    if pa.types.is_fixed_size_binary(values.type):
        values = int96.timestamps(values)
    if not pa.types.is_timestamp(values.type):
        raise pa.ArrowTypeError(f"it is {values.type}")
    return values.view(pa.timestamp(values.type.unit)).cast(pa.timestamp(target.unit)).view(target)
