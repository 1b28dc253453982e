"""Damage one file of a table before it is opened, make every public call, and compare the answers with the true ones.

    python -m tests.support.damage_search                          all tables, files, kinds of damage and calls
    python -m tests.support.damage_search --sample 100 --seed 7    100 cases of each table and kind, drawn at random

The kinds of damage:

- another of its size: the file is replaced by another file of its kind that has the same size
- another: the file is replaced by another file of its kind that has another size
- emptied: the file has 0 bytes
- removed: the file of a version in the middle does not exist: a snapshot, a commit, or a manifest list of Iceberg

An answer must be the true one, an error of this package, or state what could not be read. `UNRECORDED` lists the files
whose replacement nothing recorded can tell: cases of those are counted apart.
"""

import collections
import contextlib
import dataclasses
import itertools
import random
import re
import sys
import time

from snapshot_explorer.errors import SnapshotExplorerError
from tests.support import fault_search, search_command
from tests.support.faults import registered
from tests.support.not_checked import unfounded
from tests.support.public_calls import comparable, opened

KINDS = ("another of its size", "another", "emptied", "removed")
_VERSION = re.compile(r"^(snapshot/snapshot-(\d+)|_delta_log/(\d{20})\.json)$")
_MANIFEST_LIST = re.compile(r"(^|/)snap-[^/]*\.avro$")
"""The files of Iceberg that each describe one version."""
_UNIQUE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}|\d+")
_PARTITIONS = re.compile(r"(^|/)[^/]+=[^/]*(?=/)")
_HUDI_COMMIT = re.compile(r"\.hoodie/(timeline/)?[\d_]+\.(commit|deltacommit|replacecommit)$")
UNRECORDED = {
    r"_delta_log/\d{20}\.json$": "nothing names the content of a commit",
    r"_delta_log/\d{20}\.crc$|_last_checkpoint$": "a hint, which may be wrong",
    r"_delta_log/\d{20}\.(checkpoint\.parquet|\d{20}\.compacted\.json)$": "only the hint of the newest names a size",
    r"(^|/)(LATEST|EARLIEST|version-hint\.text)$": "a hint, which may be wrong",
    r"(^|/)(tag/tag-|consumer/|statistics/)": "its name says nothing about its content",
    r"/\.commits_\.archive\.|/history/(manifest_\d+|_version_)$": "nothing names the content of Hudi's archive",
    _HUDI_COMMIT.pattern: "nothing names the content of a commit",
    r"\.(savepoint|clean|rollback|inflight|requested)$|hoodie\.properties": "its name says nothing about its content",
    r"(^|/)manifest/index-manifest-": "snapshots record the name of an index manifest alone",
    r"metadata\.json(\.gz)?$|\.gz\.metadata\.json$": "nothing names the content of a metadata file",
}
"""Files whose content nothing describes, by a pattern of their paths."""
SAME_SIZE = {
    r"\.(parquet|orc|avro)$": "the size and the number of rows are the same; bounds are not compared",
    r"\.log\.\d+_[\d-]+$": "the size and the instants of the blocks are the same",
    r"(^|/)manifest/manifest-": "the size and the counts are the same",
    r"(^|/)deletion_vector_[^/]*\.bin$": "the size and the number of deleted rows are the same",
}
"""Likewise, where the other file has the same size."""
_CHECKPOINT = re.compile(r"_delta_log/(?:_sidecars/)?(\d{20})\.checkpoint\.")
"""A checkpoint that cannot be read, or has 0 bytes, is ignored, as Delta does: the answer is that without it."""
_LISTS = re.compile(r"(^|/)manifest/manifest-list-")
_HUDI_ARCHIVE = re.compile(r"/\.commits_\.archive\.")
_HUDI_TIMELINE = re.compile(r"(^|/)\.hoodie/")
_CUT = re.compile(r"[\w./=-]{20,}(?=…)")
"""Paths that are cut short where they are drawn."""
_UNKNOWN = (None, "None", "other", "'other'", "{}", "'{}'", "'no'")
"""Values of what is unknown of a commit that is missing, and the answer that a version cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Damage:
    """What happens to one file."""

    kind: str
    path: str
    """Below the table's folder."""
    source: str | None = None
    """The file that replaces it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """An answer that is neither true, nor an error of ours, nor states the damage."""

    table: str
    call: str
    damage: Damage
    outcome: str
    """wrong, unfounded (it says yes of files that nobody looked for), foreign or hangs."""
    detail: str

    def __str__(self):
        return f"{self.outcome}: {self.table}: {self.call}: {self.damage}: {self.detail}"


def kind_of(path):
    """Return what files of the same kind have in common: the path without ids, numbers and partitions."""
    return _UNIQUE.sub("N", _PARTITIONS.sub("", path))


class DamagedTables:
    """A table, its calls and their true answers, and the files that are damaged."""

    def __init__(self, name, folder):
        self.bench = fault_search.Bench(name, folder)
        self.name = name
        self.store = self.bench.store
        self._prefix = f"{self.store.root}/"

    def damages(self):
        """Yield every damage, of replacements one per file and kind."""
        contents = {path.removeprefix(self._prefix): content for path, content in self.store.files.items()}
        versions = sorted(number for path in contents if (number := _number(path)) is not None)
        for path, content in contents.items():
            others = [
                other
                for other in contents
                if kind_of(other) == kind_of(path) and contents[other] != content and contents[other]
            ]
            for kind, is_same_size in (("another of its size", True), ("another", False)):
                source = next((one for one in others if (len(contents[one]) == len(content)) == is_same_size), None)
                if source is not None:
                    yield Damage(kind, path, source)
            if content:
                yield Damage("emptied", path)
            if _number(path) in versions[1:-1] or _MANIFEST_LIST.search(path):
                yield Damage("removed", path)

    @contextlib.contextmanager
    def damaged(self, damage):
        """Change the file until the end of the block."""
        path = self._prefix + damage.path
        before = dict(self.store.files)
        if damage.kind == "removed":
            del self.store.files[path]
        else:
            self.store.files[path] = b"" if damage.source is None else before[self._prefix + damage.source]
        try:
            yield
        finally:
            self.store.files.clear()
            self.store.files.update(before)

    def find(self, damage, call):
        """Return what is wrong with the answer of a call; None where nothing is."""
        truth, _ = self.bench.truth(call, ranged=False)
        try:
            with self.damaged(damage), fault_search.ended_after(fault_search.SECONDS):
                try:
                    answer = self.bench.run(call, opened(self.store))
                    said = [] if answer == truth else unfounded(call, self.bench.result)
                except SnapshotExplorerError:
                    return None
        except fault_search.Hangs:
            return Finding(self.name, call, damage, "hangs", "")
        except Exception as error:  # noqa: BLE001 - it is what is searched for
            return Finding(self.name, call, damage, "foreign", fault_search.spot_of(error))
        if said:
            return Finding(self.name, call, damage, "unfounded", said[0])
        if self._is_right(answer, truth, damage, call):
            return None
        return Finding(self.name, call, damage, "wrong", fault_search.difference_of(truth, answer))

    def _is_right(self, answer, truth, damage, call):
        if is_right(answer, truth, call) or self._is_without_checkpoint(answer, damage, call):
            return True
        if isinstance(answer, dict) and isinstance(truth, dict):
            return _claims_no_more(answer, truth, damage)
        if damage.kind == "removed":
            return self._lacks_only(answer, truth, call)
        # Or it is a picture that names the damaged file.
        return any(damage.path.startswith(name) and name not in repr(truth) for name in _CUT.findall(repr(answer)))

    def _is_without_checkpoint(self, answer, damage, call):
        checkpoint = _CHECKPOINT.search(damage.path)
        if checkpoint is None:
            return False
        start = f"{self._prefix}_delta_log/{checkpoint[1]}.checkpoint."
        with self.store.without([path for path in self.store.files if path.startswith(start)]):
            try:
                return answer == self.bench.run(call, opened(self.store))
            except SnapshotExplorerError:
                return False

    def _lacks_only(self, answer, truth, call):
        """Return whether an answer without a version has parts of the true one, or names what is missing.

        A limit and steps back count the versions that exist, and a time means the last one that exists.
        """
        if call == "history limit":
            truth, _ = self.bench.truth("history", ranged=False)
        if call in ("at latest~1", "at time"):
            table = opened(self.store)
            return any(answer == comparable(table.at(version)) for version in table.versions())
        return lacks_only(answer, truth)


def _number(path):
    match = _VERSION.search(path)
    return None if match is None else int(match[2] or match[3])


def is_right(answer, truth, call):
    """Return whether an answer is the true one, an error, or states what could not be read."""
    if isinstance(answer, SnapshotExplorerError) or fault_search.are_same(answer, truth):
        return True
    if fault_search.differs_by_errors_only(answer, truth) or fault_search.lacks_counts_only(answer, truth):
        return True
    if fault_search.is_text(answer) and fault_search.SAYS.search(fault_search.new_lines(answer, truth)):
        return True
    if fault_search.states_damage(answer, truth):
        return True
    return call in fault_search.SKIPPING and "cannot be read" in repr(answer)


def _claims_no_more(answer, truth, damage):
    """Return whether claims are true or unknown, and of the damaged file say anything but that it is in order."""
    own = {key for claims in answer.values() for key in claims if any(_is_path_of(part, damage) for part in key)}
    if damage.kind in ("another", "emptied") and any(answer.get("files", {}).get(key) == ["ok"] for key in own):
        return False
    others = {
        name: {key: values for key, values in claims.items() if key not in own} for name, claims in answer.items()
    }
    return fault_search.claims_no_more(others, truth, may_be_gone=True)


def _is_path_of(part, damage):
    """Return whether a part of a claim is the path of the damaged file: of DuckLake that below its data files."""
    return isinstance(part, str) and f"/{damage.path}".endswith(f"/{part}")


def lacks_only(answer, truth):
    """Return whether each part of an answer is in the true one but for what is unknown, or it names what is missing."""
    if (
        answer == truth
        or (not isinstance(answer, list | dict) and answer in _UNKNOWN)
        or re.search(r"missing|is gone|does not exist", repr(answer))
    ):
        return True
    if all(fault_search.is_text(one) or (isinstance(one, str) and "\n" in one) for one in (answer, truth)):
        return set(fault_search.words_of(answer)) <= {*fault_search.words_of(truth), "-", "other", "?"}
    if not isinstance(answer, list | tuple) or not isinstance(truth, list | tuple):
        return False
    if len(answer) == len(truth) and all(itertools.starmap(lacks_only, zip(answer, truth, strict=True))):
        return True
    return all(part in truth or any(lacks_only(part, other) for other in truth) for part in answer)


def reason_of(damage, store, call):
    """Return why nothing recorded tells a replacement; None where something does."""
    if call.startswith("retention") and damage.path.endswith(".bin"):
        return "what would be freed is the size of the file in the storage, which Delta does not record"
    if damage.kind == "emptied" and _HUDI_COMMIT.search(damage.path):
        return "Hudi reads an empty file as a commit that wrote nothing, and no file of this commit exists"
    if damage.kind == "emptied" and _HUDI_ARCHIVE.search(damage.path):
        return "the newest file of Hudi's archive is empty until a writer fills it"
    if damage.path.endswith(".parquet") and _is_named_by_no_commit(damage.path, store):
        return "the archived commit that wrote the file is gone, so that only a listing tells its size"
    if not damage.kind.startswith("another"):
        return None
    if _LISTS.search(damage.path) and not any(b"ManifestListSize" in content for content in store.files.values()):
        return "before Paimon 1.1, snapshots record no sizes of manifest lists, only numbers of rows"
    reasons = UNRECORDED | (SAME_SIZE if damage.kind == "another of its size" else {})
    return next((reason for pattern, reason in reasons.items() if re.search(pattern, damage.path)), None)


def _is_named_by_no_commit(path, store):
    """Return whether a file of a Hudi table is in no file of the table's timeline."""
    timeline = [content for name, content in store.files.items() if _HUDI_TIMELINE.search(name)]
    file_name = path.rpartition("/")[2].encode()
    return bool(timeline) and not any(file_name in content for content in timeline)


