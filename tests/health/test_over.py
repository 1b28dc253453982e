"""The numbers of every version from lifetimes: against plain Python that goes through the files of each."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.core import frames
from snapshot_explorer.history.lifetimes import FileLifetimes
from tests.inner.analysis import groups_of, medians, over_frame, partitions_frame
from tests.inner.delta import settings_of as delta_upkeep
from tests.inner.paimon import PaimonSchema
from tests.inner.paimon import settings_of as paimon_upkeep
from tests.support.health_by_hand import by_group, group_by_hand, version_by_hand

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KEYED = paimon_upkeep(
    PaimonSchema(
        id=0, fields=(), partition_keys=(), primary_keys=("id",), options={"target-file-size": "1 kb"}, comment=None
    ),
    "shop.orders",
)
DELTA = delta_upkeep({"delta.targetFileSize": "1000"}, "/tables/orders")


def file_of(number, levels):
    """Return a strategy for the facts of a file."""
    plain = {
        "path": st.just(f"data-{number}"),
        "partition": st.sampled_from([(), (("day", "1"),), (("day", None),), (("day", ""),)]),
        "bucket": st.sampled_from([-2, 0, 1]) if levels else st.none(),
        "level": st.sampled_from([0, 0, 1, 5]) if levels else st.none(),
        "rows": st.one_of(st.integers(0, 9), st.none()) if not levels else st.integers(0, 9),
        "size_bytes": st.integers(0, 1_500),
        "schema_id": st.just(0),
        "data_change": st.just(value=True),
        "deletion_vector": st.none() if levels else st.sampled_from([None, None, f"u:{number}"]),
    }
    facts = st.fixed_dictionaries(plain)
    counted = st.one_of(st.integers(0, 5), st.none())
    return st.tuples(facts, counted).map(
        lambda pair: pair[0] | {"deleted_rows": pair[1] if pair[0]["deletion_vector"] else None}
    )


@st.composite
def histories(draw, levels):
    """Return what each version adds and removes, and the files that each has."""
    live, reported, states, number = {}, [], [], 0
    for version in range(draw(st.integers(1, 12))):
        gone = draw(st.sets(st.sampled_from(sorted(live)), max_size=3)) if live else ()
        reported += [{"version": version, "change": "remove", "list": "delta"} | live.pop(path) for path in gone]
        for _ in range(draw(st.integers(0, 4))):
            number += 1
            one = draw(file_of(number, levels))
            live[one["path"]] = one
            reported.append({"version": version, "change": "add", "list": "delta"} | one)
        states.append(list(live.values()))
    return reported, states


def lifetimes_of(reported, count):
    times = [EPOCH + dt.timedelta(minutes=version) for version in range(count)]
    rows = [row | {"partition": list(row["partition"])} for row in reported]
    return FileLifetimes().extended(range(count), times, pa.Table.from_pylist(rows, frames.CHANGES))


def assert_by_hand(history, settings):
    reported, states = history

    rows = over_frame(lifetimes_of(reported, len(states)), settings).to_pylist()

    assert [row.pop("version") for row in rows] == list(range(len(states)))
    assert [row.pop("committed_at") for row in rows] == [EPOCH + dt.timedelta(minutes=at) for at in range(len(states))]
    has_levels = any(row["level"] is not None for row in reported)
    for row, files in zip(rows, states, strict=True):
        expected = version_by_hand(files, settings)
        if has_levels and not files:
            expected |= {"level0_files": 0, "vector_files": None, "deleted_rows": None}
        assert row == expected
    assert_partitions_by_hand(states[-1], settings)


def assert_partitions_by_hand(files, settings):
    schema = frames.FILES.append(pa.field("delete_records", pa.int64()))
    rows = pa.Table.from_pylist([file | {"partition": list(file["partition"])} for file in files], schema)

    found = partitions_frame(groups_of(rows), settings).to_pylist()

    by_hand = {key: group_by_hand(some, settings) for key, some in by_group(files).items()}
    reported = {(tuple(row["partition"]), row["bucket"]): row for row in found}
    assert {key: {name: reported[key][name] for name in row} for key, row in by_hand.items()} == by_hand
    assert len(found) == len(by_hand)


@given(histories(levels=True))
def test_every_version_of_a_table_with_levels_is_as_counted_by_hand(history):
    assert_by_hand(history, KEYED)


@given(histories(levels=False))
def test_every_version_of_a_table_without_levels_is_as_counted_by_hand(history):
    assert_by_hand(history, DELTA)


@given(
    st.integers(1, 20).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, count - 1), st.integers(1, count)), max_size=40),
        )
    )
)
def test_medians_are_those_of_what_is_there(drawn):
    count, stays = drawn
    values, first, lasting = (np.array([one[place] for one in stays], np.int64) for place in range(3))
    last = np.minimum(first + lasting, count)

    found = medians(values, first, last, count)

    for moment in range(count):
        there = sorted(values[(first <= moment) & (moment < last)].tolist())
        middle = (there[(len(there) - 1) // 2] + there[len(there) // 2]) // 2 if there else 0
        assert found[moment] == middle


def test_a_table_without_versions_has_no_numbers():
    rows = over_frame(FileLifetimes(), DELTA)

    assert rows.num_rows == 0
    assert rows.schema.equals(frames.HEALTH_HISTORY)


def test_partitions_whose_column_was_renamed_are_one():
    plain = {"level": None, "bucket": None, "rows": 1, "size_bytes": 10, "schema_id": 0, "data_change": True}
    reported = [
        {"version": 0, "change": "add", "list": "delta", "path": "a", "partition": [("day", "1")]} | plain,
        {"version": 1, "change": "add", "list": "delta", "path": "b", "partition": [("date", "1")]} | plain,
    ]

    rows = over_frame(lifetimes_of(reported, 2), DELTA)

    assert rows["groups"].to_pylist() == [1, 1]
    assert rows["small_files"].to_pylist() == [0, 2]


@pytest.mark.parametrize("column", frames.HEALTH_HISTORY.names)
def test_every_column_says_what_it_means(column):
    assert frames.HEALTH_HISTORY.field(column).metadata[b"meaning"]
