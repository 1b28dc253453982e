"""Writers that commit, compact, expire and vacuum tables as fast as they can, and the rows that each version holds.

    python -m tests.support.live delta|iceberg|paimon FOLDER MODEL [--seconds N] [--pause SECONDS] [--seed N]

Run as a process of its own. Before a version is committed, its rows are noted in the file MODEL: a line with the
version, how many ids it holds, and what tells these ids from others. `Model` reads it.
"""

import argparse
import hashlib
import os
import random
import threading
import time
import uuid
from pathlib import Path

from tests.support.delta.table_builder import DeltaTable, commit_name, remove
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

_MOST_FILES = 8
"""Live files from which on they are compacted into one."""
_MOST_ROWS = 300
_KEPT = 60
"""Versions that are kept."""
_CHECKPOINT = 10


def mark_of(ids):
    """Return what tells a set of ids from others."""
    return hashlib.blake2b(repr(sorted(ids)).encode(), digest_size=12).hexdigest()


class Model:
    """The rows of each version, as the writer noted them: `known[version]` is how many ids there are and their mark."""

    def __init__(self, path):
        self._path = Path(path)
        self._offset = 0
        self._lock = threading.Lock()
        self._known = {}

    def __getitem__(self, version):
        """Return what was noted of a version, None if nothing was."""
        with self._lock:
            self._read_on()  # what was noted last counts
            return self._known.get(version)

    def __len__(self):
        with self._lock:
            self._read_on()
            return len(self._known)

    def _read_on(self):
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                version, rows, mark = line.split()
                self._known[int(version)] = int(rows), mark.decode()


class Disk:
    """The local disk, as writers use it: a file is there whole or not at all."""

    def pipe_file(self, path, content):
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        unfinished.write_bytes(content)
        unfinished.replace(target)

    def cat_file(self, path):
        return Path(path).read_bytes()

    def rm_file(self, path):
        Path(path).unlink(missing_ok=True)

    def exists(self, path):
        return Path(path).exists()


class Writer:
    """Chooses what to do next; what a format writes is up to those below."""

    def __init__(self, model, seed):
        self.random = random.Random(seed)
        self.files = {}
        self.next_id = 0
        self._model = Path(model).open("ab", buffering=0)  # noqa: SIM115 - as long as the process

    def note(self, version, files):
        """Note the rows of a version that is about to be committed."""
        ids = [one for some in files.values() for one in some]
        self._model.write(f"{version} {len(ids)} {mark_of(ids)}\n".encode())

    def step(self):
        """Commit once; tidy up now and then."""
        rows = sum(map(len, self.files.values()))
        if len(self.files) > _MOST_FILES:
            self.change(list(self.files), [one for some in self.files.values() for one in some], compact=True)
        elif rows > _MOST_ROWS or (self.files and self.random.random() < 0.25):
            name = self.random.choice(list(self.files))
            left = self.files[name][1:] if rows <= _MOST_ROWS else self.files[name][:1]
            self.change([name], left, compact=False)
        else:
            self.next_id += 3
            self.change([], list(range(self.next_id - 3, self.next_id)), compact=False)
        self.tidy()


class DeltaWriter(Writer):
    """Appends, deletes by rewriting, compacts; checkpoints, cleans up the log, and vacuums."""

    def __init__(self, root, model, *, seed=0):
        super().__init__(model, seed)
        self.note(0, {})
        self.table = DeltaTable(None, root)
        self.first = list(self.table.log[0][1:])
        self.adds, self.dead, self.earliest = {}, [], 0

    @property
    def version(self):
        return self.table.version

    def change(self, gone, ids, *, compact):
        name = f"part-{self.version + 1:08d}.parquet"
        made = {name: ids} if ids else {}
        after = {one: some for one, some in self.files.items() if one not in gone} | made
        actions = [remove(one, dataChange=not compact) for one in gone]
        if ids:
            self.adds[name] = self.table.data(name, [(one, "x") for one in ids], dataChange=not compact)
            actions.append(self.adds[name])
        self.note(self.version + 1, after)
        self.table.commit(*actions, operation="OPTIMIZE" if compact else "WRITE")
        self.table.log = {self.version: []}
        self.files = after
        self.dead += [(self.version, one) for one in gone]
        for one in gone:
            del self.adds[one]

    def tidy(self):
        if self.version % _CHECKPOINT == 0:
            self.table.checkpoint(actions=[*self.first, *self.adds.values()])
            until = (self.version - _KEPT) // _CHECKPOINT * _CHECKPOINT
            for version in range(self.earliest, until):
                self.table.remove_file(commit_name(version))
                if version and version % _CHECKPOINT == 0:
                    self.table.remove_file(f"_delta_log/{version:020d}.checkpoint.parquet")
            self.earliest = max(until, self.earliest)
        while self.dead and self.dead[0][0] < self.version - _KEPT // 2:
            self.table.remove_file(self.dead.pop(0)[1])


