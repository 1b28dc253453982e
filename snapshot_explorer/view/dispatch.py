"""The drawing and the picture of a record, by its type. Modules in `records` have them, imported when needed."""

from collections.abc import Mapping
from functools import singledispatch
from importlib import import_module
from typing import Any

from snapshot_explorer.view.drawing import Drawing
from snapshot_explorer.view.figures import Picture

MODULES = {
    "core.records.Commit": "commits",
    "core.records.TableSchema": "commits",
    "history.lifetimes.index.FileLifetimes": "lifetimes",
    "results.frame.Frame": "frames",
    "analysis.retention.report.Retention": "retention",
    "analysis.retention.orphans.Orphans": "retention",
    "analysis.retention.verification.Verification": "retention",
    "analysis.checks.result.CheckResult": "health",
    "analysis.health.result.Health": "health",
    "analysis.diff.diff_plan.RowDiffPlan": "diffs",
    "analysis.diff.diff_result.RowDiff": "diffs",
    "analysis.pairs.three_way_result.MergeStatement": "repairs",
    "analysis.pairs.three_way_result.ThreeWayDiff": "three_way",
    "analysis.row_history.history_result.RowHistory": "row_histories",
    "analysis.row_history.history_result.RowHistoryPlan": "row_histories",
    "analysis.rows.blame_result.Blame": "blames",
    "analysis.rows.bisection_result.Bisection": "bisections",
    "analysis.profile.profiles.Profile": "profiles",
    "analysis.repair.erasing.ErasureStatements": "repairs",
    "analysis.repair.repair.Repair": "repairs",
    "analysis.rows.trace_result.Trace": "traces",
    "analysis.usage.report.Usage": "retention",
    "lake.table_twins.Twins": "lakes",
    "lake.overview.LakeOverview": "lakes",
    "analysis.compare.comparison.Comparison": "comparisons",
    "lake.lake.Lake": "lakes",
    "lake.instant.LakeSnapshot": "lakes",
    "lake.tracing.LakeTrace": "traces",
    "table.snapshot.Snapshot": "tables",
    "table.table.Table": "tables",
    "view.svg.ShownFigure": "figures",
}
"""The module in `records` that draws a type. A type that is not listed is drawn like the type it inherits from."""


PICTURED: Mapping[str, Mapping[str, object]] = {
    "Bisection": {},
    "Blame": {},
    "FileLifetimes": {"of": "files", "is_brief": True},
}
"""The types that show their picture by themselves, above their table, and which one of several; it reads nothing."""
FIGURED = ("Profile",)
"""The types that show themselves as their figure, unless they are empty."""


@singledispatch
def draw(record: Any) -> Drawing:
    """Return what is drawn of a record. Modules register a function for each type."""
    raise TypeError(f"{type(record).__qualname__} has no drawing.")


@draw.register
def _itself(drawing: Drawing) -> Drawing:
    return drawing


@singledispatch
def depict(record: Any, **_: object) -> Picture:
    """Return the picture of a record. Modules register a function for each type that has a figure."""
    raise TypeError(f"{type(record).__qualname__} has no figure.")


def drawing_of(record: Any) -> Drawing:
    """Return what is drawn of a record."""
    _import_modules(type(record))
    return draw(record)


def picture_of(record: Any, **choices: Any) -> Picture:
    """Return the figure of a record and the table beside it.

    Args:
        choices: What to draw, as in the `picture` of the record.
    """
    _import_modules(type(record))
    return depict(record, **choices)


def _import_modules(cls: type) -> None:
    """Import the modules that register the functions of a type, and of those that it inherits from."""
    for base in cls.__mro__:
        name = MODULES.get(f"{base.__module__.removeprefix('snapshot_explorer.')}.{base.__qualname__}")
        if name is not None:
            import_module(f"snapshot_explorer.view.records.{name}")
