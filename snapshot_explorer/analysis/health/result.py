"""`Health`: the health of a table at one version."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property

import pyarrow as pa

from snapshot_explorer.analysis.health.findings import findings_frame, findings_of, noun_of, verdict
from snapshot_explorer.analysis.health.groups import groups_of, levels_frame, partitions_frame
from snapshot_explorer.analysis.health.symptoms import Symptom, symptom_of_error
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint
from snapshot_explorer.core.records import Finding, MaintenanceSettings
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.results import Frame, non_empty_columns

_FINDING = ("state", "finding", "found", "threshold")


class Health(Shown):
    """The health of a table at one version. Displays as what went wrong, a verdict, then findings and sizes.

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
        settings: MaintenanceSettings | None,
        own_findings: Sequence[Finding] = (),
        readability: Mapping[str, object] | None = None,
        symptoms: Sequence[Symptom] = (),
        failure: Symptom | None = None,
    ) -> None:
        """Create a result. Use `Table.health` to get one."""
        self._readability = readability
        self.name = name
        """The table's name."""
        self.version = version
        """The version."""
        self.settings = settings
        """The settings that thresholds derive from, and their sources; None if the metadata cannot be read."""
        self.symptoms = tuple(symptoms)
        """A sentence each on missing files and on numbers that jump; empty if they were not looked for."""
        self.failure = failure
        """Why the metadata of the version cannot be read; None if it can."""
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
        """Return a sentence on the most urgent findings, or on why the metadata of the version cannot be read."""
        if self.failure is not None:
            return self.failure.sentence
        return verdict(self.evaluated, is_empty=not len(self._partitions))

    def to_dict(self) -> dict[str, object]:
        """Return version and verdict, and a list of dicts for each of symptoms, findings, partitions and levels."""
        parts = {name: getattr(self, name).to_dict() for name in ("findings", "partitions", "levels")}
        symptoms = [asdict(symptom) for symptom in self.symptoms]
        return {"version": self.version, "verdict": self.verdict, "symptoms": symptoms} | parts

    @property
    def _noun(self) -> str:
        return noun_of(self._partitions)[0] if len(self._partitions) else "partitions"

    @cached_property
    def evaluated(self) -> tuple[Finding, ...]:
        """The findings as records."""
        if self.settings is None:
            return ()
        return findings_of(
            self._partitions, self._levels, self._manifests, self.settings, self._readability, self._own_findings
        )

    def _title(self, heading: str) -> str:
        return f"{heading} at version {self.version}"


def read_health(
    version: TableVersion,
    *,
    name: str,
    readability: Callable[[], Mapping[str, object] | None] = lambda: None,
    symptoms: Sequence[Symptom] = (),
) -> Health:
    """Return the health of a version. Reads its schema, files and manifests, no data files.

    Args:
        readability: Returns the version's row of READABILITY; None if its files were not checked.
        symptoms: What was found in other versions and in the files. With them, metadata that cannot be read is the
            verdict, and not an error.
    """
    if version.number is None:
        raise SnapshotNotFoundError(f"{name} has no version yet: nothing has been committed to it.")
    try:
        return _read_health(version, name, version.number, readability, symptoms)
    except UNREADABLE as error:
        if not symptoms:
            raise
        return Health(
            name,
            version.number,
            partitions=frames.no_rows(frames.HEALTH_PARTITIONS),
            levels=frames.no_rows(frames.HEALTH_LEVELS),
            manifests=frames.no_rows(frames.MANIFESTS),
            settings=None,
            symptoms=symptoms,
            failure=symptom_of_error(error, Hint("table.health")),
        )


def _read_health(
    version: TableVersion,
    name: str,
    number: int,
    readability: Callable[[], Mapping[str, object] | None],
    symptoms: Sequence[Symptom],
) -> Health:
    facts = version.health_facts()
    groups = groups_of(facts.measured_files())
    return Health(
        name,
        number,
        partitions=partitions_frame(groups, facts.settings),
        levels=levels_frame(groups),
        manifests=version.manifests(),
        settings=facts.settings,
        own_findings=facts.own_findings(),
        readability=readability(),
        symptoms=symptoms,
    )
