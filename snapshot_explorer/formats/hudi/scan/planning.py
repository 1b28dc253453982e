"""Plan the splits of a version: which file slices to read, which to skip, and which to read together."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.group_ids import group_ids
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
    bases: tuple[BaseFile, ...]
    """Its base file, if it has one."""
    logs: tuple[StoredFile, ...]


def plan(source: VersionFiles, predicate: Predicate | None = None) -> ReadPlan:
    """Return the splits of the rows of a version, and the files that the predicate skips by their partitions.

    Reads nothing.
    """
    check_readable(source)
    pruned = _pruned(source.config, source.fields, source.files, predicate)
    files = pruned.of(source.files)
    groups = from_numpy(group_ids([files.column("partition"), files.column("file_id")]))
    has_logs = pc.is_in(groups, value_set=groups.filter(single_chunk(files.column("is_log"))))
    bases: dict[str, list[BaseFile]] = {}
    names = ("partition", "path", "size_bytes", "rows")
    without_logs = files.select(names).filter(pc.invert(has_logs))
    for partition, path, size_bytes, rows in zip(
        *(without_logs.column(name).to_pylist() for name in names), strict=True
    ):
        bases.setdefault(partition, []).append(BaseFile(path=path, size_bytes=size_bytes, rows=rows))
    slices: dict[str, list[_Slice]] = {}
    for item in _slices(files.filter(has_logs)):
        slices.setdefault(item.partition, []).append(item)
    splits: list[Split] = []
    for path in itertools.compress(pruned.partitions, pruned.passes):
        splits += _splits(source, path, bases.get(path, ()), slices.get(path, ()))
    return ReadPlan(splits=tuple(splits), skipped=lambda: _skipped_files(source.files, pruned))


def in_partitions(
    config: TableConfig, fields: Sequence[HudiField], files: pa.Table, predicate: Predicate | None
) -> pa.Table:
    """Return the files of a version, STORED, in partitions that might match the predicate."""
    return _pruned(config, fields, files, predicate).of(files)


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
            bases=tuple(
                BaseFile(path=file.path, size_bytes=file.size_bytes, rows=file.rows)
                for file in members
                if not file.is_log
            )[:1],
            logs=tuple(sorted((file for file in members if file.is_log), key=_log_order)),
        )
        for (partition, file_id), members in groups.items()
    ]


def _log_order(file: StoredFile) -> tuple[bool, LogName | str]:
    name = log_name(file.path.rpartition("/")[2])
    return (True, file.path) if name is None else (False, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pruned:
    """The partitions of a version, and which of them might match a predicate."""

    partitions: Sequence[str]
    """Their paths, ascending."""
    texts: Sequence[Mapping[str, str | None]]
    passes: npt.NDArray[np.bool_]

    def of(self, files: pa.Table) -> pa.Table:
        """Return the files in partitions that pass."""
        if self.passes.all():
            return files
        passing = pa.array(itertools.compress(self.partitions, self.passes), pa.string())
        return files.filter(pc.is_in(files.column("partition"), value_set=passing))


def _pruned(config: TableConfig, fields: Sequence[HudiField], files: pa.Table, predicate: Predicate | None) -> _Pruned:
    partitions = sorted(pc.unique(files.column("partition")).to_pylist())
    texts = [partition_texts(config, path) for path in partitions]
    passes = np.ones(len(partitions), np.bool_)
    columns = typed_columns(config, fields, texts) if predicate is not None and partitions else {}
    part = predicate.on(frozenset(columns)) if predicate is not None and columns else None
    if part is not None:
        passes = np.asarray(part.mask(pa.table(columns)).to_numpy(zero_copy_only=False), np.bool_)
    return _Pruned(partitions=partitions, texts=texts, passes=passes)


def _skipped_files(files: pa.Table, pruned: _Pruned) -> pa.Table:
    index = pc.index_in(files.column("partition"), value_set=pa.array(pruned.partitions, pa.string()))
    of_files = index.to_numpy().astype(np.int64)
    reasons = np.full(len(files), None, np.object_)
    reasons[~pruned.passes[of_files]] = "partition"
    sizes = files.select(["rows", "size_bytes"])
    return skipped_frame(sizes, reasons, partitions=pruned.texts, of_files=of_files)


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
        splits[item.partition, item.file_id] = _split(source, shares[item.partition], item.bases, item.logs)
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


def _splits(source: VersionFiles, path: str, bases: Sequence[BaseFile], slices: Sequence[_Slice]) -> Iterator[Split]:
    """Yield the splits of a partition: base files without log files together, each slice with log files alone."""
    partition = _partition(source, path)
    for files in pack(bases, lambda file: max(file.size_bytes or 0, _OPEN_BYTES), target=_TARGET_BYTES):
        yield _split(source, partition, files, ())
    for item in slices:
        yield _split(source, partition, item.bases, item.logs)


def _split(source: VersionFiles, partition: _Partition, bases: Sequence[BaseFile], logs: Sequence[StoredFile]) -> Split:
    """Return a split of base files without log files, or of one slice."""
    files: Sequence[BaseFile | StoredFile] = (*bases, *logs)
    counts = [file.rows for file in files]
    known = [count for count in counts if count is not None]
    rows = sum(known) if len(known) == len(counts) else None
    return Split(
        files=tuple(file.path for file in files),
        raw=not logs and source.has_one_type_per_column,
        partition=partition.texts,
        rows=rows,
        size_bytes=sum(file.size_bytes or 0 for file in files),
        live_rows=None if logs else rows,
        detail=HudiPlan(
            bases=tuple(bases),
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
