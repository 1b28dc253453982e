"""The three-way diff: what two sides changed since a common base, and where they conflict."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import snapshot_explorer as sx
from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, UnknownColumnError, UnsupportedFeatureError
from tests.support.delta.table_builder import DeltaTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64())])


def rows(*values):
    columns = list(zip(*values, strict=True)) or [[], [], []]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


BASE = rows((1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0), (4, None, 4.0), (5, "e", 5.0), (6, "f", 6.0), (7, "g", 7.0))
OURS = rows((1, "A", 1.0), (2, "B", 2.0), (3, "C", 3.0), (4, None, 4.5), (5, "e", 5.0), (7, "g", 7.0), (8, "h", 8.0))
THEIRS = rows((1, "a", 1.0), (2, "B", 2.0), (3, "Z", 3.0), (4, "d", 4.0), (5, "e", 5.5), (6, "F", 6.0), (8, "x", 8.0))


@pytest.fixture
def result():
    return sx.diff3(BASE, OURS, THEIRS, key="id")


def test_each_changed_row_has_a_status_and_what_each_side_did(result):
    found = {row["id"]: (row["status"], row["ours"], row["theirs"]) for row in result.rows.to_pylist()}

    assert found == {
        1: ("ours", "updated", None),
        2: ("both", "updated", "updated"),
        3: ("conflict", "updated", "updated"),
        4: ("merged", "updated", "updated"),
        5: ("theirs", None, "updated"),
        6: ("conflict", "deleted", "updated"),
        7: ("theirs", None, "deleted"),
        8: ("conflict", "inserted", "inserted"),
    }
    assert result.counts == {"ours": 1, "theirs": 2, "both": 1, "merged": 1, "conflict": 3}
    assert result.has_conflicts


def test_conflicts_come_first_with_their_cells_and_all_three_values(result):
    first = result.rows.to_pylist()[:3]

    assert {row["id"]: row["conflict_columns"] for row in first} == {3: ["name"], 6: None, 8: ["name"]}
    row = next(row for row in first if row["id"] == 3)
    assert (row["name_base"], row["name_ours"], row["name_theirs"]) == ("c", "C", "Z")
    assert len(result.conflicts.to_arrow()) == 3
    with pytest.raises(InvalidArgumentError, match="no status 'conflicts'. Statuses: ours, theirs, both"):
        result.of_status("conflicts")


def test_a_merge_would_bring_what_theirs_changed_and_no_conflict(result):
    assert result.incoming.to_pylist() == [
        {"rowkind": "-D", "id": 7, "name": "g", "amount": 7.0},
        {"rowkind": "-U", "id": 5, "name": "e", "amount": 5.0},
        {"rowkind": "+U", "id": 5, "name": "e", "amount": 5.5},
        {"rowkind": "-U", "id": 4, "name": None, "amount": 4.5},
        {"rowkind": "+U", "id": 4, "name": "d", "amount": 4.5},
    ]


def test_the_drawing_shows_conflicts_first_and_both_values(result):
    text = repr(result)

    assert "1 changed by ours alone, 2 by theirs alone, 1 by both to the same, 1 by both in different columns" in text
    assert "3 in conflict" in text
    assert "c → C | Z" in text
    assert "A merge needs no decision" in repr(sx.diff3(BASE, BASE, THEIRS, key="id"))
    assert "Neither side changed a row." in repr(sx.diff3(BASE, BASE, BASE, key="id"))


VALUES = st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, 0.0, -0.0, 1.0, float("nan")]))
STATES = st.dictionaries(st.integers(0, 5), VALUES)


def of_state(state):
    return rows(*((key, *values) for key, values in state.items()))


def canonical(state):
    """Values that are equal where a row diff calls them equal: NaN is NaN, -0.0 is not 0.0."""
    return {int(key): tuple(map(repr, values)) for key, values in state.items()}


@settings(max_examples=60)
@given(base=STATES, ours=STATES, theirs=STATES)
def test_any_three_states_are_merged_as_by_hand(base, ours, theirs):  # noqa: C901 - the cases of a merge
    result = sx.diff3(of_state(base), of_state(ours), of_state(theirs), key="id")

    states = [canonical(state) for state in (base, ours, theirs)]
    expected, merged = {}, dict(states[1])
    for key in set().union(*states):
        was, mine, other = (state.get(key) for state in states)
        if was == mine == other:
            continue
        if mine == other:
            expected[key] = "both"
        elif other == was:
            expected[key] = "ours"
        elif mine == was:
            expected[key] = "theirs"
            merged[key] = other
        elif was is None or mine is None or other is None:
            expected[key] = "conflict"
        else:
            cells = list(zip(was, mine, other, strict=True))
            is_conflict = any(a not in (b, c) and b != c for a, b, c in cells)
            expected[key] = "conflict" if is_conflict else "merged"
            if not is_conflict:
                merged[key] = tuple(c if c != a else b for a, b, c in cells)
    assert {row["id"]: row["status"] for row in result.rows.to_pylist()} == expected
    applied = dict(states[1])
    for row in result.incoming.to_pylist():
        if row["rowkind"] in ("+I", "+U"):
            applied[row["id"]] = (repr(row["name"]), repr(row["amount"]))
        elif row["rowkind"] == "-D":
            del applied[row["id"]]
    assert applied == {key: values for key, values in merged.items() if values is not None}


def test_the_base_of_two_branches_is_where_they_parted(memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, root)
    table.commit([(1, "a"), (2, "b")])
    table.commit([(3, "c")])
    table.fork("audit", 2).commit([(4, "d")])
    table.commit([(5, "e")])
    main, audit = open_table(f"memory://{root}"), open_table(f"memory://{root}", branch="audit")

    result = sx.diff3(None, main.at("latest"), audit.at("latest"), key="id")

    assert result.base == "version 2 of main" or result.base.startswith("version 2")
    assert {row["id"]: row["status"] for row in result.rows.to_pylist()} == {4: "theirs", 5: "ours"}


def test_columns_that_not_all_three_have_are_listed_and_not_compared():
    ours = OURS.append_column("new", pa.array([1] * len(OURS)))
    theirs = THEIRS.drop_columns(["amount"])

    result = sx.diff3(BASE, ours, theirs, key="id")

    assert result.columns == ("id", "name")
    assert result.columns_not_compared == ("amount", "new")
    renamed = OURS.rename_columns(["ID", "name", "amount"])
    assert sx.diff3(BASE, renamed, THEIRS, key="id").counts == sx.diff3(BASE, OURS, THEIRS, key="id").counts


def test_columns_with_names_of_the_result_are_kept_apart():
    names = ["id", "status", "ours"]
    base, ours, theirs = (table.rename_columns(names) for table in (BASE, OURS, THEIRS))

    result = sx.diff3(base, ours, theirs, key="id")

    assert result.rows.column_names[:4] == ["status", "ours", "theirs", "conflict_columns"]
    assert result.counts["conflict"] == 3
    keyed = [table.rename_columns(["status", "b", "c"]) for table in (BASE, OURS, THEIRS)]
    assert sx.diff3(*keyed, key="status").rows.column_names[:2] == ["status_", "ours"]
    assert sx.diff3(*keyed, key="status").counts["conflict"] == 3


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((BASE, OURS, THEIRS), {}, InvalidArgumentError, "A three-way diff needs a key"),
        ((BASE, OURS, THEIRS), {"key": []}, InvalidArgumentError, "A three-way diff needs a key"),
        ((None, OURS, THEIRS), {"key": "id"}, InvalidArgumentError, "The base is only known for two branches"),
        ((BASE, OURS, THEIRS), {"key": "id", "exclude": ["nam"]}, UnknownColumnError, "nam"),
        (
            (BASE, OURS, rows((1, "x", 1.0), (1, "y", 1.0))),
            {"key": "id"},
            InvalidArgumentError,
            "several rows of pyarrow Table have id=1",
        ),
        (
            (BASE, OURS, pa.table({"id": [1], "amount": ["x"]})),
            {"key": "id"},
            UnsupportedFeatureError,
            "cannot be compared: 'amount'",
        ),
    ],
    ids=["no key", "empty key", "no base", "unknown", "repeated", "types"],
)
def test_what_cannot_be_compared_is_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        sx.diff3(*arguments, **options)


def test_versions_of_tables_of_any_format_and_data_frames_are_compared(tmp_path, memory_root):
    delta = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("name", "string")])
    delta.commit(delta.data("a.parquet", [(1, "a"), (2, "b")]))
    iceberg = IcebergTable(*memory_root)
    iceberg.commit([(1, "a"), (2, "c")])
    base = open_table(str(tmp_path / "t")).at("latest")
    ours = open_table(f"memory://{iceberg.root}").at("latest")
    theirs = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "z"]})

    result = sx.diff3(base, ours, theirs, key="id")

    assert result.counts == {"ours": 1, "theirs": 1, "both": 0, "merged": 0, "conflict": 0}
    assert result.to_pandas()["status"].tolist() == ["theirs", "ours"]


# The statement that brings theirs to ours.


def opened(tmp_path, values):
    """Return a Delta table with some rows, and its builder."""
    fields = [("id", "long"), ("name", "string"), ("amount", "double")]
    table = DeltaTable(None, tmp_path / "orders", fields=fields)
    table.append([tuple(row.values()) for row in values.to_pylist()])
    return open_table(table.url), table


def test_the_statement_lists_what_theirs_changed_and_leaves_out_conflicts(tmp_path):
    ours, _ = opened(tmp_path, OURS)

    merge = sx.diff3(BASE, ours.at("latest"), THEIRS, key="id").merge_statement("lake.shop.orders")

    assert merge.counts == {"inserted": 0, "updated": 2, "deleted": 1}
    assert (merge.conflicts, merge.key, merge.is_empty) == (3, ("id",), False)
    assert (
        merge.statement
        == """\
