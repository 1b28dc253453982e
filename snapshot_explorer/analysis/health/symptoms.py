"""What went wrong with a table, in sentences: files that are missing, and numbers that jump."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.core.errors import UNREADABLE, LimitError, SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message, join
from snapshot_explorer.core.records import MAINTENANCE_KINDS, runs_of, runs_text
from snapshot_explorer.core.text import pluralize


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """One sentence on what went wrong, or that nothing did."""

    is_problem: bool | None
    """Whether something needs attention; None if that was not checked."""
    sentence: str
    """A sentence on the result, or on why it was not checked."""
    hint: Hint
    """The call that shows the evidence."""


def symptom_of(read: Callable[[], Symptom], hint: Hint) -> Symptom:
    """Return the symptom from `read`, or a symptom with its error: one damaged file must not hide the rest."""
    try:
        return read()
    except UNREADABLE as error:
        return symptom_of_error(error, hint)


def symptom_of_error(error: SnapshotExplorerError, hint: Hint) -> Symptom:
    """Return an error as a symptom: a file that cannot be read is a problem, what is not supported is not checked."""
    if isinstance(error, UnsupportedFeatureError | LimitError):
        return Symptom(is_problem=None, sentence=Message("Not checked: ", error), hint=hint)
    return Symptom(is_problem=True, sentence=error.message, hint=hint)


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
    return Symptom(is_problem=is_problem, sentence=join(" ", [sentence.strip(), *notes]), hint=Hint("table.verify"))


def anomaly_symptom(
    anomalies: pa.Table,
    versions: Sequence[int],
    can_diff_rows: Callable[[int, int], bool],
    *,
    version: int | None = None,
) -> Symptom:
    """Return the symptom on jumps of numbers, with the newest jump that no maintenance made.

    Args:
        anomalies: ANOMALIES, newest first.
        versions: All versions of the table, ascending.
        can_diff_rows: Whether the rows in which two versions differ can be read.
        version: The only version that was looked at; None for all.
    """
    rows = anomalies.select(["version", "kind", "rule"]).to_pylist()
    if not rows:
        where = "" if version is None else f" at version {version}"
        sentence = f"No number that metadata records jumps{where}."
        return Symptom(is_problem=False, sentence=sentence, hint=Hint("table.anomalies"))
    newest = next((row for row in rows if row["kind"] not in MAINTENANCE_KINDS), rows[0])
    jumping = len({row["version"] for row in rows})
    index = versions.index(newest["version"]) if newest["version"] in versions else 0
    hint = Hint("table.anomalies")
    if index and jumping == 1:
        hint = hint_of_change(versions[index - 1], newest["version"], can_diff_rows)
    sentence = (
        f"Numbers jump at {pluralize(jumping, 'version')}, last at version {newest['version']}: {newest['rule']}."
    )
    return Symptom(is_problem=True, sentence=sentence, hint=hint)


def hint_of_change(a: int, b: int, can_diff_rows: Callable[[int, int], bool]) -> Hint:
    """Return the call that shows what differs between two versions: the rows if they can be read, or the metadata."""
    versions = {"a": a, "b": b}
    return Hint("table.diff_rows", versions) if can_diff_rows(a, b) else Hint("table.compare", versions)
