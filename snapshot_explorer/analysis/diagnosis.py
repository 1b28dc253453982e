"""What went wrong with a table: the symptoms that `Table.health` states first."""

from functools import partial

import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_splits import can_diff
from snapshot_explorer.analysis.health.symptoms import Symptom, anomaly_symptom, readability_symptom, symptom_of
from snapshot_explorer.analysis.profile.anomalies import AnomalyRules
from snapshot_explorer.analysis.profile.profiles import table_anomalies
from snapshot_explorer.analysis.retention import read_readability
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.hints import Hint
from snapshot_explorer.history import History


def diagnose(history: History, version: int | None) -> tuple[Symptom, ...]:
    """Return a symptom each on missing files and on numbers that jump: at one version, or at all for None.

    Reads the log once, and lists each folder with data files. A file that cannot be read is a problem and named; what
    is not supported is not checked.
    """
    return (
        symptom_of(partial(_files, history, version), Hint("table.verify")),
        symptom_of(partial(_numbers, history, version), Hint("table.anomalies")),
    )


def _files(history: History, version: int | None) -> Symptom:
    readability = read_readability(history)
    return readability_symptom(_at(readability.to_arrow(), version), readability.notes if version is None else ())


def _numbers(history: History, version: int | None) -> Symptom:
    anomalies = table_anomalies(history, None, None, AnomalyRules(), None).to_arrow()
    load = history.table_format.version
    return anomaly_symptom(
        _at(anomalies, version), history.listing.reachable, lambda a, b: can_diff(load(a), load(b)), version=version
    )


def _at(rows: pa.Table, version: int | None) -> pa.Table:
    """Return the rows of a version; all for None."""
    return rows if version is None else rows.filter(pc.equal(rows["version"], version))
