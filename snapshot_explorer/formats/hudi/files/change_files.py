"""Change data: log files in which a commit recorded the rows that it inserted, updated and deleted.

Records contain the operation, and by the table's logging mode the key, or the row before it and after it.

Source: hudi specification, "CDC"; hudi HoodieCDCUtils, HoodieCDCLogger.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.corrupt_files import check_size
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.files.data_files import conform_batch, translate_errors
from snapshot_explorer.formats.hudi.files.log_files import read_avro_block
from snapshot_explorer.formats.hudi.metadata import log_format
from snapshot_explorer.formats.hudi.metadata.commits import CommitMetadata, change_data
from snapshot_explorer.formats.hudi.metadata.file_names import log_name
from snapshot_explorer.formats.hudi.metadata.types import HudiField, HudiType
from snapshot_explorer.storage import Storage

_TEXT = HudiType(root="string")
_OPERATIONS = frozenset("iud")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFile:
    """A file of change data. Picklable."""

    path: str
    """Its path, below the table's root."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvents:
    """The records of a block of change data."""

    path: str
    """The file, for messages."""
    batch: pa.RecordBatch
    present: frozenset[str]
    """The columns that the block has."""

    def has(self, image: str) -> bool:
        """Return whether the rows before, or after, are recorded."""
        return image in self.present

    @property
    def operations(self) -> pa.Array:
        """The operations: i, u or d."""
        return self.batch.column("op")

    @property
    def keys(self) -> pa.Array:
        """The keys of the rows; null if not recorded."""
        return self.batch.column("record_key")

    def is_present(self, image: str) -> pa.Array:
        """Return whether each record has the row before, or after."""
        return self.batch.column(image).is_valid()

    def image(self, image: str) -> pa.Table:
        """Return the rows before, or after; rows of nulls for records without one."""
        rows = self.batch.column(image)
        return pa.Table.from_arrays(rows.flatten(), schema=pa.schema(list(rows.type)))


def change_files_of(commits: Mapping[int, CommitMetadata]) -> dict[int, dict[tuple[str, str], list[ChangeFile]]]:
    """Return the files of change data that commits wrote, in order, by commit, and by partition and file group."""
    files: dict[int, dict[tuple[str, str], list[ChangeFile]]] = {version: {} for version in commits}
    for file in change_data(commits):
        members = files[file.version].setdefault((file.partition, file.file_id), [])
        members.append(ChangeFile(path=file.path, size_bytes=file.size_bytes))
    for groups in files.values():
        for members in groups.values():
            members.sort(key=_order)
    return files


def _order(file: ChangeFile) -> tuple[int, str]:
    name = log_name(file.path.rpartition("/")[2].removesuffix(".cdc"))
    return (0 if name is None else name.number), file.path


def read_change_file(
    storage: Storage, file: ChangeFile, instant: str, fields: Sequence[HudiField]
) -> Iterator[ChangeEvents]:
    """Yield the blocks of a file of change data, in order.

    Args:
        instant: The commit that wrote it.
        fields: The columns of the rows.
    """
    with translate_errors(file.path, "change data of Hudi"):
        content = storage.read(file.path, size_bytes=file.size_bytes)
    check_size(f"The change data {file.path}", len(content), file.size_bytes, by="its commit")
    row = HudiType(root="record", fields=tuple(fields))
    columns = [HudiField(name=name, type=_TEXT, nullable=True) for name in ("op", "record_key")]
    columns += [HudiField(name=name, type=row, nullable=True) for name in ("before", "after")]
    is_empty = True
    for block in log_format.blocks(content, file.path):
        if block.header.get(log_format.INSTANT) != instant:
            raise _damaged_error(file.path, f"it has a block of the commit {block.header.get(log_format.INSTANT)}")
        if block.type != log_format.CHANGES:
            raise refusal(features.OTHER_BLOCKS, path=file.path, type=block.type)
        is_empty = False
        stored = read_avro_block(storage, block, file.path, columns, {})
        batch = conform_batch(stored, columns, file.path)
        if unknown := set(batch.column("op").to_pylist()) - _OPERATIONS:
            raise _damaged_error(file.path, f"it has the operation {min(map(str, unknown))!r}")
        present = frozenset(stored.schema.names)
        if not present.issuperset(("before", "after")) and "record_key" not in present:
            raise _damaged_error(file.path, "its records have neither rows nor keys")
        yield ChangeEvents(path=file.path, batch=batch, present=present)
    if is_empty:
        raise _damaged_error(file.path, "it has no intact block")


def _damaged_error(path: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        Message(
            f"The change data {path} cannot be read: {reason}. It was cut short or replaced; compare it with a copy of "
            "the table, or use ",
            Hint("", {"mode": "delta"}),
            ".",
        )
    )
