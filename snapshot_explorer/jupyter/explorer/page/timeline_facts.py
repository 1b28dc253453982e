"""Facts that a timeline draws in addition to commits, read after them: the table's size over time, and anomalies."""

from collections.abc import Callable

import pyarrow as pa

from snapshot_explorer.analysis.health.symptoms import Symptom
from snapshot_explorer.analysis.profile import read_totals
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.frames import ANOMALIES
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.reading import Log
from snapshot_explorer.jupyter.explorer.state import ExplorerState
from snapshot_explorer.jupyter.explorer.work import Job, Work
from snapshot_explorer.table import Table
from snapshot_explorer.view.timeline.columns import TableFacts


class FactsReader:
    """Reads and caches the facts that a timeline draws in addition to commits."""

    findings: tuple[Symptom, ...] = ()
    """What went wrong, as far as it was read."""

    def __init__(self, table: Table, state: ExplorerState, work: Work, changed: Callable[[], None]) -> None:
        """Read nothing yet; `changed` is called once something was read."""
        self._table, self._state, self._work, self._changed = table, state, work, changed
        self._totals: pa.Table | None = None
        self._totals_of: Log | None = None
        self._anomalies: pa.Table | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Return a value that changes whenever something was read, or is expected."""
        return id(self._totals), id(self._anomalies), id(self.findings), self._expected

    def facts(self, log: Log) -> TableFacts:
        """Return the facts read so far; without the anomalies that the user expects, with doubled rows."""
        marked = self._anomalies
        if marked is not None:
            doubled = [
                {"version": version, "measure": "duplicates", "rule": finding.sentence}
                for finding in self.findings
                if finding.hint.verb == "snapshot.duplicates"
                for version in finding.versions
            ]
            marked = pa.concat_tables([marked, pa.Table.from_pylist(doubled, ANOMALIES)])
            marked = marked.filter(pc.invert(pc.is_in(marked["version"], pa.array(self._expected, pa.int64()))))
        return TableFacts(branches=log.branches_by_version(), totals=self._totals, anomalies=marked)

    def files_at(self, version: int | None) -> int | None:
        """Return the number of data files of a version; None unless it was read."""
        if self._totals is None or version is None:
            return None
        rows = self._totals.filter(pc.equal(self._totals["version"], version))["files"].to_pylist()
        return rows[0] if rows else None

    @property
    def _expected(self) -> tuple[int, ...]:
        return tuple(item.version for item in history_of(self._table).open_branch.expected)

    def read(self, log: Log) -> None:
        """Read the facts of a new log."""
        self.read_totals(log)
        if self._state.anomalies:
            self.read_anomalies()

    def read_totals(self, log: Log | None) -> None:
        """Read the size of the table at each version, for the line, if commits do not record it.

        Until then, and if it cannot be read, the line is the running total of the commits.
        """
        if log is None or self._totals_of is log:
            return
        if self._state.measure == "rows" and not log.commits["total_rows"].null_count:
            return
        self._totals_of = log

        def take(totals: pa.Table | None) -> None:
            self._totals = totals
            self._changed()

        table, versions = self._table, log.versions
        read = Job(
            run=lambda: read_totals(history_of(table).table_format, table.lifetimes, versions),
            done=take,
            failed=lambda _: None,
        )
        self._work.start("totals", read)

    def read_anomalies(self) -> None:
        """Read which versions to mark, or mark none."""
        if not self._state.anomalies:
            self._work.cancel("anomalies")
            self._anomalies = None
            return

        def take(anomalies: pa.Table) -> None:
            self._anomalies = anomalies
            self._changed()

        def fail(sentence: str) -> None:
            self._state.note = f"Anomalies cannot be marked: {sentence}"

        self._work.start("anomalies", Job(run=lambda: self._table.anomalies().to_arrow(), done=take, failed=fail))
