"""What went wrong with a table: the symptoms that `Table.health` states first."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

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
from snapshot_explorer.analysis.profile.profiles import Profile, profile_over, table_anomalies
from snapshot_explorer.analysis.retention import read_readability
from snapshot_explorer.analysis.rows.duplicates import duplicate_key_versions, duplicates
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.hints import Hint
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.history import Expectation, History, expected_reasons


def diagnose(
    history: History, version: int | None, expected: Sequence[Expectation] = (), *, key: Sequence[str] | None = None
) -> tuple[Symptom, ...]:
    """Return what went wrong, problems first: missing files, each version at which numbers jump, and doubled rows.

    Of one version, or of all for None; where nothing is wrong, a symptom says so. What the user expects is no problem.
    Reads the log once, and lists each folder with data files. A file that cannot be read is a problem and named; what
    is not supported is not checked.

    Args:
        key: The columns that identify a row, which are read. Without it, metadata alone shows doubled rows, of a column
            that the schema or its name makes the key.
    """
    statistics = cache(lambda: profile_over(history, None, None, exact=False, call=""))
    symptoms = (
        *symptoms_of(partial(_files, history, version), Hint("table.verify")),
        *symptoms_of(partial(_numbers, history, version, statistics), Hint("table.anomalies")),
        *symptoms_of(partial(_doubled_rows, history, version, key, statistics), Hint("table.anomalies")),
    )
    expectations = (*history.open_branch.expected, *expected)
    versions = sorted({item.version for item in expectations} & {*history.listing.versions})
    times = dict(zip(versions, history.committed_at(versions), strict=True)) if versions else {}
    return sorted_symptoms(symptoms, expected_reasons(expectations, times))


def _files(history: History, version: int | None) -> tuple[Symptom, ...]:
    readability = read_readability(history)
    return (readability_symptom(_at(readability.to_arrow(), version), readability.notes if version is None else ()),)


def _numbers(history: History, version: int | None, statistics: Callable[[], Profile]) -> tuple[Symptom, ...]:
    profile = statistics()
    anomalies = table_anomalies(history, None, None, AnomalyRules(), profile=profile).to_arrow()
    unread = sorted({*(history.listing.reachable if version is None else [version])} - {*profile.versions})
    load = history.table_format.version

    def users(versions: Sequence[int]) -> Mapping[int, str | None]:
        commits = history.commits_frame(versions)
        return dict(zip(commits["version"].to_pylist(), commits["user"].to_pylist(), strict=True))

    symptoms = jump_symptoms(
        anomalies,
        history.listing.reachable,
        lambda a, b: can_diff(load(a), load(b)),
        version=version,
        users=users,
    )
    if not unread:
        return symptoms
    problems = tuple(symptom for symptom in symptoms if symptom.is_problem)
    elsewhere = "" if problems or version is not None else " No number that metadata records jumps elsewhere."
    sentence = (
        f"Not checked: whether numbers jump at {runs_text(runs_of(unread))}, whose files are not known.{elsewhere}"
    )
    return (*problems, Symptom(is_problem=None, sentence=sentence, hint=Hint("table.anomalies")))


def _doubled_rows(
    history: History, version: int | None, key: Sequence[str] | None, statistics: Callable[[], Profile]
) -> tuple[Symptom, ...]:
    """Return whether rows are doubled; nothing where no key is known, or where readers merge the rows of a key."""
    number = history.listing.versions[-1] if version is None else version
    newest = history.table_format.version(number)
    names = key or newest.schema.primary_keys or _obvious_key(newest.arrow_schema, history.name)
    if not names or (key is None and newest.schema.is_merged):
        return ()
    hint = Hint("snapshot.duplicates", {"ref": number, "key": list(names)})
    shown = ", ".join(map(sanitize, names))
    if key is not None:
        repeated = duplicates(newest, names, None, title="")
        begins = () if version is not None else duplicate_key_versions(history, names, None)["version"].to_pylist()
        since = f" Several rows begin to have the same {shown} at {runs_text(runs_of(begins))}." if begins else ""
        sentence = f"{str(repeated.notes[0]).rstrip('.')} at version {number}.{since}"
        return (
            Symptom(is_problem=bool(len(repeated) or begins), sentence=sentence, hint=hint, versions=tuple(begins)),
        )
    proven = _proven_doubles(statistics(), names[0]) if len(names) == 1 else {}
    begins = [at for at in proven if version in (None, at)]
    if not begins:
        sentence = f"Not checked: whether rows are doubled, several with the same {shown}. Its values must be read."
        return (Symptom(is_problem=None, sentence=sentence, hint=hint),)
    rows, values = proven[begins[-1]]
    more = f" The same at {runs_text(runs_of(begins[:-1]))}." if begins[1:] else ""
    sentence = (
        f"At version {begins[-1]} rows are doubled: {rows:,} rows have at most {values:,} values of {shown}.{more}"
    )
    hint = Hint("snapshot.duplicates", {"ref": begins[-1], "key": list(names)})
    return (Symptom(is_problem=True, sentence=sentence, hint=hint, versions=tuple(begins)),)


def _obvious_key(schema: pa.Schema, table: str) -> tuple[str, ...]:
    """Return the column whose name makes it the key: `id`, or the table in the singular and `_id`; empty for none."""
    singular = table.rpartition(".")[2].lower()
    stems = {singular, singular.removesuffix("s"), singular.removesuffix("es"), singular.removesuffix("ies") + "y"}
    return next(((name,) for name in schema.names if name.lower() in {"id", *(f"{stem}_id" for stem in stems)}), ())


def _proven_doubles(profile: Profile, column: str) -> dict[int, tuple[int, int]]:
    """Return rows and the most values of a column of whole numbers at versions with more rows than values, ascending.

    By exact statistics alone. A version is left out if the one before it has doubled rows too.
    """
    proven: dict[int, tuple[int, int]] = {}
    was_doubled = False
    for row in profile.columns[column].to_pylist() if column in profile.columns else ():
        first, last, rows, nulls = row["min"], row["max"], row["rows"], row["null_count"]
        is_known = row["bounds"] is None and type(first) is int and None not in (last, rows, nulls)
        is_doubled = is_known and rows - nulls > last - first + 1
        if is_doubled and not was_doubled:
            proven[row["version"]] = rows - nulls, last - first + 1
        was_doubled = is_doubled
    return proven


def _at(rows: pa.Table, version: int | None) -> pa.Table:
    """Return the rows of a version; all for None."""
    return rows if version is None else rows.filter(pc.equal(rows["version"], version))
