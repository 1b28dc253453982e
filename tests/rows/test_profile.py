"""The numbers of columns over versions, against the rows of a model of the table."""

import uuid
from collections import Counter
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable, metadata, remove
from tests.support.filesystems import counting
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.row_histories import KINDS, STEPS, play

PAIMON = Path(__file__).parents[1] / "data" / "paimon"


def played(kind, steps):
    return play(kind, fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}", steps)


def expected(model, place):
    """Return by version the rows and, of one column, nulls, least and greatest value."""
    found = {}
    for version, rows in zip(model.versions, model.rows, strict=True):
        values = [row[place] for row in rows.values()]
        known = [value for value in values if value is not None]
        ends = (min(known), max(known)) if known else (None, None)
        found[version] = (len(values), len(values) - len(known), *ends)
    return found


def numbers(profile, name):
    rows = profile.columns[name].to_pylist()
    return {row["version"]: (row["rows"], row["null_count"], row["min"], row["max"]) for row in rows}


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=12)
@given(steps=STEPS)
def test_exact_numbers_are_those_of_the_rows(kind, steps):
    model = played(kind, steps)

    profile = open_table(model.url).profile_over(exact=True)

    for place, name in enumerate(("id", "name")):
        assert numbers(profile, name) == expected(model, place)
    assert set(profile.to_arrow()["bounds"].to_pylist()) == {None}


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=12)
@given(steps=STEPS)
def test_numbers_from_metadata_are_exact_or_said_to_be_bounds(kind, steps):
    model = played(kind, steps)

    profile = open_table(model.url).profile_over()

    for place, name in enumerate(("id", "name")):
        wanted, found = expected(model, place), numbers(profile, name)
        bounds = dict(zip(model.versions, profile.columns[name]["bounds"].to_pylist(), strict=True))
        for version, (rows, nulls, least, greatest) in wanted.items():
            reported = found[version]
            if bounds[version] == "rows, null_count, min, max: with rows that delete files remove":
                assert reported[0] >= rows
                continue
            assert reported[0] == rows
            assert reported[1] in (None, nulls)
            if kind == "iceberg":
                continue  # written without statistics
            if bounds[version] is None:
                assert reported[2:] == (least, greatest)
            elif least is not None:
                assert reported[2] <= least
                assert reported[3] >= greatest
        assert kind != "paimon" or all(found[version][1] is not None for version in found)


def test_only_some_columns_and_versions_are_profiled():
    table = open_table(samples.path("orders"))

    found = table.profile_over("amount", "7..9")

    assert found.versions == (7, 8, 9)
    assert found.to_arrow()["column"].to_pylist() == ["amount"] * 3
    assert found.to_arrow()["version"].to_pylist() == [9, 8, 7]
    assert found.call == f"open_table({table.path!r}).profile_over('amount', between='7..9')"
    assert "format paimon" in repr(found)
    assert "versions 7 of 2026-" in repr(found)


@pytest.mark.parametrize("name", ["orders", "events", "payments", "shipments"])
def test_numbers_of_samples_agree_with_their_rows(name):
    table = open_table(samples.path(name))

    loose, exact = table.profile_over(), table.profile_over(exact=True)

    assert table.at(table.versions()[0]).count() == exact.columns[next(iter(exact.columns))]["rows"][0].as_py()
    for column in loose.columns:
        for reported, real in zip(loose.columns[column].to_pylist(), exact.columns[column].to_pylist(), strict=True):
            assert reported["version"] == real["version"]
            if "rows" not in (reported["bounds"] or "") and reported["null_count"] is not None:
                assert (reported["rows"], reported["null_count"]) == (real["rows"], real["null_count"])
            if real["min"] is not None and reported["min"] is not None:
                assert reported["min"] <= real["min"] <= real["max"] <= reported["max"]
            if reported["bounds"] is None and reported["min"] is not None:
                assert (reported["min"], reported["max"]) == (real["min"], real["max"])


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        (["amount"], "20 of 22 versions"),
        (["amount", "payment_id"], "20 of 44 rows, one for each column at each version"),
    ],
)
def test_what_the_note_on_cut_off_numbers_counts_is_named(columns, note):
    profile = open_table(samples.path("payments")).profile_over(columns)

    assert note in repr(profile).splitlines()


def test_a_column_that_versions_lack_is_unknown_there(memory_root):
    table = DeltaTable(*memory_root, fields=(("id", "long"),))
    table.append([(1,), (2,)], stats='{"numRecords":2,"minValues":{"id":1},"maxValues":{"id":2},"nullCount":{"id":0}}')
    table.fields = (("id", "long"), ("name", "string"))
    table.commit(metadata(table.fields), operation="ADD COLUMNS")

    found = open_table(table.url).profile_over()
    rows = found.columns["name"].to_pylist()

    assert [row["bounds"] for row in rows] == ["no such column", "no such column", "min, max: text may be cut"]
    assert rows[1]["null_count"] is None
    assert "The metadata has no statistics of name: exact=True reads the rows." in str(found)
    exact = open_table(table.url).profile_over("name", exact=True)
    assert exact.columns["name"]["null_count"].to_pylist()[-1] == 2
    assert "no statistics" not in str(exact)


def test_numbers_of_a_table_with_rows_of_another_branch_are_unknown_until_they_are_read():
    table = open_table(str(PAIMON / "fallback_branch"))

    found, read = table.profile_over("k"), table.profile_over("k", exact=True)

    assert set(numbers(found, "k").values()) == {(None, None, None, None)}
    reason = "unknown: files alone do not determine the rows"
    assert set(found.columns["k"]["bounds"].to_pylist()) == {reason}
    assert numbers(read, "k") == {1: (4, 0, 1, 2), 2: (5, 0, 1, 2), 3: (5, 0, 1, 7), 4: (7, 0, 1, 7)}