class PaimonWriter(Writer):
    """Appends, deletes by rewriting, compacts; expires snapshots as Paimon does: data files go first."""

    def __init__(self, root, model, *, seed=0):
        super().__init__(model, seed)
        self.table = PaimonTable(Disk(), str(root))
        self.dead, self.merged, self.earliest = [], [], 1
        self.change([], [0], compact=False)

    @property
    def version(self):
        return self.table.snapshots

    def change(self, gone, ids, *, compact):
        number = self.version + 1
        name = f"data-{number}.parquet"
        after = {one: some for one, some in self.files.items() if one not in gone} | ({name: ids} if ids else {})
        self.note(number, after)
        kind = "COMPACT" if compact else "OVERWRITE" if gone else "APPEND"
        self.table.commit([(one, "x") for one in ids], removed=gone, kind=kind)
        self.files = after
        self.dead += [(number, one) for one in gone]
        if compact:
            self.merged.append((number + 1, [one["_FILE_NAME"] for one in self.table.base]))
            self.table.merge_manifests()
        for one in gone:
            self.table.known.pop(one, None)
            self.table.names.pop(one, None)

    def tidy(self):
        until = self.version - _KEPT
        if self.version % _CHECKPOINT or until <= self.earliest:
            return
        while self.dead and self.dead[0][0] <= until:
            self.table.remove(f"bucket-0/{self.dead.pop(0)[1]}")
        while self.merged and self.merged[0][0] <= until:
            for one in self.merged.pop(0)[1]:
                self.table.remove(f"manifest/{one}")
        for version in range(self.earliest, until):
            self.table.remove(f"manifest/manifest-list-{version}-0")
            self.table.remove(f"manifest/manifest-list-{version}-1")
        for version in range(self.earliest, until):
            self.table.remove(f"snapshot/snapshot-{version}")
        self.table.write("snapshot/EARLIEST", str(until).encode())
        self.earliest = until


class IcebergWriter(Writer):
    """Appends, deletes by rewriting, compacts; expires snapshots as Iceberg does: metadata goes first."""

    def __init__(self, root, model, *, seed=0):
        super().__init__(model, seed)
        self.table = IcebergTable(Disk(), str(root), location=str(root))
        self.dead, self.lists, self.earliest, self.earliest_metadata = [], {}, 1, 1
        self.change([], [0], compact=False)

    @property
    def version(self):
        return self.table.sequence

    def change(self, gone, ids, *, compact):
        number = self.version + 1
        name = f"data-{number}.parquet"
        after = {one: some for one, some in self.files.items() if one not in gone} | ({name: ids} if ids else {})
        self.note(number, after)
        kind = "replace" if compact else "overwrite" if gone else "append"
        rows = [(one, "x") for one in ids] or None
        snapshot = self.table.commit(rows, removed=gone, operation=kind)
        self.files = after
        self.dead += [(number, one) for one in gone]
        listed = self.table.manifests[snapshot]
        self.lists[number] = snapshot, {one["manifest_path"] for one in listed}
        # Manifests without live files are in no later list.
        self.table.manifests = {
            snapshot: [one for one in listed if one["added_files_count"] or one["existing_files_count"]]
        }

    def tidy(self):
        until = self.version - _KEPT
        if self.version % _CHECKPOINT or until <= self.earliest:
            return
        self.table.metadata["metadata-log"] = self.table.metadata["metadata-log"][-_KEPT:]
        self.table.expire(until)
        expired = [self.lists.pop(version) for version in range(self.earliest, until)]
        needed = set().union(*(manifests for _, manifests in self.lists.values()))
        for path in set().union(*(manifests for _, manifests in expired)) - needed:
            del self.table.entries[path]
            self.remove(path.removeprefix(f"{self.table.location}/"))
        for snapshot, _ in expired:
            self.remove(f"metadata/snap-{snapshot}-1.avro")
        while self.dead and self.dead[0][0] <= until:
            self.remove(f"data/{self.dead.pop(0)[1]}")
        for number in range(self.earliest_metadata, self.table.metadata_number - _KEPT):
            self.remove(f"metadata/v{number}.metadata.json")
        self.earliest_metadata = max(self.earliest_metadata, self.table.metadata_number - _KEPT)
        self.earliest = until

    def remove(self, path):
        self.table.filesystem.rm_file(f"{self.table.root}/{path}")


WRITERS = {"delta": DeltaWriter, "iceberg": IcebergWriter, "paimon": PaimonWriter}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=WRITERS)
    parser.add_argument("folder")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    writer = WRITERS[arguments.format](arguments.folder, arguments.model, seed=arguments.seed)
    end, parent = time.monotonic() + arguments.seconds, os.getppid()
    while time.monotonic() < end and os.getppid() == parent:
        writer.step()
        time.sleep(arguments.pause)


if __name__ == "__main__":
    main()
