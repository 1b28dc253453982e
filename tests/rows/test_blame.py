"""What happened to rows: the lines, replayed, give the rows of every version, and name the commits that made them."""

import csv
import json
import re
import uuid
from collections import Counter
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from tests.support.canonical import canonical_rows
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol, remove
from tests.support.row_histories import KINDS, STEPS, play

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted(
    path for kind in ("paimon", "delta", "iceberg") for path in (DATA / kind).iterdir() if path.name != "empty"
)
TABLES += [Path(samples.__file__).parent / name for name in ("orders", "events", "payments")]


def played(kind, steps):
    return play(kind, fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}", steps)


def reported(found):
    """Return by version what changed of which id: (before, after) names, None for a row that is not there."""
    changes = {}
    for row in found.to_arrow().to_pylist():
        before, after = row["before"], row["after"]
        assert row["change"] == ("insert" if before is None else "delete" if after is None else "update")
        number = (before or after)["id"]
        sides = tuple(None if side is None else (side["id"], side["name"]) for side in (before, after))
        changes.setdefault(row["version"], {})[number] = sides
    return changes


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=10)
@given(steps=STEPS)
def test_lines_by_key_are_the_changes_of_the_rows(kind, steps):
    model = played(kind, steps)

    found = open_table(model.url).blame(key="id")

    assert reported(found) == {version: changes for version, changes in model.changed().items() if changes}


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=10)
@given(steps=STEPS, number=st.integers(1, 9))
def test_the_whole_life_of_a_row_is_found_from_few_files(kind, steps, number):
    model = played(kind, steps)

    found = open_table(model.url).blame(f"id = {number}", key=["id"])

    expected = {version: changes[number] for version, changes in model.changed().items() if number in changes}
    assert {version: sides[number] for version, sides in reported(found).items()} == expected
    assert found.opened_files <= found.admitted_files <= found.files


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=10)
@given(steps=STEPS)
def test_without_a_key_lines_replayed_give_the_rows_that_pass_at_every_version(kind, steps):
    model = played(kind, steps)

    found = open_table(model.url).blame("name IS NOT NULL AND id <> 2")

    lines = found.to_arrow().to_pylist()
    state = Counter()
    for version, rows in zip(model.versions, model.rows, strict=True):
        for row in (line for line in lines if line["version"] == version):
            sides = [None if row[side] is None else tuple(row[side].values()) for side in ("before", "after")]
            state.subtract([sides[0]] if sides[0] else [])
            state.update([sides[1]] if sides[1] else [])
        assert +state == Counter(row for row in rows.values() if row[1] is not None and row[0] != 2)


def blamed(table):
    """Return the blame of all rows, without columns whose values cannot be compared over their types."""
    names = table.current.arrow_schema.names
    while True:
        try:
            return table.blame(columns=names)
        except UnsupportedFeatureError as error:
            (refused,) = re.findall(r"The column '(\w+)' (?:is|was) .* cannot be compared", str(error))
            names = [name for name in names if name != refused]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_lines_replayed_give_the_rows_of_every_version_of_real_tables(path):
    if path.name == "aggregates_sketches":
        pytest.importorskip("datasketches")
    table = open_table(str(path))
    found = blamed(table)
    compared = pa.schema(list(found.lines.schema.field("after").type)) if len(found) else pa.schema([])
    schema = table.current.arrow_schema
    state = Counter()
    lines = found.to_arrow()

    for version in found.versions:
        mine = lines.filter(pa.compute.equal(lines["version"], version))
        for side, sign in (("before", -1), ("after", 1)):
            if side in mine.column_names:
                rows = mine.filter(mine[side].is_valid())[side].combine_chunks()
                table_of_rows = pa.Table.from_arrays(rows.flatten(), names=[field.name for field in rows.type])
                for row in canonical_rows(table_of_rows):
                    state[repr(row)] += sign
        if version in found.unreadable:
            continue
        snapshot = table.at(version)
        if snapshot.arrow_schema.equals(schema):
            rows = snapshot.to_arrow(compared.names or None)
            assert +state == Counter(map(repr, canonical_rows(rows.cast(compared) if len(compared) else rows)))
    assert min(state.values(), default=0) >= 0


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_rule_of_attribution_holds(kind):
    steps = [("delete", 0), ("restore", 0), ("compact", 1), ("update", 0, "cy")]
    model = played(kind, steps)

    found = open_table(model.url).blame("id = 1", key="id")

    by_operation = dict(zip(model.versions, model.operations, strict=True))
    lines = [(by_operation[row["version"]], row["change"]) for row in found.to_arrow().to_pylist()]
    assert lines == [("insert", "insert"), ("delete", "delete"), ("restore", "insert"), ("update", "update")]
    assert found.to_arrow()["changed_columns"].to_pylist()[-1] == ["name"]


