"""Plan the splits of a version: which file slices to read, which to skip, and which to read together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.core.records import Predicate, ReadPlan, Split
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.files.data_files import BaseFile
from snapshot_explorer.formats.hudi.files.log_files import HudiLogFile
from snapshot_explorer.formats.hudi.metadata.file_groups import StoredFile, records
from snapshot_explorer.formats.hudi.metadata.file_names import LogName, log_name
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.types import HudiField
from snapshot_explorer.formats.hudi.scan.merge_rules import merge_rules
from snapshot_explorer.formats.hudi.scan.partitions import partition_texts, partition_values, typed_columns
from snapshot_explorer.formats.hudi.scan.plans import HudiPlan, LogMerge
from snapshot_explorer.formats.hudi.scan.record_keys import record_keys
from snapshot_explorer.formats.skipped import skipped_frame

_TARGET_BYTES = 128 * 2**20
_OPEN_BYTES = 4 * 2**20
_BOOTSTRAP = 1
"""The instant of files that have only the keys of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFiles:
    """The files and settings from which the splits of a version are planned."""

    config: TableConfig
    """The table's properties."""
    version: int
    fields: tuple[HudiField, ...]
    files: pa.Table
    """STORED."""
    committed_before: int | None
    """Blocks of instants before this one are included too; None if all commits are known."""
    schema_on_read: bool
    """Whether columns are found by ids."""
    has_one_type_per_column: bool
    """Whether all files have the types of these columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    partition: str
    file_id: str
    base: StoredFile | None
    logs: tuple[StoredFile, ...]

    @property
    def files(self) -> tuple[StoredFile, ...]:
        return self.logs if self.base is None else (self.base, *self.logs)


def plan(source: VersionFiles, predicate: Predicate | None = None) -> ReadPlan:
    """Return the splits of the rows of a version, and the files that the predicate skips by their partitions.

    Reads nothing.
    """
    check_readable(source)
    slices = _slices(source.files)
    members: dict[str, list[_Slice]] = {}
    for item in slices:
        members.setdefault(item.partition, []).append(item)
    partitions = sorted(members)
    texts = [partition_texts(source.config, path) for path in partitions]
    passes = _passing(source.config, source.fields, texts, predicate)
    splits: list[Split] = []
    for index, path in enumerate(partitions):
        if passes[index]:
            splits += _splits(source, path, members[path])
    return ReadPlan(splits=tuple(splits), skipped=lambda: _skipped_files(source.files, partitions, texts, passes))


def in_partitions(
    config: TableConfig, fields: Sequence[HudiField], files: pa.Table, predicate: Predicate | None
) -> pa.Table:
    """Return the files of a version, STORED, in partitions that might match the predicate."""
    if predicate is None:
        return files
    partitions = pc.unique(files.column("partition"))
    texts = [partition_texts(config, path) for path in partitions.to_pylist()]
    chosen = partitions.filter(pa.array(_passing(config, fields, texts, predicate)))
    return files.filter(pc.is_in(files.column("partition"), value_set=chosen))


def check_readable(source: VersionFiles) -> None:
    """Check that the rows of a version can be read."""
    if source.schema_on_read and len(source.files):
        raise refusal(features.SCHEMA_ON_READ, version=source.version)
    is_bootstrapped = bool(source.config.text("hoodie.bootstrap.base.path"))
    bases = source.files.filter(pc.invert(source.files.column("is_log")))
    bootstrapped = bases.filter(pc.equal(bases.column("slice"), _BOOTSTRAP))
    if is_bootstrapped and len(bootstrapped):
        raise refusal(features.BOOTSTRAPPED_FILES, path=bootstrapped.column("path")[0].as_py())
    others = bases.filter(pc.invert(pc.match_substring_regex(bases.column("path"), r"\.(parquet|orc)$")))
    if len(others):
        raise refusal(features.OTHER_BASE_FILES, path=others.column("path")[0].as_py())


def _slices(files: pa.Table) -> list[_Slice]:
    groups: dict[tuple[str, str], list[StoredFile]] = {}
    for file in records(files):
        groups.setdefault((file.partition, file.file_id), []).append(file)
    return [
        _Slice(
            partition=partition,
            file_id=file_id,
            base=next((file for file in members if not file.is_log), None),
            logs=tuple(sorted((file for file in members if file.is_log), key=_log_order)),
        )
        for (partition, file_id), members in groups.items()
    ]


def _log_order(file: StoredFile) -> tuple[bool, LogName | str]:
    name = log_name(file.path.rpartition("/")[2])
    return (True, file.path) if name is None else (False, name)


def _passing(
    config: TableConfig,
    fields: Sequence[HudiField],
    texts: Sequence[Mapping[str, str | None]],
    predicate: Predicate | None,
) -> npt.NDArray[np.bool_]:
    passes = np.ones(len(texts), np.bool_)
    if predicate is None or not texts:
        return passes
    columns = typed_columns(config, fields, texts)
    part = predicate.on(frozenset(columns)) if columns else None
    if part is None:
        return passes
    return np.asarray(part.mask(pa.table(columns)).to_numpy(zero_copy_only=False), np.bool_)


def _skipped_files(
    files: pa.Table,
    partitions: Sequence[str],
    texts: Sequence[Mapping[str, str | None]],
    passes: npt.NDArray[np.bool_],
) -> pa.Table:
    index = pc.index_in(files.column("partition"), value_set=pa.array(partitions, pa.string()))
    of_files = index.to_numpy().astype(np.int64)
    reasons = np.full(len(files), None, np.object_)
    reasons[~passes[of_files]] = "partition"
    return skipped_frame(files.select(["rows", "size_bytes"]), reasons, partitions=texts, of_files=of_files)


def slice_splits(source: VersionFiles) -> dict[tuple[str, str], Split]:
    """Return a split for each file slice of a version, by the path of its partition and its file group.

    Raises: as `plan`.
    """
    check_readable(source)
    shares: dict[str, _Partition] = {}
    splits = {}
    for item in _slices(source.files):
        if item.partition not in shares:
            shares[item.partition] = _partition(source, item.partition)
        bases = [] if item.base is None else [item.base]
        splits[item.partition, item.file_id] = _split(source, shares[item.partition], bases, item.logs)
    return splits


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partition:
    """The values that the splits of a partition share."""

    texts: Mapping[str, str | None]
    constants: tuple[tuple[str, pa.Scalar], ...]


def _partition(source: VersionFiles, path: str) -> _Partition:
    return _Partition(
        texts=partition_texts(source.config, path),
        constants=tuple(partition_values(source.config, source.fields, path).items()),
    )


def _splits(source: VersionFiles, path: str, slices: Sequence[_Slice]) -> Iterator[Split]:
    partition = _partition(source, path)
    bases = [item.base for item in slices if item.base is not None and not item.logs]
    for files in pack(bases, lambda file: max(file.size_bytes or 0, _OPEN_BYTES), target=_TARGET_BYTES):
        yield _split(source, partition, files, ())
    for item in slices:
        if item.logs:
            yield _split(source, partition, [] if item.base is None else [item.base], item.logs)


def _split(
    source: VersionFiles, partition: _Partition, bases: Sequence[StoredFile], logs: Sequence[StoredFile]
) -> Split:
    """Return a split of base files without log files, or of one slice."""
    files = (*bases, *logs)
    counts = [file.rows for file in files]
    known = [count for count in counts if count is not None]
    rows = sum(known) if len(known) == len(counts) else None
    return Split(
        files=tuple(file.path for file in files),
        raw=not logs and source.has_one_type_per_column,
        partition=partition.texts,
        bucket=None,
        rows=rows,
        size_bytes=sum(file.size_bytes or 0 for file in files),
        live_rows=None if logs else rows,
        detail=HudiPlan(
            bases=tuple(BaseFile(path=file.path, size_bytes=file.size_bytes, rows=file.rows) for file in bases),
            merge=_merge(source, logs) if logs else None,
            fields=source.fields,
            partition=partition.constants,
        ),
    )


def _merge(source: VersionFiles, logs: Sequence[StoredFile]) -> LogMerge:
    rules, keys = merge_rules(source.config), record_keys(source.config, source.fields)
    if source.config.drops_partition_columns:
        needed = {*rules.ordering_fields, *(field.name for field in keys.columns)}
        missing = needed.intersection(source.config.partition_fields)
        if missing:
            raise refusal(features.DROPPED_PARTITION_COLUMNS, columns=", ".join(sorted(missing)), path=logs[0].path)
    return LogMerge(
        logs=tuple(
            HudiLogFile(
                path=file.path,
                size_bytes=file.size_bytes,
                # Up to table version 7 rollbacks append to log files.
                may_have_grown=not source.config.has_completion_times,
                commits=tuple(time for time in file.commits if time <= source.version),
                committed_before=source.committed_before,
            )
            for file in logs
        ),
        rules=rules,
        keys=keys,
    )