-- The numbers hold while version 1 is the newest: after another commit, plan again.
-- 3 conflicting rows are left out.
MERGE INTO `lake`.`shop`.`orders` AS current
USING (
  SELECT * FROM VALUES
    (7L, 'g', CAST('7.0' AS DOUBLE), '-D'),
    (5L, 'e', CAST('5.5' AS DOUBLE), '+U'),
    (4L, 'd', CAST('4.5' AS DOUBLE), '+U')
  AS later (`id`, `name`, `amount`, `later_0`)
) AS changed
ON current.`id` = changed.`id`
WHEN MATCHED AND changed.`later_0` = '+U' THEN UPDATE SET
    `name` = changed.`name`, `amount` = changed.`amount`
WHEN MATCHED AND changed.`later_0` = '-D' THEN DELETE"""
    )


def test_without_a_change_of_theirs_there_is_no_statement(tmp_path):
    ours, _ = opened(tmp_path, OURS)

    merge = sx.diff3(BASE, ours.at("latest"), BASE, key="id").merge_statement()

    assert merge.is_empty
    assert "Nothing to do: theirs changed no row that a merge brings." in repr(merge)


def test_a_statement_draws_itself_with_what_to_expect_and_what_is_left_out(tmp_path):
    ours, _ = opened(tmp_path, OURS)

    merge = sx.diff3(BASE, ours.at("latest"), THEIRS, key="id").merge_statement("lake.shop.orders")

    text, html = repr(merge), merge._repr_mimebundle_()["text/html"]
    assert text.startswith("Merge, not run: what ")
    assert merge.statement in text
    assert "rows to expect  0 inserted, 2 updated, 1 deleted" in text
    assert "in conflict     3 rows, left out" in text
    assert "MERGE INTO `lake`.`shop`.`orders` AS current" in html


def test_a_statement_with_conflicts_alone_says_that_they_need_a_decision(tmp_path):
    ours, _ = opened(tmp_path, OURS)
    conflict = sx.diff3(BASE, ours.at("latest"), THEIRS, key="id").conflicts.to_arrow()["id"][0].as_py()

    merge = sx.diff3(BASE, ours.at("latest"), THEIRS, key="id", where=f"id = {conflict}").merge_statement()

    assert merge.is_empty
    assert merge.conflicts == 1
    assert "1 row in conflict needs a decision." in repr(merge)


def test_inserted_rows_have_typed_nulls_and_the_names_of_ours(tmp_path):
    ours, _ = opened(tmp_path, BASE)
    theirs = pa.concat_tables([BASE, rows((9, None, None))])

    statement = sx.diff3(BASE, ours.at("latest"), theirs, key="id").merge_statement().statement

    assert "(9L, CAST(NULL AS STRING), CAST(NULL AS DOUBLE), '+I')" in statement
    assert statement.endswith("(changed.`id`, changed.`name`, changed.`amount`)")


def test_a_statement_that_is_not_certain_is_refused(tmp_path, result):
    ours, builder = opened(tmp_path, OURS)
    latest = ours.at("latest")

    with pytest.raises(InvalidArgumentError, match="Ours is not a version of a table"):
        result.merge_statement()
    narrow = [side.drop_columns(["amount"]) for side in (BASE, pa.concat_tables([BASE, rows((9, "n", 0.0))]))]
    with pytest.raises(UnsupportedFeatureError, match="lack the columns of ours that are not compared: amount"):
        sx.diff3(narrow[0], latest, narrow[1], key="id").merge_statement()
    many = pa.concat_tables([BASE, rows(*((number, "n", 0.0) for number in range(100, 700)))])
    with pytest.raises(UnsupportedFeatureError, match=r"Theirs changed 600 rows, .* lists up to 500"):
        sx.diff3(BASE, latest, many, key="id").merge_statement()
    builder.append([(1, "again", 0.0)])
    with pytest.raises(InvalidArgumentError, match="Ours is version 1, and .* the newest version, which is 2"):
        sx.diff3(BASE, latest, THEIRS, key="id").merge_statement()
    with pytest.raises(InvalidArgumentError, match="the same in several rows"):
        sx.diff3(BASE, ours.at("latest"), THEIRS, key="id", where="id <> 1").merge_statement()