def test_an_added_column_blames_nobody_and_the_commit_that_fills_it_is_blamed(memory_root):
    table = DeltaTable(*memory_root, fields=(("id", "long"),))
    table.append([(1,)], name="a.parquet")
    table.fields = (("id", "long"), ("name", "string"))
    table.commit(metadata(table.fields), operation="ADD COLUMNS")
    filled = table.commit(table.data("b.parquet", [(1, "ann")]), remove("a.parquet"), operation="UPDATE")

    found = open_table(table.url).blame(key="id")

    assert [(row["version"], row["change"]) for row in found.to_arrow().to_pylist()] == [
        (1, "insert"),
        (filled, "update"),
    ]
    assert [row["version"] for row in open_table(table.url).blame("name = 'ann'").to_arrow().to_pylist()] == [filled]


def test_rows_of_the_first_version_of_a_range_are_present_since_then_or_earlier():
    table = open_table(samples.path("orders"))

    found = table.blame("order_id = 42", between="7..9")

    assert found.to_arrow().select(["version", "change"]).to_pylist() == [
        {"version": 7, "change": "present, since 7 or earlier"},
        {"version": 8, "change": "update"},
    ]
    assert found.call == f"open_table({table.path!r}).blame('order_id = 42', between='7..9')"
    assert "versions 7 of 2026-" in repr(found)


@pytest.mark.parametrize("name", ["delta/types", "paimon/append_orc"])
def test_rows_of_any_type_export(name, tmp_path):
    found = open_table(str(DATA / name)).blame()

    found.to_csv(tmp_path / "lines.csv")
    found.to_parquet(tmp_path / "lines.parquet")

    assert len(json.loads(found.to_json())) == len(found) > 0
    with (tmp_path / "lines.csv").open(newline="") as lines:
        assert len(list(csv.DictReader(lines))) == len(found)
    assert pq.read_table(tmp_path / "lines.parquet").num_rows == len(found)


def test_a_renamed_column_is_the_same_column():
    found = open_table(samples.path("payments")).blame("payment_id = 31", key="payment_id")

    assert found.to_arrow().select(["version", "change"]).to_pylist() == [{"version": 2, "change": "insert"}]
    assert found.to_arrow()["after"][0]["channel"].as_py() == "wallet"


def test_versions_that_cannot_be_read_are_named_and_never_blamed(memory_root):
    table = DeltaTable(*memory_root, first=None)
    table.commit(protocol(), metadata(), table.data("a.parquet", [(1, "ann")]))
    table.commit(add("gone.parquet", rows=1), remove("a.parquet"), operation="UPDATE")
    table.commit(table.data("c.parquet", [(1, "bob")]), remove("gone.parquet"), operation="UPDATE")

    found = open_table(table.url).blame("id = 1", key="id")

    assert [(row["version"], row["change"]) for row in found.to_arrow().to_pylist()] == [
        (0, "insert"),
        (2, "update at 1 or 2"),
    ]
    assert found.notes[0].startswith("Version 1 cannot be read because data files are gone. ")
    assert "Version 1 cannot be read" in repr(found)
    assert "compared 2 of 3 versions, 1 could not be read: no other can have changed such rows" in " ".join(
        repr(found).split()
    )
    assert found.notes[0].endswith("What changed there is shown with the next version, as far as it lasted.")


def test_a_blame_of_more_lines_than_it_shows_counts_those_of_each_version(memory_root):
    table = DeltaTable(*memory_root)
    for version in range(1, 13):
        table.append([(20 * version + one, "ann") for one in range(version + 1)])

    found = open_table(table.url).blame("name = 'ann'")

    counts = ", ".join(f"{version + 1} at version {version}" for version in range(1, 9))
    assert f"changes {counts}, others at 4 more" in " ".join(repr(found).split())


