"""Plant a fault in every request of every public call of tables of all formats, and look what comes of it.

    python -m tests.support.fault_search                      all: tables, calls, requests and faults
    python -m tests.support.fault_search --shard 0/2          one half of it, for two processes
    python -m tests.support.fault_search --sample 100 --seed 7    a hundred of each table, by chance

What may come of it: the right answer, or an error of ours. A line is printed for everything else, with counts at the
end; the exit status says whether there was any.

What no reader can see is passed over, and no more than that:

- A flipped bit in a file for which the format keeps no checksum may change a value, a name or a count. All files are
  such but Delta's deletion vectors.
- Of a Delta table whose log stays damaged, history and commits are told as far as the commits say it: what takes the
  damaged file to be counted is null.
- A file that the storage says is not there, or a folder that it shows as empty or shorter, is the same to us as one
  that was deleted. The answer must be the one that a table gives whose files are gone after it was opened.
"""

import argparse
import collections
import dataclasses
import gc
import itertools
import json
import logging
import random
import re
import signal
import sys
import time
import traceback
import zlib
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from snapshot_explorer import samples
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.storage import files as storage_files
from tests.support.faults import KINDS, LISTINGS, Fault, FaultyFileSystem, Store, kinds_for, registered
from tests.support.public_calls import Failed, answer, arguments_for, calls, drawings, notebook_calls, opened, proofs

DATA = Path(__file__).parents[1] / "data"
FORMATS = ("paimon", "delta", "iceberg", "hudi", "ducklake")
"""The folders of tables in tests/data; one that is not there is left out."""
IN_CATALOGS = {"ducklake/parts": "/parts.sqlite::main.events", "ducklake/shop": "/shop.ducklake::main.orders"}
"""What follows the folder in the path of a table in a catalog."""
SECONDS = 60
"""How long a call may take until it hangs."""
LASTING = ("fails", "page", "emptied", "missing", "list emptied")
"""Kinds that are also tried on all later requests for the same."""
AGAIN = ("fails", "page", "emptied", "list emptied", "stale hint", "missing")
"""Kinds after which the same table is asked again, when all is well again."""
RANGED = ("to_arrow", "count where", "changelog")
"""Calls that are also made with data files that are read by ranges, not whole."""


SAYS = re.compile(
    r"planted|is not there|does not exist|expired|[Cc]ould not|can ?not|broken|corrupt|damaged|cut short|missing|"
    r"are supported|ends at |is no |is not a manifest|is empty, although|has no |does not return|vanished|"
    r"\d+ (bytes|entries)"
)
"""What a picture says of a part that could not be read."""
_STATES = re.compile(
    r"another size than recorded|have another size|Not checked: |cannot be (?:read|loaded)|are unknown: |"
    r"\d+ of [\d,]+ versions cannot be loaded|\d bytes, but \d+ by the list|"
    r"is not readable metadata|is not a readable |is damaged: |it was cut short or replaced|"
    r"no checkpoint that can be read|a part of its log is missing|(?:copied|emptied) or damaged|"
    r"exist is unknown|what was committed there is unknown|table\.verify\(|"
    r"Could not read |More files may be deleted: |vanished each of \d+ times"
)
"""What an answer states of files that are damaged."""
SKIPPING = ("blame", "bisect metadata", "bisect rows", "profile exact")
"""Calls over many versions, which pass over those that cannot be read and name them."""
_CHECKPOINT = re.compile(r"_delta_log/(?:_sidecars/)?(\d{20})\.checkpoint\.")


class Hangs(BaseException):
    """A call took too long."""


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A fault in a call of a table."""

    table: str
    call: str
    fault: Fault
    ranged: bool = False

    def __str__(self):
        request = self.fault.request
        path = request.path.partition("/")[2].partition("/")[2]
        lasts = ", from then on" if self.fault.lasts else ""
        ranged = ", by ranges" if self.ranged else ""
        where = f"{request.operation} {path} #{request.occurrence}"
        return f"{self.table}: {self.call}{ranged}: {self.fault.kind}{lasts} at {where}"


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What came of a case that should not."""

    case: Case
    outcome: str
    """foreign, wrong, hangs, or wrong afterwards."""
    detail: str


