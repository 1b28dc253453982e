"""Plans of splits of an Iceberg table."""

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.formats.iceberg.deletes.equality import EqualityColumn
from snapshot_explorer.formats.iceberg.deletes.index import Deletes
from snapshot_explorer.formats.iceberg.files.data_files import File
from snapshot_explorer.formats.iceberg.files.field_ids import IdRules
from snapshot_explorer.formats.iceberg.metadata.schema import IcebergSchema

FIRST_WITH_ROW_IDS = 3
"""The first format version with row ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The context that all splits of a version share. Picklable."""

    schema: IcebergSchema
    rules: IdRules
    """How columns get ids in files without any."""
    equality: Mapping[int, EqualityColumn]
    """The columns by which equality deletes delete, by id; some may have been dropped from the schema since."""
    has_row_ids: bool
    names_are_stored: bool
    """Whether files have the version's columns under the version's names, in its types, if they have them."""
    names_are_mapped: bool
    """Whether this also applies to files without ids: the table's name mapping has the version's names for its ids."""
    key: str
    """A text that is equal for equal schemas and rules."""


def context_key(schema: IcebergSchema, rules: IdRules) -> str:
    """Return the text that identifies a schema and the rules for ids."""
    return hashlib.sha256(repr((schema.fields, rules)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergPlan:
    """The plan of a split: a data file and its deletes. `Split.detail` of an Iceberg split; picklable."""

    path: str
    """The data file's recorded path, which position deletes name."""
    file: File
    sequence_number: int
    first_row_id: int | None
    """The id of its first row; None if its rows have none."""
    spec_id: int
    constants: Mapping[int, pa.Scalar]
    deletes: Deletes
    context: Context

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read; see `Split.identity`."""
        deletes = self.deletes.identity(self.sequence_number)
        return self.path, self.sequence_number, self.first_row_id, deletes, self.context.key
