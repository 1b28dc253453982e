"""Diffs of random histories against a model of a table: a list of rows per version."""

from collections import Counter
from itertools import count, permutations
from uuid import uuid4

import fsspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError
from tests.support.delta.table_builder import DeltaTable, add, metadata, remove
from tests.support.paimon.table_builder import PaimonTable
from tests.support.row_relations import assert_no_state_is_split

_FIELDS = [("id", "long"), ("name", "string"), ("value", "double")]
_MORE = [*_FIELDS, ("extra", "long")]
_NAMES = st.sampled_from([None, "", "a", "b", "<b>"])
_VALUES = st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5])
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "delete", "update", "compact", "overwrite", "restore", "widen"]),
        st.integers(0, 1_000),
        st.lists(st.tuples(_NAMES, _VALUES), min_size=1, max_size=4),
    ),
    min_size=2,
    max_size=7,
)


def _identity(file):
    """Return what identifies a file in the log: the same one with another deletion vector is another one."""
    return file["path"], file.get("deletionVector")


class ModelledDelta:
    """A Delta table that is grown beside a model of it."""

    def __init__(self, *, unique):
        self.table = DeltaTable(
            fsspec.filesystem("memory"), f"/{uuid4()}", fields=_FIELDS, features=["deletionVectors"]
        )
        self.unique = unique
        self.ids = count()
        self.files = {}
        self.width = 3
        self.states = [{}]

    def step(self, what, number, values):
        getattr(self, what)(number, values)
        self.states.append({name: (rows, gone, self.width) for name, (rows, gone) in self.files.items()})
        assert self.table.version == len(self.states) - 1

    def rows(self, version):
        """Return the rows of a version as dicts."""
        names = [name for name, _ in _MORE]
        found = []
        for rows, gone, width in self.states[version].values():
            kept = [row for place, row in enumerate(rows) if place not in gone]
            found += [dict(zip(names[:width], [*row, None][:width], strict=True)) for row in kept]
        return found

    def _new(self, number, values):
        ids = [next(self.ids) if self.unique else number % 3 for _ in values]
        return [(one, *pair, number) for one, pair in zip(ids, values, strict=True)]

    def _add(self, rows):
        name = f"{uuid4()}.parquet"
        rows = [row[: self.width] if self.width == 3 else (*row, None)[:4] for row in rows]
        self.files[name] = (rows, frozenset())
        return self.table.data(name, rows)

    def _remove(self, name):
        _, gone = self.files.pop(name)
        return remove(name, vector=self.vectors.get((name, gone)) if gone else None)

    vectors: dict = {}  # noqa: RUF012 - names are unique

    def append(self, number, values):
        self.table.commit(self._add(self._new(number, values)))

    def overwrite(self, number, values):
        removed = [self._remove(name) for name in list(self.files)]
        self.table.commit(*removed, self._add(self._new(number, values)))

    def _live(self, name):
        rows, gone = self.files[name]
        return [row for place, row in enumerate(rows) if place not in gone]

    def compact(self, number, values):
        del number, values
        rows = [row for name in self.files for row in self._live(name)][::-1]
        removed = [self._remove(name) for name in list(self.files)]
        self.table.commit(*removed, *([self._add(rows)] if rows else []))

    def update(self, number, values):
        if not self.files:
            return self.append(number, values)
        name = list(self.files)[number % len(self.files)]
        rows = self._live(name)
        if rows:
            place = number % len(rows)
            rows[place] = (rows[place][0], *values[0], *rows[place][3:])
        return self.table.commit(self._remove(name), *([self._add(rows)] if rows else []))

    def delete(self, number, values):
        if not self.files:
            return self.append(number, values)
        name = list(self.files)[number % len(self.files)]
        rows, gone = self.files[name]
        removed = self._remove(name)
        now = gone | {number % len(rows)}
        vector = self.vectors[name, now] = self.table.vector(sorted(now))
        self.files[name] = (rows, now)
        return self.table.commit(removed, add(name, rows=len(rows), vector=vector))

    def restore(self, number, values):
        del values
        removed = [self._remove(name) for name in list(self.files)]
        adds = []
        for name, (rows, gone, _) in self.states[number % len(self.states)].items():
            self.files[name] = (rows, gone)
            adds.append(add(name, rows=len(rows), vector=self.vectors[name, gone] if gone else None))
        again = [_identity(one["add"]) for one in adds]
        self.table.commit(*(one for one in removed if _identity(one["remove"]) not in again), *adds)

    def widen(self, number, values):
        del number, values
        self.width = 4
        self.table.fields = _MORE
        self.table.commit(metadata(_MORE))


