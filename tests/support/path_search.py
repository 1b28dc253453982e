"""Name the files of tables of all formats by other paths, make every public call, and compare the answers.

    python -m tests.support.path_search                          all tables, forms of paths and calls
    python -m tests.support.path_search --sample 100 --seed 7    a hundred cases of each table, by chance

A case is a call on a copy of a table, which differs from the plain one in three ways: by what path it is opened, by
what paths its metadata names files (those of Delta and Iceberg may name them by whole paths), and by links in its
folder. The answer must be that of the plain table, but for how paths are written. An error of ours where the plain
table has none is a finding too: each of these paths is one that an engine reads.
"""

import argparse
import collections
import dataclasses
import json
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from urllib.parse import quote

import snapshot_explorer
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support import fault_search
from tests.support.iceberg import rewriting
from tests.support.public_calls import Drawn, answer, arguments_for, calls, proofs

OPENED_AT = (
    "{0}/real/t",
    "{0}/link/t",
    "{0}/real/t/",
    "{0}//real/./t",
    "{0}/real/../link/t",
    "file:{0}/link/t",
    "file://{0}/real/t",
    "file://localhost{0}/link/t/",
)
"""By what path a table is opened: `link` is a symbolic link to `real`."""
WHOLE = (
    "file:{0}/real/t/",
    "file:{0}/link/t/",
    "file://{0}/real/t/",
    "file://{0}/link/t/",
    "file://localhost{0}/link/t/",
    "file://{0}//real//t/",
    "file://{0}/./real/t/./",
    "file:///{0}/link/./t//",
    "{0}/real/t/",
    "{0}/link/t/",
)
RELATIVE = ("./", "././", ".//", "x/../")
"""What precedes a relative path in the log of Delta."""
LINKED = ("a folder elsewhere", "a file elsewhere", "an alias of a folder", "an alias of a file", "a loop")
"""Links in a table's folder."""
SEES_METADATA = re.compile(
    r"manifests|entries|compare|%snapshot|inspect|health|doctor|explorer|version metadata|cached|report"
)
"""Calls that show the sizes, the names or the content of metadata files, which are written anew."""
_UNSAID = re.compile(r"by another path|outside of the table's folder|The metadata records the table at")
"""What is noted of a table whose metadata names files by other paths."""
_WIDTHS = re.compile(r"[ -]{2,}")
"""What makes the columns of drawn tables as wide as their paths."""


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How the files of a table are named."""

    opened_at: str = OPENED_AT[0]
    recorded: str | None = None
    """What precedes the paths in the metadata; None if they are left as they are."""
    linked: str | None = None

    def __str__(self):
        return f"opened at {self.opened_at}, recorded {self.recorded}, {self.linked or 'no link'}"


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """An answer that differs from that of the plain table."""

    table: str
    call: str
    form: Form
    outcome: str
    """foreign, wrong, refused or deletes: it calls a file orphaned that the plain table needs."""
    detail: str

    def __str__(self):
        return f"{self.outcome}: {self.table}: {self.call}: {self.form}: {self.detail}"


class Bench:
    """A table, its calls, and what they answer of the plain table."""

    def __init__(self, name, folder, home):
        self.name, self.kind, self.home = name, None, Path(home).resolve()
        (self.home / "real").mkdir(parents=True)
        (self.home / "link").symlink_to("real")
        self.root = self.home / "real/t"
        self._source, self._copy = self.home / "source", self.home / "copy"
        for target in (self._source, self._copy):
            shutil.copytree(folder, target, ignore=shutil.ignore_patterns("README*"))
        table = snapshot_explorer.open_table(self._copy)
        self.kind = table.format
        given = arguments_for(table)
        self.calls = {"open": lambda t: (t.current.version, t.format), **calls(given), **proofs(given, table)}
        self.recorded = self._forms()
        if self.recorded and self.kind == "delta":
            _without_checkpoints(self._source)
        elif self.recorded:
            _record_iceberg(self._source, WHOLE[2].format(self.home))
        self._truths, self._form = {}, None

    def _forms(self):
        if self.kind == "delta" and (self._source / f"_delta_log/{0:020d}.json").exists():
            return (*WHOLE, *RELATIVE)
        if self.kind == "iceberg" and not _has_position_deletes(self._source):
            return WHOLE
        return ()

    def forms(self):
        """Yield all forms but the plain one."""
        for opened_at in OPENED_AT:
            for recorded in (None, *self.recorded):
                for linked in (None, *LINKED):
                    if (form := Form(opened_at, recorded, linked)) != Form():
                        yield form

    def answer(self, call, form):
        """Return what a call answers of the table in a form, as comparable values without the paths of the folder."""
        self._write(form)

        def made():
            result = self.calls[call](snapshot_explorer.open_table(form.opened_at.format(self.home)))
            return None if isinstance(result, Drawn) else result

        found = answer(made)
        return found if isinstance(found, SnapshotExplorerError) else self._plain(found)

    def truth(self, call):
        """Return what a call answers of the plain table; None if two answers differ, as those with times do."""
        if call not in self._truths:
            first = self.answer(call, Form())
            is_stable = isinstance(first, SnapshotExplorerError) or first == self.answer(call, Form())
            self._truths[call] = first if is_stable else None
        return self._truths[call]

    def find(self, call, form):
        """Return what is wrong with the answer of a call, or None."""
        truth = self.truth(call)
        if truth is None or (form.recorded and SEES_METADATA.search(call)):
            return None
        try:
            found = self.answer(call, form)
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            return self._finding(call, form, "foreign", fault_search.spot_of(error))
        if isinstance(found, SnapshotExplorerError):
            if isinstance(truth, SnapshotExplorerError):
                return None
            return self._finding(call, form, "refused", f"{type(found).__name__}: {str(found)[:200]}")
        if found == truth:
            return None
        if call == "orphans" and not _orphans(found) <= _orphans(truth):
            return self._finding(call, form, "deletes", sorted(_orphans(found) - _orphans(truth))[:3])
        return self._finding(call, form, "wrong", fault_search.difference_of(truth, found))

    def _finding(self, call, form, outcome, detail):
        return Finding(self.name, call, form, outcome, str(detail))

    def _write(self, form):
        if self._form == (form.recorded, form.linked):
            return
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.home / "elsewhere", ignore_errors=True)
        shutil.copytree(self._source, self.root)
        self._form = form.recorded, form.linked
        if form.recorded is not None:
            {"delta": _record_delta, "iceberg": _record_iceberg}[self.kind](self.root, form.recorded.format(self.home))
        if form.linked is not None:
            _link(self.root, self.home / "elsewhere", form.linked)

    def _plain(self, value):
        """Return comparable values without the folder's paths and without notes on them, tables sorted again."""
        if isinstance(value, str):
            text = self._folders.sub("", value)
            return _WIDTHS.sub(" ", text) if "\n" in text else text
        if isinstance(value, dict):
            return {self._plain(key): self._plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            parts = [self._plain(one) for one in value if not (isinstance(one, str) and _UNSAID.search(one))]
            if isinstance(value, tuple):
                return tuple(parts)
            return sorted(parts, key=repr) if parts and all(isinstance(one, tuple) for one in parts) else parts
        return value

    @property
    def _folders(self):
        steps = r"[/.]+".join([*map(re.escape, str(self.home).strip("/").split("/")), "(?:real|link)", "t"])
        return re.compile(rf"(?:file:)?/*(?:localhost)?/+{steps}(?:[/.]*/)?|\b(?:real|link)\.(?=t\b)")


def _orphans(found):
    return {path for path, (is_orphan,) in found["files"].items() if is_orphan}


def _without_checkpoints(folder):
    """Keep the commits of a Delta table alone: they have all that checkpoints do."""
    for path in (folder / "_delta_log").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif not re.fullmatch(r"\d{20}\.json", path.name):
            path.unlink()


def _record_delta(root, prefix):
    for path in (root / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        for action in lines:
            for kind in {"add", "remove", "cdc"} & action.keys():
                recorded = action[kind]["path"]
                if not re.match(r"/|[A-Za-z][A-Za-z0-9+.-]+:", recorded):
                    action[kind]["path"] = quote(prefix, safe="/:") + recorded
        _rewrite(path, "".join(json.dumps(action) + "\n" for action in lines).encode())


def _has_position_deletes(root):
    """Return whether delete files name data files, which must be written as in the manifests."""
    names = [path.name for path in root.rglob("*.parquet")]
    return any("delete" in name for name in names) or _location_of(root) is None


def _location_of(root):
    metadata = sorted((root / "metadata").glob("*metadata.json"), key=lambda path: path.stat().st_mtime)
    locations = {json.loads(path.read_text())["location"] for path in metadata}
    return locations.pop() if len(locations) == 1 else None


def _record_iceberg(root, prefix):
    location = _location_of(root).rstrip("/") + "/"

    def moved(value):
        if isinstance(value, dict):
            return {key: moved(one) for key, one in value.items()}
        if isinstance(value, list):
            return [moved(one) for one in value]
        return prefix + value.removeprefix(location) if isinstance(value, str) and value.startswith(location) else value

    for path in rewriting.manifests(root):
        rewriting.rewrite(path, record=moved)
    rewriting.set_lengths(root)
    for path in rewriting.manifest_lists(root):
        rewriting.rewrite(path, record=moved)
    for path in (root / "metadata").glob("*metadata.json"):
        _rewrite(path, json.dumps(moved(json.loads(path.read_text()))).encode())


def _rewrite(path, content):
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _link(root, elsewhere, kind):
    """Put a link into a table's folder, in the place of a folder or file with rows, or beside it."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and _has_rows(path.relative_to(root)))
    nested = [path for path in files if path.parent != root]
    elsewhere.mkdir()
    if kind == "a folder elsewhere" and nested:
        folder = nested[0].parent
        shutil.move(folder, elsewhere / "folder")
        folder.symlink_to(elsewhere / "folder")
    elif kind == "a file elsewhere" and files:
        shutil.move(files[-1], elsewhere / "file")
        files[-1].symlink_to(elsewhere / "file")
    elif kind == "an alias of a folder" and nested:
        (root / "alias").symlink_to(nested[0].parent.relative_to(root))
    elif kind == "an alias of a file" and files:
        (files[0].parent / f"alias{files[0].suffix}").symlink_to(files[0].name)
    elif kind == "a loop":
        (root / "loop").symlink_to(".")


def _has_rows(path):
    return not path.parts[0].startswith(("_delta_log", "metadata", ".hoodie", "manifest", "snapshot", "schema")) and (
        path.suffix in (".parquet", ".orc", ".avro") or ".log." in path.name
    )


def run(names, *, call="", sample=None, seed=0, seconds=None):
    """Try cases; return how many there were by what came of them, and the findings."""
    counts, findings, began = collections.Counter(), [], time.monotonic()
    folders = fault_search.tables()
    for name in names:
        with tempfile.TemporaryDirectory() as home:
            try:
                bench = Bench(name, folders[name], Path(home) / "w")
            except SnapshotExplorerError:
                counts["refused tables"] += 1
                continue
            counts["tables"] += 1
            for chosen, form in _cases(bench, call, sample, random.Random(f"{seed} {name}")):
                finding = bench.find(chosen, form)
                counts[finding.outcome if finding else "right"] += 1
                findings += [finding] if finding else []
                if seconds and time.monotonic() - began > seconds:
                    return counts, findings
    return counts, findings


def _cases(bench, pattern, sample, chance):
    names = [name for name in bench.calls if re.search(pattern, name)]
    forms = list(bench.forms())
    if sample is None:
        return [(name, form) for form in forms for name in names]
    # Several calls of a form follow each other: writing the table takes longer than a call.
    count = max(1, sample // 8)
    chosen = [chance.choice(forms) for _ in range(count)]
    pairs = [(chance.choice(names), form) for form in chosen for _ in range(-(-sample // count))]
    return pairs[:sample] if names else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="", help="only tables whose names match")
    parser.add_argument("--call", default="", help="only calls whose names match")
    parser.add_argument("--sample", type=int, help="so many cases of each table, by chance")
    parser.add_argument("--seed", type=int, default=0, help="what chance begins with")
    parser.add_argument("--seconds", type=float, help="end after this time, wherever it is")
    given = parser.parse_args()
    logging.disable()
    search = partial(run, call=given.call, sample=given.sample, seed=given.seed, seconds=given.seconds)
    counts, findings = search([name for name in fault_search.tables() if re.search(given.table, name)])
    for finding in findings:
        print(finding)  # noqa: T201 - a command
    print(json.dumps(counts, indent=1))  # noqa: T201 - a command
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