def tables():
    """Return the folders of the tables, by name."""
    folders = [folder for kind in FORMATS if (folder := DATA / kind).is_dir()]
    found = {f"{folder.name}/{path.name}": path for folder in folders for path in sorted(folder.iterdir())}
    found = {name: path for name, path in found.items() if path.parent.name != "ducklake" or name in IN_CATALOGS}
    home = Path(samples.__file__).parent
    return found | {f"samples/{name}": home / name for name in samples.names()}


@contextmanager
def ended_after(seconds):
    def stop(*_):
        raise Hangs

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Bench:
    """A table, its calls, what they answer when all is well, and what they ask for."""

    def __init__(self, name, folder):
        self.name = name
        table = IN_CATALOGS.get(name, "")
        self.store = Store(folder, name.replace("/", "-"), table)
        given = arguments_for(opened(self.store))
        opened(self.store)._repr_mimebundle_()  # What a card says only once per table is said.
        self.calls = {
            "open": lambda t: (t.current.version, t.format, t.at("latest").schema),
            **calls(given),
            **drawings(given),
            **notebook_calls(given),
            **proofs(given, opened(Store(folder, name.replace("/", "-") + "-copy", table))),
        }
        self._truths, self._second_truths = {}, {}

    def truth(self, call, *, ranged):
        """Return a call's answer when all is well, and its requests."""
        key = call, ranged
        if key not in self._truths:
            table = opened(self.store)
            self.store.heed(None)
            found = self.run(call, table)
            self._truths[key] = found, self.store.requests()
        return self._truths[key]

    def run(self, call, table):
        """Return the answer of a call in a form to be compared; `result` keeps it as it is, None after an error."""
        self.result = None

        def kept():
            self.result = self.calls[call](opened(self.store) if call == "open" else table)
            return self.result

        return answer(kept)

    def cases(self, choice=None):
        """Yield all cases, or those of a choice."""
        choice = choice or Choice()
        for call in self.calls:
            if not re.search(choice.call, call):
                continue
            for ranged in (False, True) if call in RANGED else (False,):
                with _ranges(ranged):
                    _, requests = self.truth(call, ranged=ranged)
                for request in requests:
                    for kind in kinds_for(request):
                        for lasts in (False, True) if kind in LASTING else (False,):
                            case = Case(self.name, call, Fault(kind, request, lasts=lasts), ranged)
                            if choice.takes(case):
                                yield case

    def find(self, case):
        """Return what comes of a case that should not, or None; and whether the fault struck."""
        with _ranges(case.ranged):
            return self._find(case)

    def _find(self, case):
        truth, _ = self.truth(case.call, ranged=case.ranged)
        self.store.heed(None)
        table = opened(self.store)
        self.store.heed(case.fault)
        try:
            with ended_after(SECONDS):
                found = self.run(case.call, table)
        except Hangs:
            return Finding(case, "hangs", "")
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            return Finding(case, "foreign", spot_of(error))
        finally:
            struck = self.store.struck
            self.store.heed(None)
        if struck and not self._is_right(found, truth, case):
            return Finding(case, "wrong", difference_of(truth, found))
        if case.fault.kind in AGAIN and not case.fault.lasts and case.call != "open":
            return self._again(case, table, truth)
        return None

    def _again(self, case, table, truth):
        try:
            with ended_after(SECONDS):
                found = self.run(case.call, table)
        except Hangs:
            return Finding(case, "hangs", "afterwards")
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            return Finding(case, "foreign", f"afterwards: {spot_of(error)}")
        if are_same(found, truth) or (
            _CHECKPOINT.search(case.fault.request.path) and self._is_right(found, truth, case)
        ):
            return None
        if are_same(found, self._second_truth(case)):
            return None
        return Finding(case, "wrong afterwards", difference_of(truth, found))

    def _second_truth(self, case):
        """Return what a call answers the second time when all is well.

        Which of Hudi's oldest versions lack files is known once the first call has added all commits up.
        """
        key = case.call, case.ranged
        if key not in self._second_truths:
            table = opened(self.store)
            self.run(case.call, table)
            self._second_truths[key] = self.run(case.call, table)
        return self._second_truths[key]

    def _is_right(self, found, truth, case):  # noqa: PLR0911 - one for each way to be right
        if isinstance(found, SnapshotExplorerError) or are_same(found, truth) or differs_by_errors_only(found, truth):
            return True
        if is_text(found) and SAYS.search(new_lines(found, truth)):
            return True  # a picture that says so
        if case.call in SKIPPING and re.search("cannot be read|(is|are) missing", repr(found)):
            return True  # the version is named
        if states_damage(found, truth) or (case.call.startswith("bisect") and _suggests_less(found, truth)):
            return True
        kind, path = case.fault.kind, case.fault.request.path
        if isinstance(truth, dict) and isinstance(found, dict) and "complete" in truth:
            may_be_gone = kind == "missing" or case.fault.request.operation == "list"
            is_right = claims_no_more(found, truth, may_be_gone=may_be_gone)
            return is_right or (kind == "flipped" and not path.endswith(".bin")) or found in self._alternatives(case)
        if is_text(found) and kind == "missing" and case.fault.lasts and _has_dashes_for_words(found, truth):
            return True  # a count that needs the missing file is unknown
        if kind == "flipped":
            return not path.endswith(".bin")
        if kind == "missing" and _lacks_what_it_names(found, truth):
            return True
        stays_damaged = case.fault.lasts and path.rpartition("/")[0].endswith("/_delta_log")
        is_in_timeline = "/.hoodie/" in path  # a commit without its statistics has files, and no counts of them
        is_named = re.search("/(?:tag|branch)/", path)  # what has the name is unknown
        if (stays_damaged or is_in_timeline or is_named) and lacks_counts_only(found, truth):
            return True
        return any(_is_mixed(found, other, truth) for other in self._alternatives(case))

    def _alternatives(self, case):
        """Yield the answers of the table as the storage shows it: something is gone since it was opened."""
        request, kind = case.fault.request, case.fault.kind
        if checkpoint := _CHECKPOINT.search(request.path):
            # A checkpoint that cannot be read is replaced by what came before it.
            start = f"{self.store.root}/_delta_log/{checkpoint[1]}.checkpoint"
            yield self._without(case, [name for name in self.store.files if name.startswith(start)])
        if request.operation == "list":
            in_log = request.path in (f"{self.store.root}/snapshot", f"{self.store.root}/_delta_log")
            # What was there when the table was opened does not vanish.
            if not in_log or case.call == "open":
                listed = [one["name"] for one in self._not_listed(request.path, kind)]
                # Hudi's properties are read by their name, not from the listing.
                files = [name for name in listed if name in self.store.files and not name.endswith(".properties")]
                yield self._without(case, files)
                yield self._without(case, listed)
        elif kind == "missing":
            yield self._without(case, [request.path])
            if not case.fault.lasts:
                # Seen once and then no more, as a file that is deleted while it is read.
                yield self._lasting(case)

    def _without(self, case, gone):
        table = opened(self.store)
        with self.store.without(gone):
            return self.run(case.call, table)

    def _lasting(self, case):
        table = opened(self.store)
        self.store.heed(dataclasses.replace(case.fault, lasts=True))
        try:
            return self.run(case.call, table)
        finally:
            self.store.heed(None)

    def _not_listed(self, folder, kind):
        try:
            before = FaultyFileSystem(store=self.store).listed_files(folder)
        except FileNotFoundError:
            return []
        after = LISTINGS.get(kind, lambda _: [])(before)
        return [one for one in before if one not in after]


