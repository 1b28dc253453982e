"""Random histories of tables in each format, with a plain-Python model of them: the rows of each version.

`play(kind, filesystem, root, steps)` writes a table of (id, name) by steps that hypothesis draws and returns its model.
Ids are unique within a version, so that they serve as a key.
"""

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.support.delta.table_builder import DeltaTable, inline_vector, metadata, protocol, remove
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

NAMES = st.none() | st.sampled_from(["ann", "bob", "cy", "a name of more than sixteen letters"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(NAMES, min_size=1, max_size=3)),
        st.tuples(st.just("delete"), st.integers(0, 20)),
        st.tuples(st.just("update"), st.integers(0, 20), NAMES),
        st.tuples(st.just("compact"), st.integers(0, 20)),
        st.tuples(st.just("restore"), st.integers(0, 20)),
    ),
    min_size=1,
    max_size=9,
)


@dataclass
class Model:
    """What a table has, kept by hand."""

    url: str
    versions: list = field(default_factory=list)
    """The versions, ascending."""
    rows: list = field(default_factory=list)
    """The rows of each, by id."""
    operations: list = field(default_factory=list)
    """What each version's commit did: insert, delete, update, compact, restore."""

    def changed(self):
        """Return by version what changed of which id: (before, after), None for a row that is not there."""
        found = {}
        before = {}
        for version, rows in zip(self.versions, self.rows, strict=True):
            ids = sorted(before.keys() | rows.keys())
            found[version] = {
                key: (before.get(key), rows.get(key)) for key in ids if before.get(key, ...) != rows.get(key, ...)
            }
            before = rows
        return found


class _Delta:
    def __init__(self, filesystem, root):
        self.table = DeltaTable(filesystem, root, first=None)
        self.url = self.table.url
        self.files = {}
        self.vectors = {}
        self.first = (protocol(features=["deletionVectors"]), metadata())

    def commit(self, rows, removed, operation):
        number = self.table.version + 1
        actions = list(self.first)
        self.first = ()
        actions += [self._remove(name, data_change=operation != "compact") for name in removed]
        if rows:
            name = f"data-{number}.parquet"
            actions.append(self.table.data(name, rows, stats=_stats(rows), data_change=operation != "compact"))
            self.files[name] = rows
        return self.table.commit(*actions, operation=operation.upper())

    def delete(self, name, kept):
        """Delete rows of a file by a deletion vector."""
        rows = self.files[name]
        if not kept:
            return self.commit([], [name], "delete")
        gone = self._remove(name)
        vector = inline_vector([place for place, row in enumerate(rows) if row not in kept])
        stats = json.loads(_stats(rows)) | {"tightBounds": False}
        action = self.table.data(name, rows, stats=json.dumps(stats), vector=vector)
        self.vectors[name] = vector
        self.files[name] = rows
        return self.table.commit(gone, action, operation="DELETE")

    def _remove(self, name, **options):
        self.files.pop(name)
        return remove(name, vector=self.vectors.pop(name, None), **options)


class _Paimon:
    def __init__(self, filesystem, root):
        self.table = PaimonTable(filesystem, root, statistics=True)
        self.url = f"memory://{root}"

    def commit(self, rows, removed, operation):
        kind = {"insert": "APPEND", "compact": "COMPACT"}.get(operation, "OVERWRITE")
        return self.table.commit(rows, removed=removed, kind=kind)


class _Iceberg:
    """Deletes by position delete files and by equality delete files."""

    def __init__(self, filesystem, root):
        self.table = IcebergTable(filesystem, root)
        self.url = f"memory://{root}"
        self.files = {}

    def commit(self, rows, removed, operation):
        for name in removed:
            self.files.pop(name)
        word = {"insert": "append", "compact": "replace"}.get(operation, "overwrite")
        self.table.commit(rows or None, removed=removed, operation=word)
        if rows:
            self.files[f"data-{self.table.sequence}.parquet"] = rows
        return self.table.sequence

    def delete(self, name, kept):
        rows = self.files[name]
        gone = [row for row in rows if row not in kept]
        if len(gone) % 2:
            self.table.delete_ids([row[0] for row in gone])
        else:
            self.table.delete(name, [rows.index(row) for row in gone])
        return self.table.sequence


KINDS = {"delta": _Delta, "iceberg": _Iceberg, "paimon": _Paimon}


def play(kind, filesystem, root, steps):
    """Write a table and return its model. Steps that do not apply, such as a delete of nothing, are left out."""
    player = Player(KINDS[kind](filesystem, root))
    player.insert(["ann", "bob"])
    for step, *given in steps:
        getattr(player, step)(*given)
    return player.model


class Player:
    """Plays steps on a table and on its model."""

    def __init__(self, table):
        self.table = table
        self.model = Model(table.url)
        self.live = {}
        """The rows that are left of each live file, by its name."""
        self.next_id = 1

    def insert(self, names):
        rows = [(self.next_id + place, name) for place, name in enumerate(names)]
        self.next_id += len(rows)
        self._commit(rows, [], "insert")

    def restore(self, place):
        rows = list(self.model.rows[place % len(self.model.rows)].values())
        if rows or self.live:
            self._commit(rows, list(self.live), "restore")

    def delete(self, place):
        if not self.live:
            return
        name = self._file(place)
        kept = self.live[name][1:]
        if not hasattr(self.table, "delete") or place % 2 == 0:
            self._commit(kept, [name], "delete")
            return
        version = self.table.delete(name, kept)
        self.live[name] = kept
        if not kept:
            self.live.pop(name)
        self._note(version, "delete")

    def update(self, place, value):
        if self.live:
            name = self._file(place)
            (number, _), *others = self.live[name]
            self._commit([(number, value), *others], [name], "update")

    def compact(self, place):
        if self.live:
            names = sorted(self.live)[: place % len(self.live) + 1]
            self._commit([row for name in names for row in self.live[name]], names, "compact")

    def _file(self, place):
        return sorted(self.live)[place % len(self.live)]

    def _commit(self, rows, removed, operation):
        version = self.table.commit(rows, removed, operation)
        for name in removed:
            self.live.pop(name)
        if rows:
            self.live[f"data-{version}.parquet"] = list(rows)
        self._note(version, operation)

    def _note(self, version, operation):
        self.model.versions.append(version)
        self.model.rows.append({row[0]: row for rows in self.live.values() for row in rows})
        self.model.operations.append(operation)


def _stats(rows):
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("id", "name"))}
    known = {name: [value for value in values if value is not None] for name, values in columns.items()}
    return json.dumps(
        {
            "numRecords": len(rows),
            "minValues": {name: min(values) for name, values in known.items() if values},
            "maxValues": {name: max(values) for name, values in known.items() if values},
            "nullCount": {name: len(rows) - len(values) for name, values in known.items()},
        }
    )
