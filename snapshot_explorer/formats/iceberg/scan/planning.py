"""Planning of the files to read for a version's rows, with their deletes, and of the files to skip."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Predicate, ReadPlan, Split
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.deletes.equality import EqualityColumn, check_columns
from snapshot_explorer.formats.iceberg.deletes.index import PUFFIN, DeleteIndex, Deletes
from snapshot_explorer.formats.iceberg.files.data_files import FORMATS, File, FileFormat
from snapshot_explorer.formats.iceberg.files.field_ids import id_rules, maps_names
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, walk
from snapshot_explorer.formats.iceberg.metadata.entries import (
    LIVE,
    POSITION_DELETES,
    IcebergLiveFiles,
    VersionMetadata,
    known_rows,
)
from snapshot_explorer.formats.iceberg.metadata.partition_tuples import PartitionTuples
from snapshot_explorer.formats.iceberg.metadata.partitions import (
    MatchingPartitions,
    PartitionColumn,
    Spec,
    partition_columns,
    partition_texts,
    spec_with,
)
from snapshot_explorer.formats.iceberg.metadata.schema import IcebergSchema, arrow_schema, parse_schema
from snapshot_explorer.formats.iceberg.scan.plans import FIRST_WITH_ROW_IDS, Context, IcebergPlan, context_key
from snapshot_explorer.formats.iceberg.scan.statistics import NEEDED, bounds
from snapshot_explorer.formats.skipped import add_groups, by_statistics, frame_of, skipped_groups
from snapshot_explorer.formats.spatial import SPATIAL

_CODE_BITS = 32
_NEVER_RAW = ("uuid", "variant", "unknown", *SPATIAL)
_NEVER_RAW_ORC = ("time", "fixed", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
"""Types that other readers of the file return as another type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergPartitions:
    """The distinct partitions of live files, over all specs."""

    specs: Mapping[int, Spec]
    columns: Mapping[int, Sequence[PartitionColumn]]
    """The typed values of each spec's distinct partitions."""
    texts: tuple[Mapping[str, str | None], ...]
    """All distinct partitions as text, spec after spec."""
    starts: Mapping[int, int]
    """The index of each spec's first partition among all partitions."""

    def indices(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the index of partitions among all, from the codes that `_codes` returns."""
        spec_ids, numbers = codes >> _CODE_BITS, codes & (1 << _CODE_BITS) - 1
        for spec_id, start in self.starts.items():
            numbers[spec_ids == spec_id] += start
        return numbers


def partitions_of(
    metadata: VersionMetadata, schemas: Sequence[IcebergSchema], live: IcebergLiveFiles
) -> IcebergPartitions:
    """Return the distinct partitions of a version's files.

    Args:
        schemas: Schemas that may have columns that the current one no longer has.
    """
    current = parse_schema(metadata.current_schema)
    specs, columns, starts = {}, {}, {}
    texts: list[Mapping[str, str | None]] = []
    for spec_id, stored in live.partitions.items():
        specs[spec_id] = spec_with(metadata.specs, spec_id)
        columns[spec_id] = partition_columns(specs[spec_id], current, stored, schemas)
        starts[spec_id] = len(texts)
        texts.extend(partition_texts(columns[spec_id], len(stored)))
    return IcebergPartitions(specs=specs, columns=columns, texts=tuple(texts), starts=starts)


def plan(metadata: VersionMetadata, predicate: Predicate | None = None) -> ReadPlan:
    """Return the splits of the rows of a version, and what the predicate skips.

    A split is a data file with its deletes. Files are skipped by partition and by bounds, all from manifests: no data
    file and no delete file is opened. Skipped files are in memory only with the manifests that are read with them.
    """
    schema = parse_schema(metadata.schema)
    arrow_schema(schema)  # refuses types that are not read
    schemas = [parse_schema(raw) for _, raw in sorted(metadata.schemas.items())] or [schema]
    others = (schema, *reversed(schemas))
    pruning = None if predicate is None else _Pruning(metadata, schema, others, predicate)
    live = metadata.live(*(((), _readable) if pruning is None else (NEEDED, pruning.select)))
    _readable(live.deletes)
    partitions = partitions_of(metadata, others, live)
    context = context_of(metadata, schema, schemas, live)
    return ReadPlan(
        splits=tuple(_splits(live.data, live, context, partitions)),
        skipped=frames.SKIPPED.empty_table if pruning is None else partial(pruning.skipped, partitions),
    )


def _readable(files: pa.Table, tuples: PartitionTuples | None = None) -> pa.Table:  # noqa: ARG001 - a `Select`
    """Return files, after a check that all can be read."""
    encrypted = files.filter(pc.is_valid(files.column("key_metadata")))
    if len(encrypted):
        raise refusal(features.ENCRYPTED_DATA, path=encrypted.column("path")[0].as_py())
    known = pc.is_in(files.column("file_format"), value_set=pa.array(FORMATS))
    is_vector = pc.and_(
        pc.equal(files.column("file_format"), PUFFIN), pc.equal(files.column("content"), POSITION_DELETES)
    )
    others = files.filter(pc.invert(pc.or_(known, is_vector)))
    if len(others):
        raise refusal(
            features.OTHER_FILE_FORMATS,
            path=others.column("path")[0].as_py(),
            file_format=others.column("file_format")[0].as_py(),
        )
    return files


def context_of(
    metadata: VersionMetadata, schema: IcebergSchema, schemas: Sequence[IcebergSchema], live: IcebergLiveFiles
) -> Context:
    """Return the context that all splits of a version share.

    Args:
        schemas: All schemas of the table, oldest first.
    """
    rules = id_rules(metadata.properties, schemas)
    are_stored = _names_are_stored(schema, schemas)
    return Context(
        schema=schema,
        rules=rules,
        equality=_equality_columns(live, schema, schemas),
        has_row_ids=metadata.format_version >= FIRST_WITH_ROW_IDS,
        names_are_stored=rules.mapping is None and are_stored,
        names_are_mapped=rules.mapping is not None and are_stored and maps_names(rules.mapping, schema.fields),
        key=context_key(schema, rules),
    )


def _equality_columns(
    live: IcebergLiveFiles, schema: IcebergSchema, schemas: Sequence[IcebergSchema]
) -> dict[int, EqualityColumn]:
    """Return the columns that equality deletes compare, from the version's schema or the newest schema with the column.

    Source: iceberg specification, "Equality Delete Files".
    """
    ids = pc.unique(pc.list_flatten(live.deletes.column("equality_ids"))).drop_null().to_pylist()
    result = {}
    for number in ids:
        path = next((path for item in (schema, *reversed(schemas)) if (path := item.path(number))), ())
        if not path:
            raise CorruptTableError(
                f"An equality delete file compares the column with the id {number}, which no schema of the table has. "
                "The manifest or the metadata file may be damaged; compare them with a copy of the table."
            )
        result[number] = EqualityColumn(path=path)
    check_columns(result.values())
    return result


def _names_are_stored(schema: IcebergSchema, schemas: Sequence[IcebergSchema]) -> bool:
    """Return whether the fields of a schema have no defaults and never had other names or types.

    Other fields must not have had their names either.
    """
    if any(field.initial_default is not None for field in walk(schema.fields)):
        return False
    by_path = dict(_by_path(schema.fields))
    by_id = {field.id: path for path, field in by_path.items()}
    for item in schemas:
        for path, field in _by_path(item.fields):
            same = by_path.get(path)
            if by_id.get(field.id, path) != path or (same is not None and not _is_alike(same, field)):
                return False
    return True


def _by_path(
    fields: Sequence[IcebergField], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], IcebergField]]:
    for field in fields:
        path = (*above, field.name)
        yield path, field
        yield from _by_path(field.type.fields, path)


def _is_alike(field: IcebergField, other: IcebergField) -> bool:
    """Return whether two fields have the same id and type, without regard to nested fields."""
    return field.id == other.id and replace(field.type, fields=()) == replace(other.type, fields=())


class _Pruning:
    """The selection of the data files that a condition does not rule out, and the counts of the others."""

    def __init__(
        self, metadata: VersionMetadata, schema: IcebergSchema, others: Sequence[IcebergSchema], predicate: Predicate
    ) -> None:
        current = parse_schema(metadata.current_schema)
        self._matching = MatchingPartitions(metadata.specs, current, schema, predicate, others)
        self._specs = metadata.specs
        self._fields = [field for field in schema.fields if field.name in predicate.columns]
        self._predicate = predicate
        self._skipped: list[pa.Table] = []

    def select(self, files: pa.Table, tuples: PartitionTuples) -> pa.Table:
        """Return the files in which a row might match, without statistics."""
        _readable(files)
        reasons = np.full(len(files), None, np.object_)
        reasons[~self._matching.of(files, tuples)] = "partition"
        left = np.flatnonzero(reasons == None).astype(np.int64)  # noqa: E711 - element by element
        if len(left):
            candidates = files if len(left) == len(files) else files.take(pa.array(left))
            reasons[left] = self._by_bounds(candidates, tuples)
        is_read = reasons == None  # noqa: E711 - element by element
        if not is_read.all():
            counts = pa.table({"rows": known_rows(files), "size_bytes": files.column("size_bytes")})
            add_groups(self._skipped, skipped_groups(counts, reasons, of_files=_codes(files)))
        return files.select(LIVE.names).filter(pa.array(is_read))

    def _by_bounds(self, files: pa.Table, tuples: PartitionTuples) -> list[str | None]:
        constant = {  # the value in the spec takes precedence over bounds
            field.source_ids[0]
            for spec_id in tuples.specs
            for field in spec_with(self._specs, spec_id).fields
            if field.transform.name == "identity"
        }
        known = bounds(files, [field for field in self._fields if field.id not in constant])
        return by_statistics(self._predicate, known)

    def skipped(self, partitions: IcebergPartitions) -> pa.Table:
        """Return the SKIPPED frame."""
        groups = [
            group.set_column(0, "position", pa.array(partitions.indices(group.column("position").to_numpy())))
            for group in self._skipped
        ]
        return frame_of(groups, partitions.texts)


def _codes(files: pa.Table) -> npt.NDArray[np.int64]:
    """Return a number for each file's partition: its spec, and its number within it."""
    spec_ids, numbers = (np.asarray(files.column(name).to_numpy(), np.int64) for name in ("spec_id", "partition"))
    return (spec_ids << _CODE_BITS) | numbers


def _splits(
    files: pa.Table, live: IcebergLiveFiles, context: Context, partitions: IcebergPartitions
) -> Iterator[Split]:
    unpartitioned = {spec_id for spec_id, spec in partitions.specs.items() if spec.is_unpartitioned}
    index = DeleteIndex(live.deletes, unpartitioned)
    constants: dict[tuple[int, int], Mapping[int, pa.Scalar]] = {}
    ids: dict[tuple[int, int], frozenset[int]] = {}
    raw_formats = _raw_formats(context)
    names = (
        "path",
        "location",
        "file_format",
        "spec_id",
        "partition",
        "record_count",
        "has_confirmed_rows",
        "size_bytes",
        "has_doubted_size",
        "sequence_number",
        "first_row_id",
    )
    columns = [files.column(name).to_pylist() for name in names]
    for (
        path,
        location,
        file_format,
        spec_id,
        partition,
        record_count,
        is_confirmed,
        size_bytes,
        has_doubted_size,
        number,
        first_row_id,
    ) in zip(*columns, strict=True):
        key = (spec_id, partition)
        if key not in constants:
            constants[key] = _constants(partitions.columns[spec_id], partition)
            ids[key] = frozenset(constants[key])
        deletes = index.of(path, spec_id, partition, number)
        file = File(
            location=location,
            format=cast("FileFormat", file_format),
            rows=record_count if is_confirmed else None,
            size_bytes=None if has_doubted_size else size_bytes,
            constants=ids[key],
        )
        rows = None if is_confirmed is False else record_count
        is_whole = not (deletes.vector or deletes.positions or deletes.equality)
        yield Split(
            files=(location,),
            raw=is_whole and file_format in raw_formats and not constants[key],
            partition=partitions.texts[partitions.starts[spec_id] + partition],
            rows=rows,
            size_bytes=size_bytes,
            live_rows=_live_row_count(rows, deletes),
            delete_files=deletes.locations,
            detail=IcebergPlan(
                path=path,
                file=file,
                sequence_number=number,
                first_row_id=first_row_id,
                spec_id=spec_id,
                constants=constants[key],
                deletes=deletes,
                context=context,
            ),
        )


def _constants(columns: Sequence[PartitionColumn], partition: int) -> dict[int, pa.Scalar]:
    """Return the values of the identity fields of a partition, by the id of their source column.

    Source: `PartitionUtil.constantsMap`, which takes them from the partition also where the file has the column.
    """
    return {
        column.field.source_ids[0]: column.values[partition]
        for column in columns
        if column.field.transform.name == "identity" and column.type is not None
    }


def _live_row_count(rows: int | None, deletes: Deletes) -> int | None:
    """Return the number of live rows of a file; None if the metadata does not contain it."""
    if rows is None or deletes.equality or deletes.positions:
        return None
    left = rows - deletes.vector.cardinality if deletes.vector is not None else rows
    return left if left >= 0 else None


def _raw_formats(context: Context) -> frozenset[str]:
    """Return the formats of files whose rows any reader returns correctly for the version."""
    if not context.names_are_stored:
        return frozenset()
    fields: list[IcebergField] = list(walk(context.schema.fields))
    roots = {field.type.root for field in fields}
    if roots.intersection(_NEVER_RAW):
        return frozenset()
    return frozenset(("parquet",)) if roots.intersection(_NEVER_RAW_ORC) else frozenset(("parquet", "orc"))
