"""Changed rows: all rows of data files that commits added or removed.

Source: iceberg docs, "Procedures" (create_changelog_view); iceberg BaseIncrementalChangelogScan.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import pyarrow as pa

from snapshot_explorer.formats.iceberg.scan.read import RowReader
from snapshot_explorer.model import Split

ROW_KIND = "rowkind"
HIDDEN = pa.schema(
    [
        pa.field("_change_type", pa.string(), nullable=False),
        pa.field("_change_ordinal", pa.int32(), nullable=False),
        pa.field("_commit_snapshot_id", pa.int64(), nullable=False),
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""The change columns of Iceberg's changelog, and the version and time of the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """A data file whose rows are events of one commit. `Split.detail`; picklable."""

    files: Split
    """The file and how to read it."""
    kind: Literal["+I", "-D"]
    """Whether the rows were inserted or deleted."""
    ordinal: int
    """The place of the commit among those of the range that changed rows, from 0."""
    snapshot_id: int
    """The commit."""
    version: int
    """Its version."""
    committed_at: datetime
    """Its time."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal where the same rows are read."""
        return self.files.identity, self.kind, self.version


def read_events(reader: RowReader, events: Events, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield rows with these columns, in this order: columns of the schema, `rowkind` (+I, -D) and those of HIDDEN."""
    known = {field.name for field in events.files.detail.context.schema.fields}  # type: ignore[attr-defined] # of `Plan`
    added = [name for name in columns if name not in known and name in (ROW_KIND, *HIDDEN.names)]
    names = [name for name in columns if name not in added]
    for batch in reader.read(events.files, names):
        if not columns:
            yield batch
            continue
        arrays = dict(zip(names, batch.columns, strict=False))
        arrays |= {name: _column(name, events, batch.num_rows) for name in added}
        fields = {field.name: field for field in batch.schema}
        schema = [fields.get(name) or _FIELDS[name] for name in columns]
        yield pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=pa.schema(schema))


_FIELDS = {field.name: field for field in [pa.field(ROW_KIND, pa.string(), nullable=False), *HIDDEN]}


def _column(name: str, events: Events, rows: int) -> pa.Array:
    values = {
        ROW_KIND: events.kind,
        "_change_type": "INSERT" if events.kind == "+I" else "DELETE",
        "_change_ordinal": events.ordinal,
        "_commit_snapshot_id": events.snapshot_id,
        "_commit_version": events.version,
        "_commit_timestamp": events.committed_at,
    }
    return pa.repeat(pa.scalar(values[name], _FIELDS[name].type), rows)
