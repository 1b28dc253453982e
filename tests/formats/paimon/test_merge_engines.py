"""Merge engines that make a row out of several, judged by a fold over a dict, one row after another."""

import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inner.arrow import CorruptBytesError
from tests.inner.paimon import (
    Aggregation,
    Deduplicate,
    FirstRow,
    Function,
    PartialUpdate,
    Rules,
    SequenceGroup,
    columns_needed,
    merge,
)

ADD, RETRACTS, DELETE = 0, (1, 3), 3
COLUMNS = {
    "k": pa.int32(),
    "a": pa.string(),
    "g": pa.int32(),
    "b": pa.string(),
    "h": pa.int32(),
    "i": pa.int32(),
    "c": pa.int64(),
    "d": pa.string(),
    "e": pa.list_(pa.int32()),
}
SMALL = st.none() | st.integers(0, 3)
TEXT = st.none() | st.sampled_from("xyz")
ROW = st.fixed_dictionaries(
    {
        "k": st.integers(0, 3),
        "a": TEXT,
        "g": SMALL,
        "b": TEXT,
        "h": SMALL,
        "i": SMALL,
        "c": st.none() | st.integers(-5, 5),
        "d": TEXT,
        "e": st.none() | st.lists(st.integers(0, 2), max_size=2),
        "@": st.integers(0, 3),
    }
)
GROUPS = (SequenceGroup(order=("g",), fields=("a", "c", "e")), SequenceGroup(order=("h", "i"), fields=("b",)))


def histories(kinds):
    return st.lists(st.tuples(ROW, st.sampled_from(kinds)), max_size=24)


def run(rules, history, names=None, columns=COLUMNS, chunk=5):
    """Merge the rows in the order of the history."""
    rows = [row for row, _ in history]
    names = list(names or columns)
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in columns.items()})
    table = table.select(columns_needed(rules, names))
    table = pa.Table.from_batches(table.to_batches(max_chunksize=chunk), table.schema)
    merged = merge(
        table,
        names,
        rules,
        sequence=np.arange(len(rows)),
        kinds=np.array([kind for _, kind in history], np.int8),
        levels=np.array([row.get("@", 0) for row in rows], np.int32),
    )
    merged.validate(full=True)
    return sorted(merged.to_pylist(), key=lambda row: row.get("k", 0))


def by_key(rules, history):
    """Each key's rows and kinds, oldest first, after the lookup rule; and whether the key had one row alone."""
    keys = {}
    for row, kind in history:
        keys.setdefault(row["k"], []).append((row, kind))
    for key in sorted(keys):
        events = keys[key]
        lowest = min((row["@"] for row, _ in events if row["@"] > 0), default=0)
        kept = [(row, kind) for row, kind in events if not rules.lookup or row["@"] in (0, lowest)]
        yield kept, len(events) == 1


def folded(rules, history, fold):
    """The rows that are left, as dicts of the columns."""
    left = []
    for events, alone in by_key(rules, history):
        if alone:
            row, kind = events[0]
            made = None if kind in RETRACTS else row
        else:
            made = fold(events)
        if made is not None:
            left.append({name: made[name] for name in COLUMNS})
    return left


class Naive:
    """Functions one value at a time, with what a first value must remember."""

    def __init__(self, name):
        self.name, self.started = name, False

    def add(self, acc, new):
        match self.name:
            case "last_value":
                return new
            case "last_non_null_value":
                return acc if new is None else new
            case "first_value":
                acc, self.started = (acc if self.started else new), True
                return acc
            case "first_non_null_value":
                if self.started or new is None:
                    return acc
                self.started = True
                return new
        if acc is None or new is None:
            return new if acc is None else acc
        return {"sum": lambda: acc + new, "max": lambda: max(acc, new), "min": lambda: min(acc, new)}.get(
            self.name, lambda: acc + new if isinstance(acc, list) else f"{acc},{new}"
        )()

    def earlier(self, acc, new):
        return self.add(acc, new) if self.name == "collect" else self.add(new, acc)

    def retract(self, acc, new):
        match self.name:
            case "last_value":
                return None
            case "last_non_null_value":
                return acc if new is None else None
            case "sum":
                if acc is None or new is None:
                    return acc if new is None else -new
                return acc - new
        if acc is None or not new:
            return acc
        left = list(acc)
        for item in new:
            if item in left:
                left.remove(item)
        return left