def run(names, *, kinds=KINDS, sample=None, seed=0, seconds=None, call=""):
    """Run cases; return how many there were by what came of them, and the findings."""
    counts, findings, began = collections.Counter(), [], time.monotonic()
    folders = fault_search.tables()
    with registered():
        for name in names:
            try:
                table = DamagedTables(name, folders[name])
            except SnapshotExplorerError:
                counts["refused tables"] += 1
                continue
            calls = [one for one in table.bench.calls if re.search(call, one)]
            cases = []
            for kind in kinds:
                every = [(one, other) for one in table.damages() if one.kind == kind for other in calls]
                draw = random.Random(f"{seed} {name} {kind}")
                cases += every if sample is None else draw.sample(every, min(sample, len(every)))
            counts["tables"] += 1
            for damage, one in cases:
                finding = table.find(damage, one)
                is_wrong = finding is not None and finding.outcome == "wrong"
                reason = reason_of(damage, table.store, one) if is_wrong else None
                counts["cases"] += 1
                counts["unrecorded" if reason else finding.outcome if finding else "right, or our error"] += 1
                if finding and not reason:
                    findings.append(finding)
                if seconds and time.monotonic() - began > seconds:
                    return counts, findings
    return counts, findings


def _group(finding):
    return finding.outcome, finding.table.partition("/")[0], finding.damage.kind, kind_of(finding.damage.path)


if __name__ == "__main__":
    sys.exit(search_command.main(__doc__, run, kinds=KINDS, group=_group))
