"""The check of all tables of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer.analysis.checks import CheckLine, CheckResult, failed_opening, matches
from snapshot_explorer.core.errors import SnapshotExplorerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapshot_explorer.analysis.checks import CheckSettings
    from snapshot_explorer.lake.tables import LakeTable


def check_lake(
    name: str,
    outcomes: Iterable[tuple[LakeTable, tuple[CheckLine, ...] | SnapshotExplorerError]],
    settings: CheckSettings,
) -> CheckResult:
    """Return the lines of all tables, by name. A pattern of the settings that matches no table was not checked."""
    lines: list[CheckLine] = []
    names = []
    for table, outcome in outcomes:
        names.append(table.name)
        if isinstance(outcome, SnapshotExplorerError):
            outcome = failed_opening(table.name, outcome, settings)  # noqa: PLW2901 - the lines in its place
        lines += outcome
    lines.sort(key=lambda line: line.table)
    for pattern, _ in settings.patterns:
        if not any(matches(table, pattern) for table in names):
            own = settings.of_table(pattern)
            lines += [
                CheckLine(table=pattern, rule=str(rule), state=None, found="No table matches.") for rule in own.rules
            ]
    return CheckResult(name=name, since=settings.since, at=settings.at, lines=tuple(lines))