def partial_fold(engine, ignore_delete):
    def fold(events):
        row, touched, added, gone = dict.fromkeys(COLUMNS), False, False, False
        naive = {name: Naive(function.name) for name, function in engine.functions.items()}
        for values, kind in events:
            gone = False
            if kind in RETRACTS and not touched:
                row = {name: values[name] for name in COLUMNS}
            touched = True
            if kind in RETRACTS:
                if ignore_delete:
                    continue
                if engine.remove_on_delete:
                    if kind == DELETE:
                        row, gone = {name: values[name] for name in COLUMNS}, True
                    continue
            else:
                added = True
                for name in COLUMNS:
                    if not any(name in (*group.order, *group.fields) for group in engine.groups):
                        row[name] = row[name] if values[name] is None else values[name]
            row, gone = grouped(engine, naive, row, values, kind)
        return row if added and not gone else None

    return fold


def grouped(engine, naive, row, values, kind):
    row, retract = dict(row), kind in RETRACTS
    verdicts = []
    for group in engine.groups:
        mine = [(values[name] is not None, values[name] or 0) for name in group.order]
        now = [(row[name] is not None, row[name] or 0) for name in group.order]
        verdicts.append((any(present for present, _ in mine), mine >= now))
    for group, (present, newer) in zip(engine.groups, verdicts, strict=True):
        if group.removes and present and newer and kind == DELETE:
            return {name: values[name] for name in COLUMNS}, True
    for group, (present, newer) in zip(engine.groups, verdicts, strict=True):
        if not present:
            continue
        for name in group.fields:
            if name not in naive:
                row[name] = (None if retract else values[name]) if newer else row[name]
            elif retract:
                row[name] = naive[name].retract(row[name], values[name])
            else:
                row[name] = (naive[name].add if newer else naive[name].earlier)(row[name], values[name])
        if newer:
            row |= {name: values[name] for name in group.order}
    return row, False


def aggregate_fold(engine):
    def fold(events):
        row, gone = dict.fromkeys(COLUMNS), False
        naive = {name: Naive(function.name) for name, function in engine.functions.items()}
        for values, kind in events:
            gone = kind == DELETE and engine.remove_on_delete
            if gone:
                row = {name: values[name] for name in COLUMNS}
                continue
            for name in COLUMNS:
                if name == "k":
                    row[name] = values[name]
                elif kind not in RETRACTS:
                    row[name] = naive[name].add(row[name], values[name])
                elif not engine.functions[name].ignore_retract:
                    row[name] = naive[name].retract(row[name], values[name])
        return None if gone else row

    return fold


def functions(**named):
    return {name: Function(name=function) for name, function in named.items()}


@settings(deadline=None, max_examples=150)
@given(histories([0, 0, 2, 1, 3]), st.booleans(), st.booleans())
def test_partial_updates_without_groups(history, lookup, ignore):
    engine = PartialUpdate(remove_on_delete=not ignore)
    rules = Rules(keys=("k",), engine=engine, ignore_delete=ignore, lookup=lookup)

    assert run(rules, history) == folded(rules, history, partial_fold(engine, ignore))


@settings(deadline=None, max_examples=300)
@given(
    histories([0, 0, 2, 1, 3]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["last_value", "last_non_null_value", "", "first_value"]),
    st.booleans(),
)
def test_partial_updates_in_sequence_groups(history, lookup, removes, of_a, adds_only):
    named = {"c": "sum", "e": "collect"} | ({"a": of_a} if of_a else {})
    groups = (SequenceGroup(order=("g",), fields=("a", "c", "e"), removes=removes), GROUPS[1])
    engine = PartialUpdate(groups=groups, functions=functions(**named))
    rules = Rules(keys=("k",), engine=engine, lookup=lookup)
    if adds_only or of_a == "first_value":
        history = [(row, ADD) for row, _ in history]

    assert run(rules, history) == folded(rules, history, partial_fold(engine, ignore_delete=False))


@settings(deadline=None, max_examples=150)
@given(histories([0, 2, 1, 3]))
def test_ignored_deletes_in_sequence_groups_still_begin_a_row(history):
    engine = PartialUpdate(groups=GROUPS, functions=functions(c="sum"))
    rules = Rules(keys=("k",), engine=engine, ignore_delete=True)

    assert run(rules, history) == folded(rules, history, partial_fold(engine, ignore_delete=True))