@contextmanager
def _ranges(wanted):
    """Read data files by ranges, however small they are."""
    if not wanted:
        yield
        return
    with mock.patch.object(storage_files, "_WHOLE_FILE_BYTES", -1):
        yield


def is_text(found):
    return isinstance(found, tuple) and found[0] == "Drawn"


def states_damage(answer, truth):
    """Return whether an answer states, other than the true one, what is missing or cannot be read."""
    return bool(set(_STATES.findall(repr(answer))).difference(_STATES.findall(repr(truth))))


_UNKNOWN = {None, "unreadable"}
_GONE = {"missing", 0}


def claims_no_more(found, truth, *, may_be_gone):
    """Return whether all that `proofs` claim is true or unknown; and gone only what the storage says is not there."""
    if found == truth:
        return True
    if found["complete"][()] == [True]:
        return False
    allowed = _UNKNOWN | _GONE if may_be_gone else _UNKNOWN
    return all(
        value in allowed or value == known
        for name, claims in found.items()
        if name != "complete"
        for key, values in claims.items()
        for value, known in zip(values, truth[name].get(key, values), strict=True)
    )


def are_same(found, truth):
    if isinstance(truth, SnapshotExplorerError):
        return isinstance(found, SnapshotExplorerError)
    return not isinstance(found, SnapshotExplorerError) and found == truth


