"""`Health`: the health of a table at one version."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from snapshot_explorer.analysis.health.findings import findings_frame, findings_of, noun_of, verdict
from snapshot_explorer.analysis.health.groups import groups_of, levels_frame, partitions_frame
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.records import Finding, MaintenanceSettings
from snapshot_explorer.core.text import format_size
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.results import Frame, non_empty_columns
from snapshot_explorer.view import Drawable, Drawing, Grid, Line, Pairs, Part
from snapshot_explorer.view.cells import format_total_size

_WORST = 10
"""The number of partitions and buckets in the drawing."""
_GROUP = (
    "partition",
    "bucket",
    "files",
    "size_bytes",
    "median_bytes",
    "small_files",
    "mergeable_files",
    "skew",
    "sorted_runs",
    "deleted_ratio",
)


_FINDING = ("state", "finding", "found", "threshold")


class Health(Drawable):
    """The health of a table at one version, from metadata. Displays as a verdict, then findings and sizes.

    Thresholds derive from the table's own settings or its engine's defaults: `settings`.
    """

    def __init__(  # noqa: PLR0913 - the inputs of the result
        self,
        name: str,
        version: int,
        *,
        partitions: pa.Table,
        levels: pa.Table,
        manifests: pa.Table,
        settings: MaintenanceSettings,
        own_findings: Sequence[Finding] = (),
        readability: Mapping[str, object] | None = None,
    ) -> None:
        """Create a result. Use `Table.health` to get one."""
        self._readability = readability
        self.name = name
        """The table's name."""
        self.version = version
        """The version."""
        self.settings = settings
        """The settings that thresholds derive from, and their sources."""
        self._partitions = partitions
        self._levels = levels
        self._manifests = manifests
        self._own_findings = own_findings

    @cached_property
    def findings(self) -> Frame:
        """Return HEALTH_FINDINGS, the most urgent first: state, the number, its thresholds, meaning, advice."""
        return Frame(findings_frame(self._found), title=self._title("Findings"), noun="findings", drawn=_FINDING)

    @cached_property
    def partitions(self) -> Frame:
        """Return HEALTH_PARTITIONS, ordered by mergeable files, then sorted runs, then bytes, all descending."""
        rows = self._partitions
        return Frame(rows, title=self._title("Partitions"), noun=self._noun, drawn=non_empty_columns(rows))

    @cached_property
    def levels(self) -> Frame:
        """Return HEALTH_LEVELS, from level 0 upwards; no rows if the format has no levels."""
        return Frame(self._levels, title=self._title("Levels"), noun="levels")

    @cached_property
    def manifests(self) -> Frame:
        """Return MANIFESTS: the manifests of the version; for Delta, its checkpoint and the commits after it."""
        return Frame(self._manifests, title=self._title("Manifests"), noun="manifests")

    @cached_property
    def verdict(self) -> str:
        """Return a sentence on the most urgent findings."""
        return verdict(self._found, is_empty=not len(self._partitions))

    def to_dict(self) -> dict[str, object]:
        """Return version and verdict, and a list of dicts for each of findings, partitions and levels."""
        parts = {name: getattr(self, name).to_dict() for name in ("findings", "partitions", "levels")}
        return {"version": self.version, "verdict": self.verdict} | parts

    def drawing(self) -> Drawing:
        """Return the drawing: the verdict, sizes and thresholds, findings, advice, the worst partitions."""
        parts: list[Part] = [Line(self.verdict), Pairs(tuple(self._facts()))]
        parts.append(Pairs(tuple((f"{item.state}: {item.finding}", item.description) for item in self._found)))
        if any(item.state in ("act", "watch") for item in self._found):
            parts += [Line(note) for note in self.settings.notes]
        if len(self._partitions) > 1:
            parts += [Line(f"{self._noun.capitalize()}, those with the most removable files first:"), self._worst()]
        if self.settings.runs_trigger is not None and len(self._levels):
            parts += [Line("Levels:"), *self.levels.drawing().parts]
        return Drawing(title=self._title(f"Health of {self.name}"), parts=tuple(parts))

    @property
    def _noun(self) -> str:
        return noun_of(self._partitions)[0] if len(self._partitions) else "partitions"

    def _facts(self) -> list[tuple[str, object]]:
        rows, settings = self._partitions, self.settings
        files, size_bytes = (pc.sum(rows[name]).as_py() or 0 for name in ("files", "size_bytes"))
        known = not rows["rows"].null_count
        return [
            ("files", files),
            ("rows in files", f"{pc.sum(rows['rows']).as_py() or 0:,}" if known else None),
            ("size", format_total_size(rows["size_bytes"])),
            (
                "average file size",
                format_size(size_bytes // files) if files and not rows["size_bytes"].null_count else None,
            ),
            ("target file size", f"{format_size(settings.target_bytes)}: {settings.target_source}"),
            ("small file threshold", f"{format_size(settings.small_bytes)}: {settings.small_source}"),
        ]

    def _worst(self) -> Grid:
        rows = self._partitions
        shown = [name for name in _GROUP if rows[name].null_count < len(rows)]
        without = {"partition"} if not any(rows["partition"].slice(0, 1).to_pylist()) else set()
        without |= {"deleted_ratio"} if not pc.sum(rows["vector_files"]).as_py() else set()
        shown = [name for name in shown if name not in without]
        first = rows.slice(0, _WORST).select(shown)
        return Grid(first, total=len(rows), noun=self._noun, limit=_WORST)

    @cached_property
    def _found(self) -> tuple[Finding, ...]:
        return findings_of(
            self._partitions, self._levels, self._manifests, self.settings, self._readability, self._own_findings
        )

    def _title(self, heading: str) -> str:
        return f"{heading} at version {self.version}"


def read_health(version: TableVersion, *, name: str, readability: Mapping[str, object] | None = None) -> Health:
    """Return the health of a version. Reads its schema, files and manifests, no data files.

    Args:
        readability: The version's row of READABILITY; None if its files were not checked.
    """
    if version.number is None:
        raise SnapshotNotFoundError(f"{name} has no version yet: nothing has been committed to it.")
    facts = version.health_facts()
    groups = groups_of(facts.measured_files())
    return Health(
        name,
        version.number,
        partitions=partitions_frame(groups, facts.settings),
        levels=levels_frame(groups),
        manifests=version.manifests(),
        settings=facts.settings,
        own_findings=facts.own_findings(),
        readability=readability,
    )