@settings(deadline=None, max_examples=300)
@given(
    histories([0, 0, 2, 1, 3]),
    st.booleans(),
    st.booleans(),
    st.lists(
        st.sampled_from(["max", "min", "first_value", "first_non_null_value", "last_value", "last_non_null_value"]),
        min_size=6,
        max_size=6,
    ),
)
def test_an_aggregation_equals_folding_row_by_row(history, lookup, removes, names):
    columns = ["a", "g", "b", "h", "i", "d"]
    named = {
        name: Function(name=function, ignore_retract=not removes) for name, function in zip(columns, names, strict=True)
    }
    named |= functions(k="primary_key", c="sum", e="collect")
    engine = Aggregation(functions=named, remove_on_delete=removes)
    rules = Rules(keys=("k",), engine=engine, lookup=lookup)
    if removes:
        history = [(row, kind if kind in (ADD, DELETE) else ADD) for row, kind in history]

    assert run(rules, history) == folded(rules, history, aggregate_fold(engine))


@settings(deadline=None, max_examples=100)
@given(histories([0, 2, 1, 3]), st.sets(st.sampled_from(list(COLUMNS)[1:]), min_size=1))
def test_some_columns_are_the_same_as_all_columns(history, names):
    groups = (SequenceGroup(order=("g",), fields=("a", "c", "e"), removes=True), GROUPS[1])
    rules = Rules(keys=("k",), engine=PartialUpdate(groups=groups, functions=functions(c="sum")))
    chosen = ["k", *sorted(names)]

    assert run(rules, history, chosen) == [{name: row[name] for name in chosen} for row in run(rules, history)]


@settings(deadline=None, max_examples=100)
@given(histories([0, 2, 1, 3]))
def test_first_row_leaves_the_oldest_add(history):
    rules = Rules(keys=("k",), engine=FirstRow(), ignore_delete=True)
    first = {}
    for row, kind in history:
        if kind not in RETRACTS:
            first.setdefault(row["k"], row)

    assert run(rules, history) == [{name: first[key][name] for name in COLUMNS} for key in sorted(first)]


ENGINES = {
    "deduplicate": Deduplicate(),
    "first-row": FirstRow(),
    "partial-update": PartialUpdate(),
    "aggregation": Aggregation(functions=functions(k="primary_key", v="last_non_null_value", n="sum")),
}
STATE = {"k": pa.int32(), "v": pa.string(), "n": pa.int64()}


def dictionary(engine, history):
    """What a table is after upserts and, where they mean something, deletes."""
    state = {}
    for (key, text, number), is_delete in history:
        row = {"k": key, "v": text, "n": number}
        if engine == "deduplicate":
            state.pop(key, None)
            if not is_delete:
                state[key] = row
        elif engine == "first-row" or key not in state:
            state.setdefault(key, row)
        else:
            old = state[key]
            added = old["n"] if number is None else number if old["n"] is None else old["n"] + number
            latest = old["n"] if number is None else number
            state[key] = {
                "k": key,
                "v": old["v"] if text is None else text,
                "n": added if engine == "aggregation" else latest,
            }
    return [state[key] for key in sorted(state)]


def merged_run(rules, events):
    rows = [dict(zip(STATE, values, strict=True)) for _, values, _ in events]
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in STATE.items()})
    return merge(
        table,
        list(STATE),
        rules,
        sequence=np.array([number for number, _, _ in events], np.int64),
        kinds=np.array([kind for _, _, kind in events], np.int8),
        levels=np.zeros(len(events), np.int32),
    ).to_pylist()


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(sorted(ENGINES)),
    st.lists(st.tuples(st.tuples(st.integers(0, 4), TEXT, SMALL), st.booleans()), max_size=30),
    st.lists(st.integers(1, 6), min_size=1),
    st.data(),
)
def test_however_a_history_is_cut_and_compacted_the_rows_are_those_of_a_dictionary(engine, history, cuts, data):
    if engine != "deduplicate":
        history = [(row, False) for row, _ in history]
    rules = Rules(keys=("k",), engine=ENGINES[engine])
    events = [(number, row, 3 if is_delete else 0) for number, (row, is_delete) in enumerate(history)]
    runs, at, done = [], 0, 0

    while done < len(events):
        size = cuts[at % len(cuts)]
        at += 1
        runs.append(events[done : done + size])
        done += size
        if data.draw(st.booleans()):  # compact the oldest runs: a merge's rows are new rows of their newest number
            taken = data.draw(st.integers(1, len(runs)))
            old = [event for part in runs[:taken] for event in part]
            newest = {event[1][0]: event[0] for event in old}
            left = merged_run(rules, old)
            runs[:taken] = [[(newest[row["k"]], tuple(row.values()), 0) for row in left]]

    rows = merged_run(rules, [event for part in runs for event in part])
    assert sorted(rows, key=lambda row: row["k"]) == dictionary(engine, history)