class ModelledPaimon:
    """A Paimon append table that is grown beside a model of it."""

    def __init__(self, *, unique):
        self.table = PaimonTable(fsspec.filesystem("memory"), f"/{uuid4()}")
        self.unique = unique
        self.ids = count()
        self.files = {}
        self.states = [{}]
        self.step("append", 0, [("a", None)])

    def step(self, what, number, values):
        rows = [(next(self.ids) if self.unique else number % 3, name) for name, _ in values]
        removed = []
        if what in ("compact", "overwrite"):
            removed = list(self.files)
        elif what in ("update", "delete") and self.files:
            removed = [list(self.files)[number % len(self.files)]]
        if what in ("compact", "update", "delete"):
            kept = [row for name in removed for row in self.files[name]]
            rows = kept[::-1] if what == "compact" else [(kept[0][0], values[0][0]), *kept[1:]] if kept else rows
            rows = rows[1:] if what == "delete" else rows
        if what == "restore":
            removed = list(self.files)
            rows = [row for file in self.states[number % len(self.states)].values() for row in file]
        for name in removed:
            del self.files[name]
        version = self.table.commit(rows, removed=removed, kind="COMPACT" if what == "compact" else "APPEND")
        if rows:
            self.files[f"data-{version}.parquet"] = rows
        self.states.append(dict(self.files))

    def rows(self, version):
        rows = [row for file in self.states[version].values() for row in file]
        return [dict(zip(("id", "name"), row, strict=True)) for row in rows]


def multiset(rows):
    return Counter(map(repr, rows))


@pytest.mark.parametrize("modelled", [ModelledDelta, ModelledPaimon])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS, unique=st.booleans())
def test_a_diff_of_any_two_versions_is_what_the_model_says(modelled, steps, unique):
    model = modelled(unique=unique)
    for step in steps:
        model.step(*step)
    table = open_table(f"memory://{model.table.root}")

    for a, b in list(permutations(table.versions(), 2))[:12]:
        rows_a, rows_b = model.rows(a), model.rows(b)
        columns = table.at(b).arrow_schema.names
        rows_a = [{name: row.get(name) for name in columns} for row in rows_a]
        left, right = multiset(rows_a), multiset(rows_b)
        whole = table.diff_rows(a, b)
        assert multiset(whole.before.to_pylist()) == left - right
        assert multiset(whole.after.to_pylist()) == right - left
        assert whole.updated.num_rows == 0
        if unique:
            _check_keyed(table, (a, b), rows_a, rows_b)


def _check_keyed(table, pair, rows_a, rows_b):
    before, after = ({row["id"]: row for row in rows} for rows in (rows_a, rows_b))
    changed = [key for key in before.keys() & after.keys() if repr(before[key]) != repr(after[key])]

    diff = table.diff_rows(*pair, key="id")

    assert multiset(diff.inserted.to_pylist()) == multiset(after[key] for key in after.keys() - before.keys())
    assert multiset(diff.deleted.to_pylist()) == multiset(before[key] for key in before.keys() - after.keys())
    assert sorted(diff.updated["id"].to_pylist()) == sorted(changed)
    for row in diff.updated.to_pylist():
        old, new = before[row["id"]], after[row["id"]]
        assert row["changed_columns"] == [name for name in old if repr(old[name]) != repr(new[name])]
        assert all(repr(row[f"{name}_before"]) == repr(old[name]) for name in old if name != "id")
        assert all(repr(row[f"{name}_after"]) == repr(new[name]) for name in new if name != "id")


@pytest.mark.parametrize("modelled", [ModelledDelta, ModelledPaimon])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS, unique=st.booleans())
def test_a_row_history_has_the_rows_of_the_model_at_every_version(modelled, steps, unique):
    model = modelled(unique=unique)
    for step in steps:
        model.step(*step)
    table = open_table(f"memory://{model.table.root}")

    history = table.row_history(memory_limit=len(steps) % 2 * 2**30)
    states = history.to_arrow()

    assert history.plan.versions == table.versions()
    names = states.column_names[:-4]
    for version in table.versions():
        rows = [{name: row.get(name) for name in names} for row in model.rows(version)]
        is_there = [
            first <= version and (last is None or version < last)
            for first, last in zip(states["_from_version"].to_pylist(), states["_to_version"].to_pylist(), strict=True)
        ]
        assert multiset(states.select(names).filter(pa.array(is_there, pa.bool_())).to_pylist()) == multiset(rows)
    assert_no_state_is_split(states, table.versions())


def test_keys_that_repeat_in_the_rows_that_are_read_are_refused():
    model = ModelledDelta(unique=False)
    model.step("append", 1, [("a", 1.5), ("b", 1.5)])
    table = open_table(f"memory://{model.table.root}")

    with pytest.raises(InvalidArgumentError, match=r"The key id is not unique: several rows of version 1 have id=1\."):
        table.diff_rows(0, 1, key="id")
