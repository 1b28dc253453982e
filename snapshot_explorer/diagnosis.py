"""What went wrong with a table: what was found by its readability, its anomalies and its health, in three sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.model import MAINTENANCE_KINDS
from snapshot_explorer.render import Code, Drawing, Line, mimebundle, text
from snapshot_explorer.render.cells import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from snapshot_explorer.render import Part

_NOT_CHECKED = "Not checked: whether rows are doubled, and whether values are right; both need rows to be read."


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """One sentence of a diagnosis."""

    is_problem: bool
    """Whether something should be looked at."""
    sentence: str
    """What was found."""
    command: str
    """The command that shows the evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What went wrong with a table. Displays as a sentence each for readability, anomalies and health."""

    name: str
    """The name of the table."""
    symptoms: tuple[Symptom, ...]
    """In this order: readability, anomalies, health."""

    def to_dict(self) -> dict[str, object]:
        """Return the name, and a list of dicts for the symptoms."""
        names = ("is_problem", "sentence", "command")
        return {"name": self.name, "symptoms": [{name: getattr(one, name) for name in names} for one in self.symptoms]}

    def __repr__(self) -> str:
        return text(self.drawing())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return mimebundle(self.drawing())

    def drawing(self) -> Drawing:
        """Return the drawing: each sentence, with the command that shows the evidence."""
        problems = sum(symptom.is_problem for symptom in self.symptoms)
        parts: list[Part] = []
        for symptom in self.symptoms:
            parts += [Line(symptom.sentence), Code(symptom.command)]
        answer = f"{counted(problems, 'thing')} to look at" if problems else "nothing to look at"
        return Drawing(title=f"{self.name}: {answer}", parts=(*parts, Line(_NOT_CHECKED, is_faint=True)))


def readability_symptom(readability: pa.Table) -> Symptom:
    """Return whether all versions can be loaded.

    Args:
        readability: READABILITY, newest first.
    """
    rows = readability.select(["version", "readable"]).to_pylist()
    lost = [row["version"] for row in rows if row["readable"] in ("no", "metadata")]
    unknown = sum(row["readable"] is None for row in rows)
    if lost:
        ends = f"version {lost[0]}" if len(lost) == 1 else f"versions between {lost[-1]} and {lost[0]}"
        sentence = (
            f"{len(lost):,} of {counted(len(rows), 'version')} cannot be loaded, because files are missing: {ends}."
        )
    elif unknown:
        sentence = (
            f"Of {counted(unknown, 'version')} it is unknown whether all files exist; no file is known to be missing."
        )
    else:
        sentence = f"No file is missing: {counted(len(rows), 'version')} can be loaded."
    return Symptom(is_problem=bool(lost), sentence=sentence, command="%snapshot readability")


def anomaly_symptom(anomalies: pa.Table, versions: Sequence[int]) -> Symptom:
    """Return where numbers jump, and the newest jump that no maintenance made.

    Args:
        anomalies: ANOMALIES, newest first.
        versions: All versions of the table, ascending.
    """
    rows = anomalies.select(["version", "kind", "rule"]).to_pylist()
    if not rows:
        return Symptom(is_problem=False, sentence="No number jumps.", command="%snapshot anomalies")
    newest = next((row for row in rows if row["kind"] not in MAINTENANCE_KINDS), rows[0])
    jumping = len({row["version"] for row in rows})
    place = versions.index(newest["version"]) if newest["version"] in versions else 0
    command = f"%snapshot diff {versions[place - 1]}..{newest['version']} --rows" if place else "%snapshot anomalies"
    sentence = f"Numbers jump at {counted(jumping, 'version')}, last at version {newest['version']}: {newest['rule']}."
    return Symptom(is_problem=True, sentence=sentence, command=command)