def differs_by_errors_only(found, truth):
    """Return whether each part is as it should be, or could not be read."""
    if not all(isinstance(one, list | tuple) for one in (found, truth)) or len(found) != len(truth):
        return False
    return all(isinstance(a, Failed) or a == b for a, b in zip(found, truth, strict=True))


def _is_mixed(found, one, other):
    """Return whether each part, and each row, is as one answer or the other has it: both were seen while reading."""
    if found in (one, other) or isinstance(found, Failed):
        return True
    if all(isinstance(answer, str) for answer in (found, one)):
        return _ADVICE.sub("", found) == _ADVICE.sub("", one)
    if not all(isinstance(answer, list | tuple) for answer in (found, one, other)):
        return False
    if len(found) == len(one) == len(other):
        return all(_is_mixed(*parts) for parts in zip(found, one, other, strict=True))
    return len(found) in (len(one), len(other)) and all(part in one or part in other for part in found)


_ADVICE = re.compile(r" in faulty://.*?open the table again\.")
"""What an error says after the name of a file that is not there, and a reason does not."""


def _lacks_what_it_names(found, truth):
    """Return whether the rows of a frame are the same, in any order, but for what is null, and a note says why."""
    if not all(isinstance(answer, list) and len(answer) == 2 for answer in (found, truth)):
        return False
    (frame, notes), (known, known_notes) = found, truth
    if not all(isinstance(one, list) and len(one) == 2 for one in (frame, known)) or frame[0] != known[0]:
        return False
    is_said = isinstance(notes, list) and any(SAYS.search(note) or "is gone" in note for note in notes)
    left = list(known[1])
    for row in frame[1] if is_said and notes != known_notes else [None]:
        same = next((one for one in left if row is not None and lacks_counts_only(row, one)), None)
        if same is None:
            return False
        left.remove(same)
    return not left


def lacks_counts_only(found, truth):
    """Return whether the answers are the same but for what is null, or a part that could not be read."""
    if found == truth or found in (None, "None") or isinstance(found, Failed):
        return True
    if is_text(found) and is_text(truth):
        return set(words_of(found)) <= {*words_of(truth), "-", "no"}
    if not all(isinstance(answer, list | tuple) for answer in (found, truth)) or len(found) != len(truth):
        return False
    return all(lacks_counts_only(*parts) for parts in zip(found, truth, strict=True))


def _suggests_less(found, truth):
    """Return whether a bisection is the same but for times that are null, and calls that it does not suggest."""
    if _are_hints(truth) and _are_hints(found):
        return all(hint in truth for hint in found)
    if found in (truth, "None"):
        return True
    if not all(isinstance(answer, list | tuple) for answer in (found, truth)) or len(found) != len(truth):
        return False
    return all(_suggests_less(*parts) for parts in zip(found, truth, strict=True))


def _are_hints(value):
    return isinstance(value, list) and all(isinstance(one, tuple) and one[0] == "Hint" for one in value)


def _has_dashes_for_words(found, truth):
    """Return whether two pictures are the same, word by word, but for words that are dashes in the one found."""
    words = [words_of(one) for one in (found, truth)]
    return len(words[0]) == len(words[1]) and all(a == b or not a.strip("-") for a, b in zip(*words, strict=True))


def words_of(picture):
    text = picture if isinstance(picture, str) else picture[1][0]
    return text.split()


def new_lines(found, truth):
    return "\n".join(set(str(found).split("\\n")).difference(str(truth).split("\\n")))


def spot_of(error):
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "snapshot_explorer" in frame.filename] or frames
    last = ours[-1]
    place = last.filename.partition("snapshot_explorer/")[2] or last.filename
    return f"{type(error).__name__} at {place}:{last.lineno} in {last.name}: {str(error)[:150]}"


