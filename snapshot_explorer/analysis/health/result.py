"""`Health`: the health of a table at one version."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from snapshot_explorer.analysis.health.findings import findings_frame, findings_of, noun_of, verdict
from snapshot_explorer.analysis.health.groups import groups_of, levels_frame, partitions_frame
from snapshot_explorer.core.errors import SnapshotNotFoundError
from snapshot_explorer.core.records import Finding, MaintenanceSettings
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.results import Frame, non_empty_columns

_FINDING = ("state", "finding", "found", "threshold")


class Health(Shown):
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
        return Frame(findings_frame(self.evaluated), title=self._title("Findings"), noun="findings", drawn=_FINDING)

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
        return verdict(self.evaluated, is_empty=not len(self._partitions))

    def to_dict(self) -> dict[str, object]:
        """Return version and verdict, and a list of dicts for each of findings, partitions and levels."""
        parts = {name: getattr(self, name).to_dict() for name in ("findings", "partitions", "levels")}
        return {"version": self.version, "verdict": self.verdict} | parts

    @property
    def _noun(self) -> str:
        return noun_of(self._partitions)[0] if len(self._partitions) else "partitions"

    @cached_property
    def evaluated(self) -> tuple[Finding, ...]:
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
    settings = version.maintenance_settings()
    groups = groups_of(version.measured_files())
    return Health(
        name,
        version.number,
        partitions=partitions_frame(groups, settings),
        levels=levels_frame(groups),
        manifests=version.manifests(),
        settings=settings,
        own_findings=version.own_findings(),
        readability=readability,
    )
