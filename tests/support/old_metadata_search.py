"""Damage one metadata file of old versions before a table is opened, make every call over versions, and compare.

    python -m tests.support.old_metadata_search                          all tables, files, kinds of damage and calls
    python -m tests.support.old_metadata_search --sample 100 --seed 7    100 cases of each table, drawn at random

Every call must answer for the versions that can be read as it does on the intact table, name the others, and claim
nothing about them. An error is right only where every version, or the one that the call is about, cannot be read.
"""

import collections
import contextlib
import dataclasses
import itertools
import random
import re
import sys
import time
from collections.abc import Callable

from snapshot_explorer import check
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.history import history_of
from tests.support import fault_search, search_command
from tests.support.faults import Fault, Request, Store, registered
from tests.support.public_calls import opened

KINDS = ("removed", "emptied", "halved", "reversed", "denied")
"""What happens to the file. `reversed`: it has its size and other bytes. `denied`: it is listed, and not returned."""
METADATA = re.compile(r"(^|/)(snapshot|tag|manifest|changelog|schema|_delta_log|metadata|\.hoodie)/")
HINTS = re.compile(r"(LATEST|EARLIEST|_last_checkpoint|version-hint\.text|\.crc|hoodie\.properties(\.backup)?)$")
"""Files that no version needs."""
_OF_FILES = ["path", "partition", "bucket", "level", "rows", "size_bytes", "deletion_vector", "deleted_rows"]
_HUDI_COMPLETED = re.compile(r"\.hoodie/(timeline/)?[\d_]+\.(commit|deltacommit|replacecommit)$")
"""A commit whose completed file is gone is a pending one, to Hudi too: its files do not count."""
_CHANGE = ("version", "change", "list", "path", "deletion_vector", "level")
_NUMBERS = re.compile(r"\d+")
_UNKNOWN = (None, [], "other", "{}", "no", "metadata")
"""What may stand in place of a value of a commit that cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Damage:
    """What happens to one metadata file."""

    kind: str
    path: str
    """Below the table's folder."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """An answer that raises, contradicts the intact table, or does not name what could not be read."""

    table: str
    call: str
    damage: Damage
    outcome: str
    """raised, wrong, unnamed, foreign or hangs."""
    detail: str

    def __str__(self):
        return f"{self.outcome}: {self.table}: {self.call}: {self.damage.kind} {self.damage.path}: {self.detail}"


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A call over versions, and how its answer is compared."""

    make: Callable
    """Returns the answer of a table, and the text that names what could not be read."""
    difference: Callable
    """Returns what an answer claims beyond that of the intact table, or None."""
    newest: int = 0
    """How many of the newest versions it is about; 0 for all."""


def _rows(frame):
    return frame.to_arrow().to_pylist()


def _notes(frame):
    return " ".join(frame.notes)


def _by(rows, *names):
    return {tuple(repr(row[name]) for name in names): row for row in rows}


def _same_or_unknown(answer, truth, key, unknown=(None,)):
    """Return the first row that differs from the true one of its key by more than unknown values."""
    known = _by(truth, *key)
    for name, row in _by(answer, *key).items():
        other = known.get(name)
        if other is None:
            return f"{row} is not there"
        for column, value in row.items():
            if value != other[column] and value not in unknown:
                return f"{column} of {name} is {value!r}, not {other[column]!r}"
    return None


def _among(answer, truth):
    rest = collections.Counter(map(repr, answer)) - collections.Counter(map(repr, truth))
    return next(iter(rest), None)


def _lifetimes(table):
    found = table.lifetimes()
    files = {version: sorted(_rows_at(found, version)) for version in found.versions}
    return (found.to_arrow().to_pylist(), files, found.totals().to_pylist()), " ".join(found.notes)


def _rows_at(lifetimes, version):
    return lifetimes.files_at(version)["path"].to_pylist()


def _lifetimes_differ(answer, truth):
    (rows, files, totals), (true_rows, true_files, true_totals) = answer, truth
    for version, own in files.items():
        if version not in true_files:
            return f"version {version} is one of those that can be read"
        if own != true_files[version]:
            return f"the files of version {version} differ"
    true = collections.defaultdict(list)
    for row in true_rows:
        true[row["path"], row["level"]].append(row)
    for row in rows:
        others = true[row["path"], row["level"]]
        for exact in ("added_version", "added_at", "removed_at"):
            if row[exact] is not None and row[exact] not in [other[exact] for other in others]:
                return f"{exact} of {row['path']} is {row[exact]}, not {[other[exact] for other in others]}"
        if row["first_version"] < min(other["first_version"] for other in others):
            return f"{row['path']} begins before it was added"
    return _same_or_unknown(totals, true_totals, ["version"])


def _retention(table, **rule):
    found = table.retention(**rule)
    return (_rows(found.versions), sorted(_rows(found.freed), key=repr)), " ".join(found.notes) + repr(found)


def _retention_differs(answer, truth):
    freed = [{row["path"] for row in rows} for _, rows in (answer, truth)]
    if not freed[0] <= freed[1]:
        return f"would free {sorted(freed[0] - freed[1])[:2]}"
    outcomes = [{row["version"]: row["outcome"] for row in rows} for rows, _ in (answer, truth)]
    for version, outcome in outcomes[0].items():
        if outcome != outcomes[1].get(version) and outcome not in (None, "gone"):
            return f"version {version} is {outcome}, not {outcomes[1].get(version)}"
    return None


def _trace(table, where):
    found = table.trace(where)
    versions = [
        {name: row[name] for name in ("branch", "version", "rows", "stored_rows")} for row in _rows(found.versions)
    ]
    return (found.is_complete, versions, _rows(found.files)), repr(found)


def _trace_differs(answer, truth):
    found = _same_or_unknown(answer[1], truth[1], ["branch", "version"])
    if found:
        return found
    stored = {row["path"]: row["stored_rows"] for row in truth[2]}
    for row in answer[2]:
        if row["stored_rows"] not in (None, stored[row["path"]]):
            return f"{row['path']} stores {row['stored_rows']}, not {stored[row['path']]}"
    return None


def _blame(table, where, between=None):
    found = table.blame(where, between=between)
    return _rows(found.frame), " ".join(found.notes) + repr(found)


def _blame_differs(answer, truth):
    certain = [row for row in answer if row["change"] in ("insert", "update", "delete")]
    kept = ("version", "change", "before", "after")
    return _among(*([{name: row.get(name) for name in kept} for row in rows] for rows in (certain, truth)))


def _verified(table):
    found = table.verify()
    return (found.is_ok, {row["path"]: row["state"] for row in _rows(found.files)}), repr(found)


def _verified_differs(answer, truth):
    for path, state in answer[1].items():
        if path in truth[1] and state not in (None, truth[1][path]):
            return f"{path} is {state}"
    return None


def _orphans(table):
    found = table.orphans("0d")
    return {row["path"] for row in _rows(found.files) if row["is_orphan"]}, repr(found)


def _readability(table):
    found = table.verify().versions
    return [{name: row[name] for name in ("version", "readable", "missing_files")} for row in _rows(found)], repr(found)


def _frame(rows, text=None):
    return rows, text


def _framed(make, difference, **more):
    def answer(table):
        frame = make(table)
        return _rows(frame), f"{_notes(frame)} {frame!r}"

    return Call(answer, difference, **more)


def _of_versions(unknown=(None,), key=("version",)):
    return lambda answer, truth: _same_or_unknown(answer, truth, key, unknown)


def calls(table, where):
    """Return the calls over versions, by name."""
    rule = {"keep": "200h"} if table.format == "delta" else {"keep": "0d", "keep_last": 2}
    versions = table.versions()
    newest = f"{versions[-2]}..{versions[-1]}" if len(versions) > 1 else "earliest..latest"
    return {
        "lifetimes": Call(_lifetimes, _lifetimes_differ),
        "history": _framed(lambda t: t.history(), _of_versions(_UNKNOWN)),
        "file_changes": _framed(lambda t: t.at("latest").file_changes(since="earliest"), _of_versions(key=_CHANGE)),
        "file_changes of the newest": _framed(
            lambda t: t.at("latest").file_changes(since=versions[-2:][0]), _of_versions(key=_CHANGE), newest=2
        ),
        "readability": Call(_readability, _of_versions(_UNKNOWN)),
        "verify": Call(_verified, _verified_differs),
        "health_history": _framed(lambda t: t.health(between=".."), _of_versions()),
        "profile_over": _framed(lambda t: t.profile_over().frame, _of_versions(key=("version", "column"))),
        "anomalies": _framed(lambda t: t.anomalies(), lambda *_: None),
        "retention": Call(_retention, _retention_differs),
        "retention of few": Call(lambda t: _retention(t, **rule), _retention_differs),
        "trace": Call(lambda t: _trace(t, where), _trace_differs),
        "blame": Call(lambda t: _blame(t, where), _blame_differs),
        "blame of the newest": Call(lambda t: _blame(t, where, newest), _blame_differs, newest=2),
        "bisect": Call(lambda t: _bisected(t, "count(*) < 0"), lambda *_: None, newest=1),
        "bisect metadata": Call(lambda t: _bisected(t, "files < 0"), lambda *_: None),
        "orphans": Call(_orphans, lambda answer, truth: next(iter(answer - truth), None)),
        "doctor": Call(lambda t: (None, repr(t.health())), lambda *_: None),
        "check": Call(lambda t: (None, repr(check(t, since="3650d"))), lambda *_: None),
        "files": Call(
            lambda t: (t.current.files().to_arrow().select(_OF_FILES).to_pylist(), ""),
            _of_versions(key=("path", "deletion_vector")),
            newest=1,
        ),
        "compare": Call(lambda t: (None, repr(t.compare(*newest.split("..")))), lambda *_: None, newest=2),
    }


def _bisected(table, condition):
    found = table.bisect(condition)
    return None, repr(found)


class DamagedHistory:
    """A table, its calls and their true answers, and its metadata files."""

    def __init__(self, name, folder):
        self.name = name
        self.store = Store(folder, name.replace("/", "-"))
        self._intact = Store(folder, name.replace("/", "-"))
        self._prefix = f"{self.store.root}/"
        table = opened(self.store)
        self.versions = table.versions()
        columns = [column.name for column in table.at("latest").schema.columns]
        self.calls = calls(table, f'"{columns[0]}" is not null' if columns else "true")
        self._truths = {}

    def truth(self, call):
        """Return what a call answers on the intact table; an error of ours as it is."""
        if call not in self._truths:
            try:
                self._truths[call] = self.calls[call].make(opened(self._intact))
            except SnapshotExplorerError as error:
                self._truths[call] = error
        return self._truths[call]

    def damages(self):
        """Yield every damage to a metadata file."""
        for path in self.store.files:
            below = path.removeprefix(self._prefix)
            if METADATA.search(below) and not HINTS.search(below):
                for kind in KINDS:
                    is_pending = kind == "removed" and _HUDI_COMPLETED.search(below)
                    if not is_pending and (kind != "emptied" or self.store.files[path]):
                        yield Damage(kind, below)

    @contextlib.contextmanager
    def damaged(self, damage):
        """Damage the file until the end of the block."""
        path = self._prefix + damage.path
        before = dict(self.store.files)
        content = before[path]
        if damage.kind == "removed":
            del self.store.files[path]
        elif damage.kind == "denied":
            self.store.heed(Fault("denied", Request("read", path, 0), lasts=True))
        else:
            changed = {"emptied": b"", "halved": content[: len(content) // 2], "reversed": content[::-1]}
            self.store.files[path] = changed[damage.kind]
        try:
            yield
        finally:
            self.store.heed(None)
            self.store.files.clear()
            self.store.files.update(before)

    def unreadable(self):
        """Return the versions whose files cannot be read now; None if the table does not open at its newest version.

        The first ones may look as if they had expired: they are not among these.
        """
        try:
            table = opened(self.store)
        except SnapshotExplorerError:
            return None
        if table.current.version != self.versions[-1]:
            return None
        result = set()
        listed = history_of(table).listing.versions
        # Numbers are not known of versions that only a file of Hudi's archive names.
        named = self.versions if table.format != "hudi" else listed
        for version in (one for one in self.versions if one >= min(table.versions()) and one in named):
            try:
                table.at(version).files()
            except SnapshotExplorerError:
                result.add(version)
        return result

    def find(self, damage, call):
        """Return what is wrong with the answer of a call, or None."""
        if isinstance(self.truth(call), SnapshotExplorerError):
            return None
        with self.damaged(damage):
            gone = None if call == "orphans" and self._looks_expired() else self.unreadable()
            if gone is None:
                # The newest version needs the file, or is the one that is gone; or nothing needs the first one's files.
                return None
            try:
                with fault_search.ended_after(fault_search.SECONDS):
                    answer = self.calls[call].make(opened(self.store))
            except SnapshotExplorerError as error:
                return self._raised(damage, call, gone, error)
            except fault_search.Hangs:
                return Finding(self.name, call, damage, "hangs", "")
            except Exception as error:  # noqa: BLE001 - it is what is searched for
                return Finding(self.name, call, damage, "foreign", fault_search.spot_of(error))
        if difference := self.difference(call, answer):
            return Finding(self.name, call, damage, "wrong", difference)
        if unnamed := self._unnamed(damage, call, gone, answer):
            return Finding(self.name, call, damage, "unnamed", f"{unnamed} in {answer[1]!r:.300}")
        return None

    def _looks_expired(self):
        """Return whether the first version looks as if it had expired."""
        with contextlib.suppress(SnapshotExplorerError):
            return self.versions[0] < min(opened(self.store).versions(), default=self.versions[0])
        return False

    def difference(self, call, answer):
        """Return what an answer claims beyond that of the intact table, or None."""
        truth = self.truth(call)
        return None if isinstance(truth, SnapshotExplorerError) else self.calls[call].difference(answer[0], truth[0])

    def _unnamed(self, damage, call, gone, answer):
        """Return the versions that an answer is about, that cannot be read, and that it does not name."""
        needed = sorted(gone.intersection(self.versions[-self.calls[call].newest :]))
        truth = self.truth(call)[0]
        depends = answer[0] is None or answer[0] != truth
        return needed if depends and needed and not _names(answer[1], needed, damage) else []

    def _raised(self, damage, call, gone, error):
        needed = self.versions[-self.calls[call].newest :]
        if gone >= set(self.versions) or (self.calls[call].newest and gone & set(needed)):
            return None
        return Finding(
            self.name, call, damage, "raised", f"{type(error).__name__}: {str(error)[:160]}; gone {sorted(gone)}"
        )


def _names(text, versions, damage):
    """Return whether a text names the damaged file, or each of the versions: by its number, or in a range."""
    if damage.path.rpartition("/")[2][:40] in text:
        return True
    numbers = {int(number) for number in _NUMBERS.findall(text)}
    ranges = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) (?:to|and|or) (\d+)", text)]
    return all(version in numbers or any(first <= version <= last for first, last in ranges) for version in versions)


def run(names, *, kinds=KINDS, sample=None, seed=0, seconds=None, call="", path=""):
    """Run cases; return how many there were by what came of them, and the findings."""
    counts, findings, began = collections.Counter(), [], time.monotonic()
    folders = fault_search.tables()
    with registered():
        for name in names:
            try:
                history = DamagedHistory(name, folders[name])
            except SnapshotExplorerError:
                counts["refused tables"] += 1
                continue
            made = [one for one in history.calls if re.search(call, one)]
            damages = [one for one in history.damages() if one.kind in kinds and re.search(path, one.path)]
            cases = list(itertools.product(damages, made))
            if sample is not None:
                cases = random.Random(f"{seed} {name}").sample(cases, min(sample, len(cases)))
            counts["tables"] += 1
            for damage, one in cases:
                finding = history.find(damage, one)
                counts["cases"] += 1
                counts[finding.outcome if finding else "right"] += 1
                findings += [finding] if finding else []
                if seconds and time.monotonic() - began > seconds:
                    return counts, findings
    return counts, findings


def _group(finding):
    path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "N", finding.damage.path)
    return finding.outcome, finding.table.partition("/")[0], finding.call, finding.damage.kind, path


if __name__ == "__main__":
    sys.exit(
        search_command.main(
            __doc__, run, kinds=KINDS, group=_group, options=[("path", "only metadata files whose paths match")]
        )
    )