def difference_of(truth, found):
    if isinstance(found, SnapshotExplorerError):
        return f"{type(found).__name__}: {str(found)[:200]}"
    a, b = str(truth), str(found)
    place = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(place - 40, 0)
    return f"...{a[start : place + 80]!r} became {b[start : place + 80]!r}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which of the cases to run; without anything all of them."""

    call: str = ""
    """What the names of calls match."""
    kinds: tuple[str, ...] = ()
    """Kinds of faults; all without it."""
    but: str | None = None
    """What kind, operation and path do not match."""
    shard: tuple[int, int] = (0, 1)
    """Which share of how many."""
    sample: int | None = None
    """How many of each table, by chance, as evenly over the calls as their requests allow."""
    seed: int = 0
    """What chance begins with."""

    def takes(self, case):
        fault, (number, count) = case.fault, self.shard
        if self.kinds and fault.kind not in self.kinds:
            return False
        if self.but and re.search(self.but, f"{fault.kind} at {fault.request.operation} {fault.request.path}"):
            return False
        return count == 1 or zlib.crc32(str(case).encode()) % count == number

    def of(self, bench):
        """Return the cases, the same ones for the same seed."""
        return bench.cases(self) if self.sample is None else itertools.islice(self._drawn(bench), self.sample)

    def _drawn(self, bench):
        """Yield cases by chance, one of each call in turn: a call is made when its turn comes."""
        chance = random.Random(self.seed)
        turns = [call for call in bench.calls if re.search(self.call, call)]
        chance.shuffle(turns)
        left = {}
        while turns:
            for call in tuple(turns):
                if call not in left:
                    left[call] = list(bench.cases(dataclasses.replace(self, call=f"^{re.escape(call)}$")))
                    chance.shuffle(left[call])
                if left[call]:
                    yield left[call].pop()
                else:
                    turns.remove(call)


def _pattern(case):
    """Return what kind of file a fault is at."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "N", case.fault.request.path.partition("/")[2].partition("/")[2])


def run(names, choice, *, seconds=None):
    """Run cases; return how many faults were planted, by what came of them, and what should not have come."""
    counts, groups, began = collections.Counter(), {}, time.monotonic()
    folders = tables()
    with registered():
        for name in names:
            try:
                bench = Bench(name, folders[name])
            except SnapshotExplorerError:
                counts["refused tables"] += 1
                continue
            counts["tables"] += 1
            counts["calls"] += len(bench.calls)
            for case in choice.of(bench):
                finding = bench.find(case)
                counts["faults"] += 1
                counts[finding.outcome if finding else "right, or our error"] += 1
                if finding:
                    groups.setdefault(_group(finding), []).append(finding)
                if seconds and time.monotonic() - began > seconds:
                    return counts, groups
            gc.collect()
    return counts, groups


def _group(finding):
    path = _pattern(finding.case)
    detail = re.sub(r": .*", "", finding.detail) if finding.outcome == "foreign" else ""
    return finding.outcome, finding.case.call, finding.case.fault.kind, path, detail


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="", help="only tables whose names match")
    parser.add_argument("--call", default="", help="only calls whose names match")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind of fault; may be repeated")
    parser.add_argument("--but", help="not those whose kind, operation and path match")
    parser.add_argument("--shard", default="0/1", help="one share of several, such as 0/2")
    parser.add_argument("--sample", type=int, help="so many faults of each table, by chance")
    parser.add_argument("--seed", type=int, default=0, help="what chance begins with")
    parser.add_argument("--seconds", type=float, help="end after this time, wherever it is")
    given = parser.parse_args()
    logging.disable()
    number, count = map(int, given.shard.split("/"))
    choice = Choice(
        call=given.call,
        kinds=tuple(given.kind or ()),
        but=given.but,
        shard=(number, count),
        sample=given.sample,
        seed=given.seed,
    )
    counts, groups = run([name for name in tables() if re.search(given.table, name)], choice, seconds=given.seconds)
    for (outcome, call, kind, path, detail), found in sorted(groups.items()):
        print(f"{outcome}: {call}: {kind} at {path} ({len(found)}x) {detail}")  # noqa: T201 - a command
        print(f"    {found[0].case}\n    {found[0].detail}")  # noqa: T201 - a command
    print(json.dumps(counts, indent=1))  # noqa: T201 - a command
    return 1 if groups else 0


if __name__ == "__main__":
    sys.exit(main())
