"""The diagnosis of a table in three sentences: on its readability, its anomalies and its health."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from snapshot_explorer.core.errors import UNREADABLE, LimitError, UnsupportedFeatureError
from snapshot_explorer.core.records import MAINTENANCE_KINDS, runs_of, runs_text
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import pluralize


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """One sentence of a diagnosis."""

    is_problem: bool | None
    """Whether something needs attention; None if that was not checked."""
    sentence: str
    """A sentence on the result, or on why it was not checked."""
    command: str
    """The command that shows the evidence."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Diagnosis(Shown):
    """The diagnosis of a table. Displays as a sentence each for readability, anomalies and health."""

    name: str
    """The name of the table."""
    symptoms: tuple[Symptom, ...]
    """In this order: readability, anomalies, health."""

    def to_dict(self) -> dict[str, object]:
        """Return the name, and a list of dicts for the symptoms."""
        return {"name": self.name, "symptoms": [asdict(symptom) for symptom in self.symptoms]}


def symptom_of(read: Callable[[], Symptom], command: str) -> Symptom:
    """Return the symptom from `read`, or a symptom with its error: one damaged file must not hide the rest."""
    try:
        return read()
    except (UnsupportedFeatureError, LimitError) as error:
        return Symptom(is_problem=None, sentence=f"Not checked: {error}", command=command)
    except UNREADABLE as error:
        return Symptom(is_problem=True, sentence=str(error), command=command)


def readability_symptom(readability: pa.Table, notes: Sequence[str] = ()) -> Symptom:
    """Return whether all versions can be loaded.

    Args:
        notes: Sentences on missing versions and on unreadable ones.
    """
    rows = readability.select(["version", "readable", "reason"]).to_pylist()
    lost = [row["version"] for row in rows if row["readable"] in ("no", "metadata")]
    unknown = [row for row in rows if row["readable"] is None]
    sentence = ""
    if lost:
        ends = f"version {lost[0]}" if len(lost) == 1 else f"versions between {lost[-1]} and {lost[0]}"
        part = f"{len(lost):,} of {pluralize(len(rows), 'version')}"
        sentence = f"{part} cannot be loaded, because files are missing or damaged: {ends}. "
    if unknown:
        named = runs_text(runs_of(sorted(row["version"] for row in unknown)))
        reason = next((f" (version {row['version']}: {row['reason']})" for row in unknown if row["reason"]), "")
        sentence += f"Whether all files of {named} exist is unknown{reason}."
        sentence += "" if lost else " No file is known to be missing."
    elif not lost:
        sentence = f"No file is missing: {pluralize(len(rows), 'version')} can be loaded."
    is_problem = bool(lost) if lost or not unknown else None
    return Symptom(
        is_problem=is_problem, sentence=" ".join([sentence.strip(), *notes]), command="%snapshot readability"
    )


def anomaly_symptom(anomalies: pa.Table, versions: Sequence[int], can_diff_rows: Callable[[int, int], bool]) -> Symptom:
    """Return the symptom on jumps of numbers, with the newest jump that no maintenance made.

    Args:
        anomalies: ANOMALIES, newest first.
        versions: All versions of the table, ascending.
        can_diff_rows: Whether the rows in which two versions differ can be read.
    """
    rows = anomalies.select(["version", "kind", "rule"]).to_pylist()
    if not rows:
        return Symptom(
            is_problem=False, sentence="No number that metadata records jumps.", command="%snapshot anomalies"
        )
    newest = next((row for row in rows if row["kind"] not in MAINTENANCE_KINDS), rows[0])
    jumping = len({row["version"] for row in rows})
    index = versions.index(newest["version"]) if newest["version"] in versions else 0
    command = "%snapshot anomalies"
    if index and jumping == 1:
        pair = versions[index - 1], newest["version"]
        command = f"%snapshot diff {pair[0]}..{pair[1]} {'--rows' if can_diff_rows(*pair) else '--files'}"
    sentence = (
        f"Numbers jump at {pluralize(jumping, 'version')}, last at version {newest['version']}: {newest['rule']}."
    )
    return Symptom(is_problem=True, sentence=sentence, command=command)


def health_symptom(verdict: str, states: Sequence[object]) -> Symptom:
    """Return the verdict of `health`: a problem if the state of a finding is `act`."""
    return Symptom(is_problem="act" in states, sentence=verdict, command="%snapshot health")
