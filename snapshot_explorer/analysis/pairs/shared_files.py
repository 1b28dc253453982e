"""Data files that two tables share, such as clones and the twins of a table in another format. No row is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_splits import ChangedSplits, changed_splits
from snapshot_explorer.arrow.data_types import is_number
from snapshot_explorer.engines.footers import read_footer

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from snapshot_explorer.core.records import NativeFile, NativeRows, Predicate, Split
    from snapshot_explorer.formats import TableVersion


def unshared_splits(
    a: TableVersion,
    b: TableVersion,
    columns: Sequence[tuple[str, str]],
    predicates: tuple[Predicate | None, Predicate | None],
) -> ChangedSplits:
    """Return the splits of versions of two tables that can contain different rows. Plans both.

    A common file has the same rows in both tables if none of its rows is deleted, and both tables read each column from
    the same column of the file in the same type. No data file is opened, unless one table finds columns by ids and the
    other by names, or one by a mapping of names: then the footers of common local files are read.

    Args:
        columns: The columns that matter: the name of each in `a` and in `b`.
        predicates: Conditions on the rows of `a` and of `b`; files in which no row can match are left out.
    """
    if _are_one_table(a, b, columns):
        return changed_splits(a, b, where_a=predicates[0], where_b=predicates[1], columns=columns)
    sides = [version.plan(predicate).splits for version, predicate in zip((a, b), predicates, strict=True)]
    if not a.storage.is_same_store(b.storage):
        return ChangedSplits(before=tuple(sides[0]), after=tuple(sides[1]), shared_files=0)
    parts = [
        [part for split in splits for part in version.split_by_file(split)]
        for version, splits in zip((a, b), sides, strict=True)
    ]
    named = [_NamedFile.of_splits(version, parts[side]) for side, version in enumerate((a, b))]
    common = {file.address for file in named[0] if file} & {file.address for file in named[1] if file}
    # Of one format both find columns in the same way. Otherwise ids are replaced by the names of their columns.
    by_name = len({file.file.ids is None for files in named for file in files if file}) > 1
    known = [
        [
            file.identity(version, [pair[side] for pair in columns], by_name=by_name)
            if file and file.address in common
            else None
            for file in named[side]
        ]
        for side, version in enumerate((a, b))
    ]
    shared = Counter(known[0]) & Counter(known[1])
    del shared[None]
    if not shared:
        # As planned: the parts lack the numbers of rows of the splits.
        return ChangedSplits(before=tuple(sides[0]), after=tuple(sides[1]), shared_files=0)
    before, after = (_divide_splits(parts[side], known[side], shared) for side in (0, 1))
    return ChangedSplits(before=before[0], after=after[0], shared_files=shared.total(), shared=after[1])


def _are_one_table(a: TableVersion, b: TableVersion, columns: Sequence[tuple[str, str]]) -> bool:
    """Return whether both are versions of one table, in which each pair of columns is one column."""
    roots = (version.storage.addresses([""]) for version in (a, b))
    is_one = type(a) is type(b) and a.storage.is_same_store(b.storage) and len({*map(tuple, roots)}) == 1
    return is_one and all(a.field_ids[name_a] == b.field_ids[name_b] for name_a, name_b in columns)


def _divide_splits(
    splits: Sequence[Split], identities: Sequence[Hashable], shared: Counter[Hashable]
) -> tuple[tuple[Split, ...], tuple[Split, ...]]:
    """Return the splits that are not shared, and the shared splits."""
    left, rest, common = Counter(shared), [], []
    for split, identity in zip(splits, identities, strict=True):
        if left[identity] > 0:
            left[identity] -= 1
            common.append(split)
        else:
            rest.append(split)
    return tuple(rest), tuple(common)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedFile:
    """A file whose rows are all live, and that other readers can read."""

    address: str
    file: NativeFile
    native: NativeRows
    has_no_ids: bool
    """Whether its columns are found in this way only if it stores no ids."""
    is_raw: bool
    """Whether all readers read all of its columns alike; otherwise only columns of plain types."""

    @classmethod
    def of_splits(cls, version: TableVersion, splits: Sequence[Split]) -> list[_NamedFile | None]:
        """Return the file of each split; None for a split that other readers cannot read, or of several files."""
        addresses = version.storage.addresses([split.files[0] if split.files else "" for split in splits])
        return [cls._of(version, split, address) for split, address in zip(splits, addresses, strict=True)]

    @classmethod
    def _of(cls, version: TableVersion, split: Split, address: str | None) -> _NamedFile | None:
        if address is None or len(split.files) != 1:
            return None
        native = version.native_files.of(split)
        if native is not None and not split.raw and native.partition is None:
            native = None
        by_names = version.native_files.by_names(split) if native is None else None
        rows = native or by_names
        if rows is None or rows.files[0].deleted:
            return None
        return cls(address=address, file=rows.files[0], native=rows, has_no_ids=by_names is not None, is_raw=split.raw)

    def identity(self, version: TableVersion, columns: Sequence[str], *, by_name: bool) -> Hashable | None:
        """Return a value that is equal for files of two tables with the same rows; None if unknown."""
        file, names = self.file, None
        if self.has_no_ids and ((field_ids := read_footer(file)) is None or field_ids.has_ids):
            return None
        if by_name and file.ids is not None:
            file_footer = read_footer(file)
            names = {} if file_footer is None else {number: name for name, number in file_footer.ids.items()}
        stored = tuple(self._stored_location(version, name, names) for name in columns)
        return None if None in stored else (self.address, file.kind, stored)

    def _stored_location(self, version: TableVersion, name: str, names: Mapping[int, str] | None) -> Hashable | None:
        """Return the location of a column's values in the file, and the type in which they are read; None if unknown.

        Args:
            names: The names in the file of columns by their ids; None if a column is found by its name alone.
        """
        dtype = version.arrow_schema.field(name).type
        if not (self.is_raw or _is_plain(dtype, self.file.kind)):
            return None
        type_name, file, constants = str(dtype), self.file, self.native.partition
        if name not in file.names:
            is_known = constants is not None and name in constants.column_names
            return (
                (type_name, "constant", repr(constants[name][0].as_py()))
                if constants is not None and is_known
                else None
            )
        stored = file.names[name]
        number = None if file.ids is None or stored is None else file.ids.get(stored)
        if names is None or stored is None:
            return type_name, stored, number
        return (type_name, names[number], None) if number is not None and number in names else None


def _is_plain(dtype: pa.DataType, file_format: str) -> bool:
    """Return whether all readers of a file read a column of this type alike."""
    is_other = pa.types.is_boolean(dtype) or pa.types.is_string(dtype) or pa.types.is_date(dtype)
    return is_number(dtype) or bool(is_other or (file_format == "parquet" and pa.types.is_timestamp(dtype)))
