"""What keeps statements from restoring rows of a Delta table, and the settings that they need."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from snapshot_explorer.formats.delta.metadata.schema import computed_columns
from snapshot_explorer.formats.interface import Repairs, TableVersion
from snapshot_explorer.formats.settings import parse_flag

if TYPE_CHECKING:
    from snapshot_explorer.formats.delta.version import DeltaVersion


class DeltaRepairs(Repairs):
    """The statements that repair Delta tables."""

    def obstacle(self, version: TableVersion, *, of_rows: bool) -> str | None:
        """Return the reason, a column or property, why rows cannot be written again or removed; None without one.

        Source: delta PROTOCOL.md, "Generated Columns", "Identity Columns", "Append-only Tables".
        """
        if parse_flag(version.properties, "delta.appendOnly"):
            return "The property delta.appendOnly=true forbids that rows are removed."
        computed = computed_columns(cast("DeltaVersion", version).metadata) if of_rows else ()
        if not computed:
            return None
        return f"Delta computes the values of the generated or identity columns {', '.join(computed)} itself."

    def settings(self, version: TableVersion, *, merges: bool) -> Sequence[str]:
        """Return the settings for partition columns with a dot or a backtick in their names, and for char(n).

        MERGE repartitions its rows by the partition columns, whose names are not quoted there. Where Spark pads the
        values of char(n) as it reads them, MERGE does not find the columns
        (DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT), and DELETE skips files by statistics of values that are not
        padded; seen with Delta 4.4.
        Source: delta `MergeIntoCommandBase.writeFiles`; spark `ApplyCharTypePadding`.
        """
        settings = []
        partition_columns = cast("DeltaVersion", version).metadata.partition_columns
        if merges and any("." in name or "`" in name for name in partition_columns):
            settings.append("spark.databricks.delta.merge.repartitionBeforeWrite.enabled = false")
        if any("char(" in column.type.lower().replace("varchar(", "") for column in version.schema.columns):
            settings.append("spark.sql.readSideCharPadding = false")
        return settings