def test_rows_of_a_primary_key_table_are_bounds_until_they_are_read():
    table = open_table(samples.path("orders"))

    assert table.profile_over("order_id").to_arrow()["bounds"][0].as_py() == ("rows, null_count, min, max: unmerged")
    assert table.profile_over("amount", exact=True).columns["amount"]["rows"].to_pylist()[-1] == table.current.count()


def test_a_profile_draws_lines_with_the_versions_marked_where_a_number_jumps():
    profile = open_table(samples.path("payments")).profile_over("amount")

    bundle = profile._repr_mimebundle_()
    marks = [trace for trace in profile.picture().data if trace.name == "jump"]

    assert set(bundle) == {"application/vnd.plotly.v1+json", "text/html", "text/plain"}
    assert any(11 in trace.x.tolist() for trace in marks)
    assert [row["version"] for row in profile.anomalies.to_pylist() if row["measure"] == "max"] == [11, 13]
    assert "(usual change: " in profile.anomalies["rule"][0].as_py()


def test_bad_arguments_of_a_profile_are_refused_by_name(memory_root):
    table = open_table(samples.path("orders"))

    with pytest.raises(InvalidArgumentError, match="Unknown column 'amont'. Did you mean amount?"):
        table.profile_over("amont")
    with pytest.raises(InvalidArgumentError, match="is not a range"):
        table.profile_over(between="7")
    empty = DeltaTable(*memory_root)
    with pytest.raises(SnapshotNotFoundError, match="Version 17 does not exist"):
        open_table(empty.url).profile_over(between="17..18")


def test_identifier_fields_of_iceberg_merge_no_rows(memory_root):
    written = IcebergTable(*memory_root)
    written.metadata["schemas"] = [written.metadata["schemas"][0] | {"identifier-field-ids": [1]}]
    written.commit([(1, "a"), (2, "b")])
    written.commit([(3, "c")])
    table = open_table(f"memory://{written.root}")

    lines = table.profile_over("id").columns["id"].to_pylist()

    assert table.at(1).schema.primary_keys == ("id",)
    assert [(line["rows"], line["bounds"]) for line in lines] == [(2, None), (3, None)]
    assert table.bisect("id > 2", single_pass=True).version == 2


def of_doubles(memory_root, *files):
    """Return a Delta table with a column x; each file is a commit."""
    table = DeltaTable(*memory_root, fields=(("x", "double"),))
    for values in files:
        table.append([(value,) for value in values])
    return open_table(table.url)


def test_nan_is_not_a_value_also_where_a_file_has_nothing_else(memory_root):
    nan = float("nan")
    table = of_doubles(memory_root, [nan], [1.5, nan, 2.5], [nan], [nan, None], [None])

    rows = table.profile_over("x", exact=True).columns["x"].to_pylist()[1:]

    assert [row["null_count"] for row in rows] == [0, 0, 0, 1, 2]
    assert [(row["min"], row["max"]) for row in rows] == [(None, None), *[(1.5, 2.5)] * 4]
    assert {row["bounds"] for row in rows} == {None}


def test_exact_numbers_do_not_need_types_that_can_be_compared(memory_root):
    table = DeltaTable(*memory_root, fields=[("x", "string"), ("y", "long")])
    table.append([("7", 1), (None, 2)], name="digits")
    table.append([("a", 3)], name="letters")
    table.fields = [("x", "long"), ("y", "long")]
    table.commit(metadata(fields=table.fields), remove("digits"), remove("letters"), table.data("new", [(5, 4)]))

    profile = open_table(table.url).profile_over(exact=True)

    assert numbers(profile, "x") == {0: (0, 0, None, None), 1: (2, 1, 7, 7), 2: (3, 1, None, None), 3: (1, 0, 5, 5)}
    assert numbers(profile, "y") == {0: (0, 0, None, None), 1: (2, 0, 1, 2), 2: (3, 0, 1, 3), 3: (1, 0, 4, 4)}


def test_exact_numbers_plan_few_versions_and_read_each_file_once(memory_root, register):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root, fields=[("x", "long")])
    for number in range(30):
        table.append([(number,)], name=f"{number}.parquet")
    system = register(counting())

    profile = open_table(f"counted://{root}").profile_over(exact=True)

    assert profile.columns["x"]["max"].to_pylist() == [None, *range(30)]
    reads = Counter(request.path for request in system.requests if request.kind == "get")
    assert {count for path, count in reads.items() if path.endswith(".parquet")} == {1}
    assert max(reads.values()) < 10


def emptied(table, monkeypatch, builder):
    """Let the second listing of a call find an Iceberg table without snapshots."""
    listing, calls = history_of(table).table_format.listing, []

    def listed(start=None):
        calls.append(start)
        if len(calls) == 2:
            builder.metadata |= {"snapshots": [], "refs": {}, "snapshot-log": [], "current-snapshot-id": -1}
            builder.write_metadata()
        return listing(start)

    monkeypatch.setattr(history_of(table).table_format, "listing", listed)


@pytest.mark.parametrize(
    "answer", [lambda table: table.profile_over(), lambda table: table.anomalies(), lambda table: table.blame()]
)
def test_a_table_that_is_emptied_after_it_was_listed_is_an_error(memory_root, monkeypatch, answer):
    builder = IcebergTable(*memory_root)
    for number in range(3):
        builder.commit([(number, "ann")])
    table = open_table(f"memory://{memory_root[1]}")
    emptied(table, monkeypatch, builder)

    with pytest.raises(SnapshotNotFoundError, match="were removed while they were read: .* Try again"):
        answer(table)
