"""What went wrong with a table: the symptoms that `Table.health` states first."""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_splits import can_diff
from snapshot_explorer.analysis.health.symptoms import (
    Symptom,
    jump_symptoms,
    readability_symptom,
    sorted_symptoms,
    symptoms_of,
)
from snapshot_explorer.analysis.profile.anomalies import AnomalyRules
from snapshot_explorer.analysis.profile.profiles import table_anomalies
from snapshot_explorer.analysis.retention import read_readability
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.hints import Hint
from snapshot_explorer.history import Expectation, History, expected_reasons


def diagnose(history: History, version: int | None, expected: Sequence[Expectation] = ()) -> tuple[Symptom, ...]:
    """Return what went wrong, problems first: missing files, and each version at which numbers jump.

    Of one version, or of all for None; where nothing is wrong, a symptom says so. What the user expects is no problem.
    Reads the log once, and lists each folder with data files. A file that cannot be read is a problem and named; what
    is not supported is not checked.
    """
    symptoms = (
        *symptoms_of(partial(_files, history, version), Hint("table.verify")),
        *symptoms_of(partial(_numbers, history, version), Hint("table.anomalies")),
    )
    expectations = (*history.open_branch.expected, *expected)
    versions = sorted({item.version for item in expectations} & {*history.listing.versions})
    times = dict(zip(versions, history.committed_at(versions), strict=True)) if versions else {}
    return sorted_symptoms(symptoms, expected_reasons(expectations, times))


def _files(history: History, version: int | None) -> tuple[Symptom, ...]:
    readability = read_readability(history)
    return (readability_symptom(_at(readability.to_arrow(), version), readability.notes if version is None else ()),)


def _numbers(history: History, version: int | None) -> tuple[Symptom, ...]:
    anomalies = table_anomalies(history, None, None, AnomalyRules(), None).to_arrow()
    load = history.table_format.version
    return jump_symptoms(anomalies, history.listing.reachable, lambda a, b: can_diff(load(a), load(b)), version=version)


def _at(rows: pa.Table, version: int | None) -> pa.Table:
    """Return the rows of a version; all for None."""
    return rows if version is None else rows.filter(pc.equal(rows["version"], version))