def aggregate(function, values, kind, kinds=None):
    """What a function makes of the values of one key."""
    engine = Aggregation(functions={"k": Function(name="primary_key"), "v": function})
    table = pa.table({"k": pa.array([1] * len(values), pa.int32()), "v": pa.array(values, kind)})
    rows = merge(
        table,
        ["v"],
        Rules(keys=("k",), engine=engine),
        sequence=np.arange(len(values)),
        kinds=np.array(kinds or [0] * len(values), np.int8),
        levels=np.zeros(len(values), np.int32),
    )
    rows.validate(full=True)
    return rows.column("v")[0].as_py()


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_a_sum_or_product_that_leaves_its_integer_type_is_refused(kind):
    most = 2 ** (kind.bit_width - 1) - 1

    assert aggregate(Function(name="sum"), [most, -1, None], kind) == most - 1
    with pytest.raises(CorruptBytesError, match=f"does not fit its type {kind}"):
        aggregate(Function(name="sum"), [most, 1, -1], kind)
    with pytest.raises(CorruptBytesError, match=f"does not fit its type {kind}"):
        aggregate(Function(name="sum"), [None, -most - 1], kind, [0, 1])
    with pytest.raises(CorruptBytesError, match=f"does not fit its type {kind}"):
        aggregate(Function(name="product"), [most, 2], kind)


def test_an_integer_product_is_divided_towards_zero_and_never_by_zero():
    assert aggregate(Function(name="product"), [-7, 2], pa.int32(), [0, 1]) == -3
    with pytest.raises(CorruptBytesError, match="divided by zero"):
        aggregate(Function(name="product"), [7, 0], pa.int32(), [0, 1])


def test_a_product_of_decimals_is_rounded_half_up_and_null_when_too_great():
    kind = pa.decimal128(5, 2)
    numbers = [decimal.Decimal("1.15"), decimal.Decimal("0.90")]

    assert aggregate(Function(name="product"), numbers, kind) == decimal.Decimal("1.04")
    assert aggregate(Function(name="product"), [decimal.Decimal("999.99")] * 2, kind) is None
    with pytest.raises(CorruptBytesError, match="without an exact result"):
        aggregate(Function(name="product"), [decimal.Decimal("1.00"), decimal.Decimal("3.00")], kind, [0, 1])


def test_floats_are_added_in_their_order_and_own_width():
    big = float(2**24)

    assert aggregate(Function(name="sum"), [big, 1.0, 1.0], pa.float32()) == big
    assert aggregate(Function(name="sum"), [big, 1.0, 1.0], pa.float64()) == big + 2
    assert aggregate(Function(name="product"), [1.0, 0.0], pa.float64(), [0, 1]) == math.inf
    assert aggregate(Function(name="sum"), [None, 0.5], pa.float64(), [0, 1]) == -0.5


@pytest.mark.parametrize("name", ["max", "bool_and", "first_value", "listagg", "merge_map_with_keytime"])
def test_a_retract_of_a_function_without_one_is_refused(name):
    kind = {"max": pa.int32(), "bool_and": pa.bool_()}.get(name, pa.string())

    with pytest.raises(CorruptBytesError, match=f"the aggregate function {name} cannot retract"):
        aggregate(Function(name=name), [None, None], kind, [0, 3])


def test_a_null_in_a_column_that_allows_none_is_refused():
    table = pa.table(
        {"k": pa.array([1, 1]), "v": pa.array([1, None])},
        schema=pa.schema([("k", pa.int64()), pa.field("v", pa.int64(), nullable=False)]),
    )

    with pytest.raises(CorruptBytesError, match="column 'v': a row with a null"):
        merge(
            table,
            ["v"],
            Rules(keys=("k",), engine=PartialUpdate()),
            sequence=np.arange(2),
            kinds=np.zeros(2, np.int8),
            levels=np.zeros(2, np.int32),
        )
