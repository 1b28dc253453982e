"""Rows of many Avro files as Arrow: files of one schema are decoded together, which is faster for small files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.avro.arrow_values import pair_type
from snapshot_explorer.formats.avro.columns import decode_rows
from snapshot_explorer.formats.avro.container import (
    Container,
    Fixed,
    Items,
    Primitive,
    Record,
    Shape,
    Union,
)

Broken = Callable[[str, str], CorruptTableError]
"""Returns the error for a file, from its path and a problem."""

Rows = TypeVar("Rows", pa.StructArray, pa.Table)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedFiles:
    """Files of one schema."""

    files: tuple[int, ...]
    """Their indices among those requested."""
    containers: tuple[Container, ...]
    rows: pa.StructArray
    """The rows of all these files, in order."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of rows of each file."""
        return tuple(container.rows for container in self.containers)


def decode(
    containers: Mapping[int, Container],
    target_of: Callable[[Container], pa.StructType],
    *,
    batch_bytes: int,
    broken: Broken,
) -> Iterator[DecodedFiles]:
    """Yield the rows of Avro files. Files with the same schema are combined up to `batch_bytes`.

    Args:
        containers: The files by index.
        target_of: Returns the fields to read of a file and of all with its schema. A field that they lack is null.
    """
    groups: dict[bytes, list[int]] = {}
    for index, container in containers.items():
        groups.setdefault(container.schema_text, []).append(index)
    for group in groups.values():
        first = containers[group[0]]
        target = target_of(first)
        _check(first.shape, target, partial(broken, first.path))
        for indices in pack(
            group, lambda index: sum(len(block) for _, block in containers[index].blocks), target=batch_bytes
        ):
            batch = tuple(containers[index] for index in indices)
            yield DecodedFiles(files=tuple(indices), containers=batch, rows=_decode(batch, target, broken))


def _decode(files: Sequence[Container], target: pa.StructType, broken: Broken) -> pa.StructArray:
    blocks = [block for file in files for block in file.blocks]
    try:
        return decode_rows(blocks, files[0].shape, target)
    except (CorruptBytesError, pa.ArrowException) as error:
        resources.check(error, f"{files[0].path} could not be read")
        if len(files) > 1:
            # One of them is corrupt: decode each to find out which.
            return pa.concat_arrays([_decode([file], target, broken) for file in files])
        raise broken(files[0].path, str(error)) from error


def in_order(rows: Rows, files: Sequence[int], counts: npt.NDArray[np.int64]) -> Rows:
    """Return rows in the order of their files.

    Args:
        rows: The rows of one file after another.
        files: The indices of these files.
        counts: The number of rows of each file, by its index.
    """
    decoded = np.array(files, np.int64)
    if (decoded[1:] > decoded[:-1]).all():
        return rows
    begins = np.zeros(len(counts), np.int64)
    begins[decoded] = np.cumsum(counts[decoded]) - counts[decoded]
    indices = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    return rows.take(pa.array(indices))


def _check(shape: Shape, target: pa.DataType, broken: Callable[[str], CorruptTableError], name: str = "") -> None:
    """Check that values of a shape can be read as an Arrow type."""
    match shape:
        case Union(branches):
            for branch in branches:
                _check(branch, target, broken, name)
        case Record(fields) if pa.types.is_struct(target):
            _check_record(dict(fields), target, broken, name)
        case Items(item, keyed=False) if pa.types.is_map(target) or pa.types.is_list(target):
            _check(item, pair_type(target) if pa.types.is_map(target) else target.value_type, broken, name)
        case Primitive(avro_type) if _holds(avro_type, target):
            pass
        case Fixed() if pa.types.is_binary(target):
            pass
        case _ if not pa.types.is_null(target):
            expected = "record" if pa.types.is_struct(target) else target
            raise broken(f"its field {name or 'at the top'} is not of type {expected}")


def _check_record(
    fields: Mapping[str, Shape], target: pa.StructType, broken: Callable[[str], CorruptTableError], name: str
) -> None:
    for part in target:
        if part.name in fields:
            _check(fields[part.name], part.type, broken, f"{name}.{part.name}" if name else part.name)
        elif not part.nullable:
            raise broken(f"it has no field {part.name}")


def _holds(avro_type: str, target: pa.DataType) -> bool:
    if avro_type in ("int", "long"):
        return bool(pa.types.is_integer(target) or pa.types.is_timestamp(target))
    if avro_type in ("bytes", "string"):
        return bool(pa.types.is_binary(target) or pa.types.is_string(target))
    if avro_type == "boolean":
        return bool(pa.types.is_boolean(target))
    return avro_type == "null" or bool(pa.types.is_floating(target))