def test_a_blame_says_what_it_opened_and_exports(tmp_path):
    found = open_table(samples.path("orders")).blame("order_id = 42")

    shown = repr(found)
    found.to_csv(tmp_path / "lines.csv")
    found.to_parquet(tmp_path / "lines.parquet")

    assert f"opened {found.opened_files} of {found.files} data files" in shown
    assert "25.98 \N{RIGHTWARDS ARROW} " in shown
    assert ").blame(&#x27;order_id = 42&#x27;)" in found._repr_mimebundle_()["text/html"]
    assert pq.read_table(tmp_path / "lines.parquet").num_rows == len(found) == 3
    assert "before.amount" in (tmp_path / "lines.csv").read_text().splitlines()[0]
    assert found.to_pandas().shape[0] == 3
    assert '"change":"update"' in found.to_json()


def test_a_blame_without_lines_has_the_columns_of_one_with_lines(tmp_path):
    orders = open_table(samples.path("orders"))

    nothing = orders.blame("order_id = -1")
    nothing.to_csv(tmp_path / "lines.csv")

    assert len(nothing) == 0
    assert nothing.to_arrow().schema == orders.blame("order_id = 42").to_arrow().schema
    assert "before.amount" in (tmp_path / "lines.csv").read_text().splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"where": "idd = 1"}, "Unknown column 'idd' in the condition 'idd = 1'. Did you mean id?"),
        ({"where": "id ="}, "is not SQL"),
        ({"where": "count(*) > 1"}, "aggregate"),
        ({"key": "idd"}, "Unknown column 'idd' in key"),
        ({"columns": ["nam"]}, "Unknown column 'nam' in columns"),
        ({"key": "name"}, "The key column 'name' is null in a row of version"),
    ],
)
def test_bad_arguments_of_a_blame_are_refused(arguments, message):
    model = played("delta", [("insert", [None])])

    with pytest.raises(InvalidArgumentError, match=message):
        open_table(model.url).blame(**arguments)


def test_a_key_that_is_not_unique_is_refused():
    model = played("delta", [("insert", ["ann", "ann"])])

    with pytest.raises(InvalidArgumentError, match="The key name is not unique: several rows of version 1 have name="):
        open_table(model.url).blame(key="name")


def test_rows_of_the_first_version_that_can_be_read_are_present_since_an_earlier_one(memory_root):
    table = DeltaTable(*memory_root, first=None)
    names = [f"{number}.parquet" for number in range(1, 6)]
    for number, name in enumerate(names, 1):
        first = [] if table.version >= 0 else [protocol(), metadata()]
        table.commit(*first, table.data(name, [(number, "ann")]))
    compacted = table.data("all.parquet", [(number, "ann") for number in range(1, 6)], data_change=False)
    removed = [remove(name, data_change=False) for name in names]
    optimized = table.commit(*removed, compacted, operation="OPTIMIZE")
    table.append([(9, "bob")])
    for name in names:
        table.remove_file(name)

    found = open_table(table.url).blame(key="id")

    lines = found.to_arrow().to_pylist()
    assert [(line["version"], line["change"], line["operation"]) for line in lines] == [
        *[(optimized, "present, since 4 or earlier", None)] * 5,
        (6, "insert", "WRITE"),
    ]
    assert found.unreadable == (0, 1, 2, 3, 4)
    (note,) = found.notes
    assert note.startswith(
        "Versions 0 to 4 cannot be read because data files are gone. What changed there is shown with"
    )


def test_a_change_after_versions_that_cannot_be_read_names_them_all(memory_root):
    table = DeltaTable(*memory_root)
    table.append([(1, "ann")], name="a.parquet")
    table.commit(remove("a.parquet"), table.data("b.parquet", [(1, "bob")]))
    table.commit(remove("b.parquet"), table.data("c.parquet", [(1, "cy")]), operation="UPDATE")
    table.remove_file("b.parquet")

    lines = open_table(table.url).blame("id = 1", key="id").to_arrow().to_pylist()

    assert [(line["version"], line["change"], line["operation"]) for line in lines] == [
        (1, "insert", "WRITE"),
        (3, "update at 2 or 3", None),
    ]
