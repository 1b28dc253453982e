"""The columns in which the rows of many versions are compared: the last version's, in types that hold all values."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns, wider_type
from snapshot_explorer.core.errors import UNREADABLE, InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.text import list_names
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.formats.features import LEAVE_OUT
from snapshot_explorer.history import History, column_names


class HistoryColumns:
    """The columns of a reference version as earlier versions have them: matched by field id, in the widest types."""

    def __init__(
        self,
        source: History,
        reference: TableVersion,
        names: Sequence[str],
        starts: Sequence[int],
        ends: tuple[int, int],
        *,
        are_required: bool = True,
    ) -> None:
        """Read the schemas between two versions.

        Args:
            names: The columns, of the reference version.
            starts: The versions at which schemas come into force, ascending.
            ends: The first and the last version whose rows are read.
            are_required: Whether each version must have one of the columns, and comparable types. Otherwise `of` raises
                for a version with other types.

        Raises:
            InvalidArgumentError: A version has none of the columns.
            UnsupportedFeatureError: A column had a type whose values cannot be compared with its newest type.
        """
        self._reference = reference
        self._names = tuple(names)
        self._are_required = are_required
        self.schema = pa.schema([reference.arrow_schema.field(name).remove_metadata() for name in names])
        """The columns, each in a type that has the values of all versions."""
        self._own_names = column_names(source.format, starts, reference, names)
        first, last = ends
        before = max((start for start in starts if start <= first), default=first)
        for number in (max(start, first) for start in starts if before <= start <= last):
            try:
                self.schema = self._wider_schema(self._aligned(source.format.version(number)), number)
            except UNREADABLE:
                if are_required:
                    raise

    def of(self, version: TableVersion) -> AlignedColumns:
        """Return the mapping between the columns of a version, which is A, and these columns."""
        aligned = self._aligned(version)
        self._wider_schema(aligned, version.number)
        return replace(aligned, schema=self.schema)

    def _wider_schema(self, aligned: AlignedColumns, version: int | None) -> pa.Schema:
        return pa.schema(
            [
                own.with_type(self._wider(own, theirs.type, version)).with_nullable(True)  # noqa: FBT003
                for own, theirs in zip(self.schema, aligned.schema, strict=True)
            ]
        )

    def _wider(self, field: pa.Field, dtype: pa.DataType, version: int | None) -> pa.DataType:
        result = wider_type(dtype, field.type)
        if result is None:
            raise UnsupportedFeatureError(
                Message(
                    f"The column {field.name!r} was {dtype} at version {version} and is {field.type}: values of these "
                    "types cannot be compared. Leave it out with ",
                    LEAVE_OUT,
                    ", or read fewer versions with ",
                    Hint("", {"between": ...}),
                    ".",
                )
            )
        return result

    def _aligned(self, version: TableVersion) -> AlignedColumns:
        names = self._own_names.at(version.number or 0)
        own_names = {name: own for name in self._names if (own := names[name]) is not None}
        own_schema, schema = version.arrow_schema, self._reference.arrow_schema
        if self._are_required and not own_names and len(own_schema) and self._names:
            raise InvalidArgumentError(
                Message(
                    f"Version {version.number} has none of the columns that are compared: {list_names(self._names)}. "
                    "Read a range of versions that have one, with ",
                    Hint("", {"between": ...}),
                    ".",
                )
            )
        ids, own_ids = self._reference.field_ids, version.field_ids
        fields = []
        for name in self._names:
            field = schema.field(name)
            dtype: pa.DataType | None = field.type
            if name in own_names:
                dtype = wider_type(
                    own_schema.field(own_names[name]).type, field.type, own_ids[own_names[name]], ids[name]
                )
            if dtype is None:
                self._wider(field, own_schema.field(own_names[name]).type, version.number)
            fields.append(pa.field(name, dtype))
        return AlignedColumns(
            schema=pa.schema(fields), names_a=own_names, only_a=(), ids_a=own_ids, ids_b=ids, primary_key=()
        )
