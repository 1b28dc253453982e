"""What went wrong with a table, in sentences: files that are missing, and numbers that jump."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.core.errors import UNREADABLE, LimitError, SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message, join
from snapshot_explorer.core.records import MAINTENANCE_KINDS, runs_of, runs_text
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import pluralize, short_user


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """One sentence on what went wrong, or that nothing did."""

    is_problem: bool | None
    """Whether something needs attention; None if that was not checked."""
    sentence: str
    """A sentence on the result, or on why it was not checked."""
    hint: Hint
    """The call that shows the evidence."""
    versions: tuple[int, ...] = ()
    """The versions at which it happened, ascending."""
    repaired: int | None = None
    """The version that took it back; None if none did."""
    expected: str | None = None
    """The reason for which the user expects it, so that it is no problem; None if they do not."""


_MOST_RULES = 3
"""The numbers of a version that a sentence names."""
_OF_STORAGE = ("files", "size_bytes")
"""Numbers that a sentence names where no others jump."""
_LONGEST_USER = 60
_MOST_JUMPS = 20
"""The newest versions at which numbers jump that have a symptom each; the others share one."""


def sorted_symptoms(symptoms: Sequence[Symptom], reasons: Mapping[int, str]) -> tuple[Symptom, ...]:
    """Return problems first, then what is unknown, then the rest. What the user expects is no problem.

    Args:
        reasons: The reason of each version that is expected.
    """
    known = [_expected(symptom, reasons) for symptom in symptoms]
    return tuple(sorted(known, key=lambda symptom: (True, None, False).index(symptom.is_problem)))


def _expected(symptom: Symptom, reasons: Mapping[int, str]) -> Symptom:
    if not symptom.is_problem or not symptom.versions or not reasons.keys() >= {*symptom.versions}:
        return symptom
    reason = ", ".join(dict.fromkeys(reasons[version] for version in symptom.versions))
    sentence = Message(f"Expected ({sanitize(reason)}): ", symptom.sentence)
    return replace(symptom, is_problem=False, sentence=sentence, expected=reason)


def symptoms_of(read: Callable[[], tuple[Symptom, ...]], hint: Hint) -> tuple[Symptom, ...]:
    """Return the symptoms from `read`, or a symptom with its error: one damaged file must not hide the rest."""
    try:
        return read()
    except UNREADABLE as error:
        return (symptom_of_error(error, hint),)


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
    lost = sorted(row["version"] for row in rows if row["readable"] in ("no", "metadata"))
    unknown = [row for row in rows if row["readable"] is None]
    sentence = ""
    if lost:
        part = f"{len(lost):,} of {pluralize(len(rows), 'version')}"
        named = runs_text(runs_of(lost))
        sentence = f"{part} cannot be loaded, because files are missing or damaged: {named}. "
    if unknown:
        named = runs_text(runs_of(sorted(row["version"] for row in unknown)))
        reason = next((f" (version {row['version']}: {row['reason']})" for row in unknown if row["reason"]), "")
        sentence += f"Whether all files of {named} exist is unknown{reason}."
        sentence += "" if lost else " No file is known to be missing."
    elif not lost:
        sentence = f"No file is missing: {pluralize(len(rows), 'version')} can be loaded."
    is_problem = bool(lost) if lost or not unknown else None
    return Symptom(
        is_problem=is_problem,
        sentence=join(" ", [sentence.strip(), *notes]),
        hint=Hint("table.verify"),
        versions=tuple(lost),
    )


def jump_symptoms(
    anomalies: pa.Table,
    versions: Sequence[int],
    can_diff_rows: Callable[[int, int], bool],
    *,
    version: int | None = None,
    users: Callable[[Sequence[int]], Mapping[int, str | None]] = lambda _: {},
) -> tuple[Symptom, ...]:
    """Return a symptom for each version at which numbers jump, the newest first; or one that none does.

    Where the same numbers jump the same way at the versions that follow, they share the symptom of the first.

    A jump back to the value from before an earlier jump is the repair of that one, and no symptom of its own unless
    only its version is looked at. Restores that are no repair are last, behind what they may have repaired. Jumps of
    maintenance are no symptoms, as they change no row.

    Args:
        anomalies: ANOMALIES, newest first.
        versions: All versions of the table, ascending.
        can_diff_rows: Whether the rows in which two versions differ can be read.
        version: The only version that is looked at; None for all.
        users: Returns the users of the commits of some versions, as far as they are known.
    """
    rows = anomalies.to_pylist()[::-1]
    repairs = dict(_repairs(rows))
    repairing = {*repairs.values()} if version is None else set()
    by_version: dict[int, list[int]] = {}
    maintained = set()
    for at, row in enumerate(rows):
        if version not in (None, row["version"]) or at in repairing:
            continue
        if row["kind"] in MAINTENANCE_KINDS:
            maintained.add(row["version"])
        else:
            by_version.setdefault(row["version"], []).append(at)
    if not by_version:
        where = "" if version is None else f" at version {version}"
        but = f", other than by maintenance at {runs_text(runs_of(sorted(maintained)))}" if maintained else ""
        sentence = f"No number that metadata records jumps{where}{but}."
        return (Symptom(is_problem=False, sentence=sentence, hint=Hint("table.anomalies")),)
    runs = _runs(by_version, rows, versions, repairs)
    newest_first = sorted(runs, key=lambda item: (rows[by_version[item][0]]["kind"] == "restore", -item))
    symptoms, known_users = [], users(newest_first[:_MOST_JUMPS])
    for jumping in newest_first[:_MOST_JUMPS]:
        chosen = [at for at in by_version[jumping] if rows[at]["measure"] not in _OF_STORAGE] or by_version[jumping]
        chosen = sorted(chosen, key=lambda at: rows[at]["measure"] != "rows")
        repaired = [rows[repairs[at]] for at in chosen if at in repairs]
        back = max(repaired, key=lambda row: row["version"]) if len(repaired) == len(chosen) else None
        rules = [rows[at]["rule"] for at in chosen]
        more = f"; and {pluralize(len(rules) - _MOST_RULES, 'more number')}" if len(rules) > _MOST_RULES else ""
        again = f" Again at {runs_text(runs_of(runs[jumping]))}." if runs[jumping] else ""
        taken_back = "" if back is None else f" As before again since {_named(back)}."
        index = versions.index(jumping) if jumping in versions else 0
        before = versions[index - 1] if index else None
        commit = _named(rows[chosen[0]], known_users.get(jumping))
        symptoms.append(
            Symptom(
                is_problem=True,
                sentence=f"At {commit}: {'; '.join(rules[:_MOST_RULES])}{more}.{again}{taken_back}",
                hint=Hint("table.anomalies") if before is None else hint_of_change(before, jumping, can_diff_rows),
                versions=(jumping, *runs[jumping]),
                repaired=None if back is None else back["version"],
            )
        )
    if others := tuple(sorted(at for first in newest_first[_MOST_JUMPS:] for at in (first, *runs[first]))):
        sentence = f"Numbers jump at {pluralize(len(others), 'more version')}: {runs_text(runs_of(others))}."
        hint = Hint("table.anomalies")
        symptoms.append(Symptom(is_problem=True, sentence=sentence, hint=hint, versions=others))
    return tuple(symptoms)


def _runs(
    by_version: Mapping[int, Sequence[int]],
    rows: Sequence[Mapping[str, object]],
    versions: Sequence[int],
    repairs: Mapping[int, int],
) -> dict[int, list[int]]:
    """Return versions at which numbers jump, with those that follow at which the same ones go on to, ascending."""
    runs: dict[int, list[int]] = {}
    ways: dict[int, set[object]] = {}
    for version, chosen in sorted(by_version.items()):
        ways[version] = {str(rows[at]["rule"]).partition(" by ")[0] for at in chosen if at not in repairs}
        first = next(reversed(runs), None)
        last = first if first is None else [first, *runs[first]][-1]
        follows = last is not None and version in versions and versions[versions.index(version) - 1] == last
        if first is not None and follows and ways[version] and ways[version] <= ways[first]:
            runs[first].append(version)
        else:
            runs[version] = []
    return runs


def _named(row: Mapping[str, object], user: str | None = None) -> str:
    """Return the version of a row of ANOMALIES, with the operation or the kind of its commit, and who made it."""
    word = row["operation"] or row["kind"]
    is_name = user is not None and user == short_user(user)
    author = f" by {truncate(sanitize(str(user)), _LONGEST_USER)}" if user and is_name else ""
    return f"version {row['version']}" + (f" ({sanitize(str(word))}{author})" if word else "")


def _repairs(rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[int, int]]:
    """Yield the places of two jumps of a number, where the second returns it to its value before the first.

    The commit of the first changes rows.
    """
    open_jumps: dict[tuple[object, object, object], int] = {}
    for at, row in enumerate(rows):
        measure = row["measure"], row["column"]
        earlier = open_jumps.pop((*measure, row["value"]), None)
        if earlier is not None:
            yield earlier, at
        elif row["kind"] not in MAINTENANCE_KINDS:
            open_jumps[(*measure, row["before"])] = at


def hint_of_change(a: int, b: int, can_diff_rows: Callable[[int, int], bool]) -> Hint:
    """Return the call that shows what differs between two versions: the rows if they can be read, or the metadata."""
    versions = {"a": a, "b": b}
    return Hint("table.diff_rows", versions) if can_diff_rows(a, b) else Hint("table.compare", versions)
