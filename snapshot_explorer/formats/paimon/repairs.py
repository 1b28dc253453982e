"""What keeps statements from restoring rows of a Paimon table, and the settings that they need."""

import re
from collections.abc import Sequence

from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.formats.interface import Repairs, TableVersion
from snapshot_explorer.formats.settings import parse_flag, parse_keyword

_CHAR = re.compile(r"\bchar\(", re.IGNORECASE)

_ORDERED = ("sequence.field", "rowkind.field", "ignore-delete")
"""Options with which the last written row does not always win."""


class PaimonRepairs(Repairs):
    """The statements that repair Paimon tables."""

    def obstacle(self, version: TableVersion, *, of_rows: bool) -> str | None:
        """Return why rows of the table cannot be restored by writing them again.

        Source: paimon docs, "Merge Engine", "Sequence and Rowkind".
        """
        options = version.properties
        engine = parse_keyword(options, "merge-engine", "deduplicate")
        if not of_rows:
            return None
        if engine != "deduplicate":
            return f"The merge engine {engine} merges a row that is written again with the rows before it."
        named = next((name for name in _ORDERED if options.get(name, "").strip()), None)
        if named is not None:
            return (
                f"The option {named}={options[named]} decides which row wins: an earlier row that is written again "
                "may lose."
            )
        is_evolved = parse_flag(options, "data-evolution.enabled")
        return "The option data-evolution.enabled splits rows over files by columns." if is_evolved else None

    def settings(self, version: TableVersion, *, merges: bool) -> Sequence[str]:
        """Return the setting for columns of type CHAR.

        Where Spark pads their values as it reads them, DELETE, UPDATE and MERGE do not find the table ("UPDATE TABLE is
        not supported temporarily"). Without padding, MERGE ends with a MatchError of CharType. Seen with Paimon 0.9.

        Raises:
            UnsupportedFeatureError: Such a column, and a MERGE.

        Source: spark `ApplyCharTypePadding`; paimon `PaimonUpdateTable`, `RowLevelHelper`.
        """
        padded = [column.name for column in version.schema.columns if _CHAR.search(column.type)]
        if padded and merges:
            raise UnsupportedFeatureError(
                Message(
                    "The statement is a MERGE, which Paimon's connector does not run on tables with a column of type "
                    f"CHAR: {', '.join(padded)}. Choose other rows, or replace whole rows with ",
                    Hint("", {"key": []}),
                    " if the table has no primary key.",
                )
            )
        return ["spark.sql.readSideCharPadding = false"] if padded else []
