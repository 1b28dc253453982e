"""Undoing one commit: what is put back, what later commits keep, which statement does it, and what is refused."""

import json
import re
import shutil
import uuid
from collections import Counter

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import (
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.jupyter.commands import COMMANDS
from tests.inner.core import python_call
from tests.inner.jupyter import magic_line
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable, metadata, remove
from tests.support.paimon.table_builder import PaimonTable
from tests.support.row_histories import KINDS, STEPS, play

FIELDS = [("id", "long"), ("name", "string"), ("amount", "double")]
FIRST = [(number, "a", float(number)) for number in range(1, 6)]


def grown(root, *versions, fields=FIELDS, schema=None, **options):
    """Return an open table whose versions have these rows, each in a file of its own; version 0 is empty."""
    table = DeltaTable(None, root, fields=fields, **options)
    for number, rows in enumerate(versions):
        gone = [remove(f"{number - 1}.parquet")] if number else []
        table.commit(*gone, table.data(f"{number}.parquet", rows, schema=schema))
    return open_table(str(root))


def expected(before, after, now, matches=lambda _: True):
    """Return the numbers of rows that undoing a commit inserts, deletes and updates, that stay, and that are back."""
    found = Counter()
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new or not any(row is not None and matches(row) for row in (old, new)):
            continue
        current = now.get(key)
        if current == old:
            found["already"] += 1
        elif current != new:
            found["left"] += 1
        else:
            found["inserted" if new is None else "deleted" if old is None else "updated"] += 1
    return found


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=6)
@given(steps=STEPS, place=st.integers(0, 20), limit=st.none() | st.integers(0, 8), key=st.sampled_from([["id"], []]))
def test_a_commit_of_any_history_is_undone_as_a_model_says(kind, steps, place, limit, key):
    model = play(kind, fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}", [("insert", ["ann"]), *steps])
    index = 1 + place % (len(model.versions) - 1)
    asked = {"undo": model.versions[index], "where": None if limit is None else f"id <= {limit}", "key": key}
    counts = expected(*model.rows[index - 1 : index + 1], model.rows[-1], lambda row: limit is None or row[0] <= limit)
    before, after, now = ({*map(repr, model.rows[at].values())} for at in (index - 1, index, -1))
    table = open_table(model.url)
    is_undone = not (after - before) & now and before - after <= now
    is_changed = not is_undone and not after - before <= now
    if not key and before - after and after - before and (limit is not None or is_changed):
        with pytest.raises(UnsupportedFeatureError, match="Without a key, which belong together is unknown"):
            table.repair(**asked, name="t")
        return

    plan = table.repair(**asked, name="t")

    assert (plan.undone, plan.to, plan.version) == tuple(model.versions[at] for at in (index, index - 1, -1))
    assert plan.is_empty == (not plan.rows.total)
    if key:
        assert sum(plan.left_counts.values()) == counts["left"]
        assert plan.counts == {word: counts[word] for word in ("inserted", "deleted", "updated")}
    elif not counts["left"]:
        # As a whole row, an update is a row removed and one inserted.
        gained, lost = (counts[word] + counts["updated"] for word in ("inserted", "deleted"))
        assert plan.counts == {"inserted": gained, "deleted": lost, "updated": 0}


def test_a_bad_delete_is_undone_and_later_rows_stay(tmp_path):
    """What happens most often: rows are deleted by mistake, and good commits follow."""
    late = [(number, "b", 1.0) for number in range(10, 21)]
    table = grown(tmp_path / "t", FIRST, FIRST[:1], [*FIRST[:1], *late])

    plan, beyond = table.repair(undo=2, key="id"), table.repair(1, "amount > 0", key="id")

    assert plan.counts == {"inserted": 4, "deleted": 0, "updated": 0}
    assert re.fullmatch(
        r"INSERT INTO (\S+) \(`id`, `name`, `amount`\)\nSELECT `id`, `name`, `amount`\nFROM \1 VERSION AS OF 1\n"
        r"WHERE `id` IN \(2L, 3L, 4L, 5L\)",
        plan.statement,
    )
    assert (plan.warnings, plan.left_counts) == ((), {})
    assert beyond.counts == {"inserted": 4, "deleted": 11, "updated": 0}
    first, later, alone = beyond.warnings
    assert first == (
        "This undoes 2 commits, all since version 1: 11 rows that they inserted would be deleted, 0 rows that they "
        "changed would be set back, and 4 rows that they deleted would come back."
    )
    assert later == "11 rows of them are of commits after version 2, the first one: 11 inserted, 0 changed, 0 deleted."
    assert (
        alone == "To undo version 2 alone and touch no later row: table.repair(undo=2, where='amount > 0', key=['id'])."
    )
    shown = repr(beyond)
    assert shown.startswith(
        "Repair of t, not run: the rows where amount > 0 as at version 1, which undoes 2 commits\nThis undoes"
    )
    assert shown.index("This undoes 2 commits") < shown.index("Spark SQL:")
    assert "next                table.repair(undo=2, where='amount > 0', key=['id'])" in shown
    assert "This undoes 2 commits" in beyond._repr_mimebundle_()["text/html"]


def test_no_warning_where_later_commits_changed_none_of_the_rows(tmp_path):
    table = grown(tmp_path, FIRST, FIRST[:1], [*FIRST[:1], (9, "b", -9.0)])

    plan = table.repair(1, "amount > 0", key="id")

    assert (plan.warnings, plan.later_rows.is_harmless) == ((), True)
    assert table.repair(2, "amount < 0", key="id").later_rows is None  # one commit


def test_a_restore_says_how_many_rows_of_later_commits_it_undoes():
    payments = open_table(samples.path("payments"))

    plan, renamed = payments.repair("latest~3"), payments.repair(10)

    for restore in (plan, renamed):
        first = restore.later_rows.first
        assert restore.statement.startswith("RESTORE TABLE")
        assert f"which undoes {len(restore.later)} commits" in repr(restore)
        assert f"To undo version {first} alone and touch no later row: table.repair(undo={first})." in restore.warnings
    assert plan.later_rows.rows.total > 0
    assert "How many of these rows commits after version 11 changed is not known." in renamed.warnings


def test_rows_that_later_commits_changed_are_left_and_named(tmp_path):
    before = [*FIRST, (6, "a", 6.0), (7, "a", 7.0)]
    # Deletes 1 and 2, changes 3, 4, 5 and 6, inserts 8 and 9.
    bad = [(number, "x", 0.0) for number in (3, 4, 5, 6)] + [(7, "a", 7.0), (8, "x", 8.0), (9, "x", 9.0)]
    # 1 is inserted again as another row, 2 as it was, 3 is changed again, 4 deleted, 5 set back by hand, 8 changed.
    now = [(1, "again", 1.0), (2, "a", 2.0), (3, "again", 0.0), (5, "a", 5.0), (6, "x", 0.0), (7, "late", 7.0)]
    now += [(8, "again", 8.0), (9, "x", 9.0)]
    table = grown(tmp_path, before, bad, now)

    plan = table.repair(undo=2, key="id")

    assert plan.counts == {"inserted": 0, "deleted": 1, "updated": 1}
    assert plan.left_counts == {"inserted again": 1, "changed again": 2, "removed": 1}
    assert sorted(plan.left.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"since": "inserted again", "id": 1},
        {"since": "changed again", "id": 3},
        {"since": "removed", "id": 4},
        {"since": "changed again", "id": 8},
    ]
    assert "`id` IN (9L, 6L)" in plan.statement
    assert "Left as they are, because later commits changed them too: 4 rows (2 changed again" in repr(plan)
    assert "2 rows of those that version 2 changed are as before it already." in repr(plan)
    assert "Rows that version 2 changed, and later commits too" in repr(plan)


def test_rows_that_a_compaction_moved_are_where_they_were(tmp_path):
    table = DeltaTable(None, tmp_path, fields=FIELDS)
    table.commit(table.data("a.parquet", FIRST[:3]), table.data("b.parquet", FIRST[3:]))
    table.commit(remove("a.parquet"), table.data("c.parquet", FIRST[:1]), operation="DELETE")
    table.commit(
        remove("b.parquet", data_change=False),
        remove("c.parquet", data_change=False),
        table.data("d.parquet", [*FIRST[3:], *FIRST[:1]], data_change=False),
        operation="OPTIMIZE",
    )
    opened = open_table(str(tmp_path))

    for key in ("id", []):
        assert opened.repair(undo=2, key=key).counts == {"inserted": 2, "deleted": 0, "updated": 0}
    nothing = opened.repair(undo=3)
    assert nothing.is_empty
    assert "Nothing to do: version 3 changed no such row." in repr(nothing)


ROW, OTHER = (1, "a", 1.0), (2, "b", 2.0)


@pytest.mark.parametrize(
    ("versions", "counts", "left"),
    [
        ([[ROW] * 5, [ROW] * 2, [*[ROW] * 2, OTHER]], (3, 0), {}),  # some of several equal rows were deleted
        ([[ROW] * 5, [], [OTHER]], (5, 0), {}),
        ([[ROW] * 5, [], [ROW]], (0, 0), {"inserted again": 5}),  # one was put back by hand: which, is unknown
        ([[ROW] * 5, [], [ROW] * 5], (0, 0), {}),  # all were put back
        ([[ROW] * 5, [ROW] * 2, [ROW]], (0, 0), {"removed": 3}),
        ([[OTHER], [OTHER, ROW, ROW], [OTHER, ROW, ROW]], (0, 2), {}),  # inserted twice
        ([[ROW], [ROW, ROW], [ROW, ROW]], (0, 0), {"equal to rows from before": 1}),
        ([[ROW, ROW, OTHER], [(1, "x", 1.0)] * 2 + [OTHER], [(1, "x", 1.0)] * 2], (2, 2), {}),  # an update of both
    ],
)
def test_equal_rows_without_a_key_are_counted(tmp_path, versions, counts, left):
    plan = grown(tmp_path, *versions).repair(undo=2)

    assert (plan.counts["inserted"], plan.counts["deleted"]) == counts
    assert plan.left_counts == left
    assert "There is no key" in repr(plan) or plan.is_empty


def test_without_a_key_rows_are_inserted_as_a_difference_or_listed_if_some_are_left(tmp_path):
    table = grown(tmp_path / "a", [ROW, ROW, OTHER], [OTHER], [OTHER])
    some = grown(tmp_path / "b", [ROW, (3, "c'", -0.0)], [], [(9, None, None)])
    left = grown(tmp_path / "c", [ROW, ROW, OTHER], [], [OTHER, OTHER])

    difference = table.repair(undo=2, where="amount > 0.5").statement
    assert "WHERE `amount` > CAST('0.5' AS DOUBLE)\nEXCEPT ALL\nSELECT `id`, `name`, `amount`\n" in difference
    listed = some.repair(undo=2).statement  # Spark has one zero in differences
    assert "(3L, CAST(X'6327' AS STRING), CAST('-0.0' AS DOUBLE))" in listed
    assert left.repair(undo=2).statement.count("(1L, 'a', CAST('1.0' AS DOUBLE))") == 2
    assert "(2L" not in left.repair(undo=2).statement


def test_inserted_rows_without_a_key_are_deleted_by_all_their_values(tmp_path):
    rows = [(1, None, 0.0), (2, "x", float("nan")), (3, "y", -0.0)]
    plan = grown(tmp_path, [OTHER], [OTHER, *rows], [OTHER, *rows]).repair(undo=2)

    (statement,) = plan.statements
    assert statement.startswith("DELETE FROM ")
    assert (
        "(`id` <=> 1L AND `name` IS NULL AND `amount` <=> CAST('0.0' AS DOUBLE) AND CAST(`amount` AS STRING) = '0.0')"
        in statement
    )
    assert "AND CAST(`amount` AS STRING) = '-0.0')" in statement
    assert "`amount` <=> CAST('nan' AS DOUBLE)" in statement


def test_an_update_without_a_key_is_a_delete_and_an_insert(tmp_path):
    plan = grown(tmp_path, [ROW, OTHER], [(1, "x", 1.0), OTHER], [(1, "x", 1.0), OTHER, (5, "e", 5.0)]).repair(undo=2)

    assert [statement.split()[0] for statement in plan.statements] == ["DELETE", "INSERT"]
    assert "These are two commits: between them the rows are missing." in repr(plan)


@pytest.mark.parametrize(
    ("before", "after", "late"),
    [
        ([ROW, OTHER], [(1, "x", 1.0), OTHER], []),
        ([ROW, OTHER], [(1, "x", 1.0), OTHER], [(5, "e", 5.0)]),
        ([ROW, OTHER], [(1, "x", 1.0), (2, "x", 1.0)], [(5, "e", 5.0)]),
        ([ROW, ROW, OTHER], [(1, "x", 1.0), (1, "x", 1.0), OTHER], []),
        ([ROW, OTHER], [OTHER, (7, "n", float("nan"))], []),
        ([ROW, OTHER], [(1, None, -0.0)], []),
    ],
)
def test_the_check_after_an_update_was_undone_without_a_key_finds_nothing(tmp_path, before, after, late):
    """The statements themselves have changed the inserted rows again: one commit deletes them, one inserts."""
    left = [row for row in after if row in before]
    table = grown(tmp_path, before, after, [*after, *late], [*left, *late], [*before, *late])
    plan = table.repair(undo=2)

    assert plan.is_empty
    assert plan.check == f"open_table({table.path!r}).repair(undo=2).is_empty"
    assert "Nothing to do" in repr(plan)
    with pytest.raises(UnsupportedFeatureError, match="where=... may select one of them"):
        table.repair(undo=2, where="amount > 0.5")


def test_half_an_undone_update_without_a_key_is_refused(tmp_path):
    """Only the DELETE was run: the removed rows are missing."""
    table = grown(tmp_path, [ROW, OTHER], [(1, "x", 1.0), OTHER], [OTHER])

    with pytest.raises(UnsupportedFeatureError, match="later commits changed 1 row of those inserted again"):
        table.repair(undo=2)


MANY = [(number, "a", float(number)) for number in range(1_200)]


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        ([], ["INSERT INTO", "LEFT ANTI JOIN", "AS later ON earlier.`id` = later.`id`", "AS current ON"]),
        ([(number, "x", -amount) for number, _, amount in MANY], ["MERGE INTO", "FULL OUTER JOIN", "UPDATE SET"]),
        ([*MANY, *((number, "y", 0.0) for number in range(2_000, 2_600))], ["MERGE INTO", "THEN DELETE"]),
        ([(number, "x", amount) for number, _, amount in MANY[:600]], ["UPDATE SET", "THEN INSERT"]),
    ],
)
def test_many_keys_are_joined_and_rows_that_changed_since_are_left(tmp_path, bad, parts):
    now = [(number, "late", amount) if number in (7, 2_007) else (number, name, amount) for number, name, amount in bad]
    table = grown(tmp_path, MANY, bad, [*now, (9_999, "new", 1.0)])

    plan = table.repair(undo=2, where="amount > -2000", key="id", name="lake.t")

    assert all(part in plan.statement for part in parts)
    assert "AS later" in plan.statement
    assert "VERSION AS OF 1 AS earlier" in plan.statement
    assert ("THEN DELETE" in plan.statement) == bool(plan.counts["deleted"])
    assert ("THEN UPDATE" in plan.statement) == bool(plan.counts["updated"])
    changed = {*bad} ^ {*MANY}
    assert sum(plan.left_counts.values()) == sum(
        row[1] == "late" and row[0] in {row[0] for row in changed} for row in now
    )
    assert "> -2000" not in plan.statement  # the condition is that of the column's type
    assert "CAST('-2000.0' AS DOUBLE)" in plan.statement
    whole = table.repair(undo=2, key="id", name="lake.t").statement
    assert "-2000" not in whole


def test_floats_are_compared_as_text_too_where_values_decide(tmp_path):
    table = grown(tmp_path, MANY, [(number, "x", amount) for number, _, amount in MANY], [])

    with pytest.raises(UnsupportedFeatureError, match="cannot be written so that Spark"):
        grown(tmp_path / "b", MANY, [(number, "x", -1.0) for number, *_ in MANY]).repair(
            undo=2, where="regexp_matches(name, 'a')", key="id"
        )
    assert table.repair(undo=2, key="id").is_empty  # all rows were removed since


def test_the_newest_commit_is_undone_too_and_any_ref_names_one(tmp_path):
    table = grown(tmp_path, FIRST, FIRST[:1])

    assert table.repair(undo="latest", key="id").counts == table.repair(undo=2, key="id").counts
    assert table.repair(undo="latest", key="id").check.endswith(".repair(undo=2, key=['id']).is_empty")


def test_what_cannot_be_undone_says_why(tmp_path):
    table = grown(tmp_path / "a", FIRST, FIRST[:1])
    columns = DeltaTable(None, tmp_path / "b", fields=FIELDS)
    columns.commit(columns.data("a.parquet", FIRST))
    columns.commit(remove("a.parquet"))
    columns.commit(metadata([*FIELDS, ("late", "string")]))
    tags = [("id", "long"), ("tags", {"type": "array", "elementType": "string", "containsNull": True})]
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    nested = grown(tmp_path / "c", [(1, ["a"])], [(2, ["b"])], fields=tags, schema=schema)
    double = grown(tmp_path / "d", [ROW, ROW], [ROW], fields=FIELDS)

    with pytest.raises(InvalidArgumentError, match="needs either the commit to undo, undo=10, or the version to put"):
        table.repair()
    with pytest.raises(InvalidArgumentError, match="needs either"):
        table.repair(1, undo=2)
    with pytest.raises(SnapshotNotFoundError, match="Version 0 cannot be undone: what it changed is unknown, because"):
        table.repair(undo=0)
    with pytest.raises(SnapshotNotFoundError, match="Version 99 does not exist"):
        table.repair(undo=99)
    with pytest.raises(
        UnsupportedFeatureError, match=r"do not fit: late\. table\.repair\(1\) restores the schema too. It also"
    ):
        open_table(str(tmp_path / "b")).repair(undo=2)
    with pytest.raises(
        UnsupportedFeatureError, match=r"those of tags \(.*\) are not written in statements. Name a key"
    ):
        nested.repair(undo=2)
    assert nested.repair(undo=2, key="id").counts == {"inserted": 1, "deleted": 1, "updated": 0}
    with pytest.raises(InvalidArgumentError, match="The key id is not unique"):
        double.repair(undo=2, key="id")
    moved = grown(tmp_path / "e", [ROW], [(1, "a", -1.0)])
    with pytest.raises(UnsupportedFeatureError, match="which belong together is unknown, and where=... may select one"):
        moved.repair(undo=2, where="amount > 0")
    again = grown(tmp_path / "f", [ROW, OTHER], [(1, "x", 1.0), (2, "x", 1.0)], [(1, "x", 1.0), (2, "y", 1.0)])
    with pytest.raises(UnsupportedFeatureError, match="and later commits changed 1 row of those inserted again"):
        again.repair(undo=2)
    assert again.repair(undo=2, key="id").counts == {"inserted": 0, "deleted": 0, "updated": 1}
    with pytest.raises(UnsupportedFeatureError, match="No statements on rows are written for Hudi"):
        open_table(samples.path("rides")).repair(undo="latest")


def test_a_commit_beside_a_missing_one_is_not_undone(tmp_path):
    table = DeltaTable(None, tmp_path, fields=FIELDS)
    for number in range(5):
        table.append([(number, "a", 1.0)])
    table.checkpoint()
    table.append([(9, "a", 1.0)])
    (tmp_path / "_delta_log" / f"{3:020}.json").unlink()
    opened = open_table(str(tmp_path))

    with pytest.raises(SnapshotExplorerError, match="00000000000000000003.json"):
        opened.repair(undo=4)
    with pytest.raises(SnapshotNotFoundError, match="Version 3 is missing"):
        opened.repair(undo=3)
    assert opened.repair(undo=6).counts["deleted"] == 1


@pytest.mark.parametrize("name", ["orders", "shipments", "payments"])
def test_every_commit_of_the_samples_is_undone_or_refused(name):
    table = open_table(samples.path(name))
    planned = 0

    for version in table.versions()[1:]:
        try:
            plan = table.repair(undo=version, name="lake.shop.t")
        except (UnsupportedFeatureError, SnapshotNotFoundError):
            continue
        planned += 1
        assert plan.is_empty == (not plan.rows.total)
        plan._repr_mimebundle_()

    assert planned > 3


def test_a_table_with_a_primary_key_is_undone_by_it():
    orders = open_table(samples.path("orders"))
    (key,) = orders.at("latest").schema.primary_keys

    plan = orders.repair(undo=17, name="db.t")

    assert plan.key == (key,)
    assert plan.rows.total > 0
    assert "VERSION AS OF 16" in plan.statement or plan.statement.startswith("DELETE")


@pytest.mark.parametrize("key", ["id", []])
def test_char_columns_of_delta_have_statements_that_run(tmp_path, key):
    fields = [("id", "long"), ("code", "string", {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"})]
    table = grown(tmp_path, [(1, "a"), (2, "b")], [(1, "x")], [(1, "x"), (3, "c")], fields=fields)

    plan = table.repair(undo=2, key=key)

    setting = "SET spark.sql.readSideCharPadding = false"
    assert plan.statements[0] == table.repair(1, "id = 1", key=key).statements[0] == setting
    assert len(plan.statements) == (2 if key else 3)
    if not key:
        assert "EXCEPT ALL" not in plan.statement  # whose rows are as they are stored
        assert "`code` <=> 'x   '" in plan.statements[1]


@pytest.mark.parametrize(
    ("dtype", "is_padded"),
    [
        ("CHAR(4)", True),
        ("char(4) NOT NULL", True),
        ("CHAR(1)", True),
        ("VARCHAR(4)", False),
        ("VARCHAR(4) NOT NULL", False),
        ("STRING", False),
    ],
)
def test_char_columns_of_paimon_have_statements_that_run_or_none(memory_root, dtype, is_padded):
    table = PaimonTable(*memory_root)
    schema = json.loads(table.filesystem.cat_file(f"{table.root}/schema/schema-0"))
    schema["fields"][1]["type"] = dtype
    table.write("schema/schema-0", json.dumps(schema).encode())
    table.commit([(1, "a"), (2, "b")])
    table.commit([(3, "c")])
    opened = open_table(f"memory://{table.root}")
    setting = ("SET spark.sql.readSideCharPadding = false",) if is_padded else ()

    for asked in ({"undo": 2, "key": []}, {"undo": 2, "key": "id"}, {"to": 1, "where": "id > 2", "key": []}):
        statements = opened.repair(**asked, name="db.t").statements
        assert statements[:-1][:1] == setting or (not setting and statements[0].startswith("DELETE"))
    table.commit([(1, "x"), (2, "b")], removed=[next(iter(table.live))])
    opened.update()
    assert opened.repair(undo=3, key=[], name="db.t").statements[:1] != ()
    if is_padded:
        with pytest.raises(UnsupportedFeatureError, match="MERGE, which Paimon's connector does not run .* CHAR: name"):
            opened.repair(undo=3, key="id", name="db.t")
    else:
        (statement,) = opened.repair(undo=3, key="id", name="db.t").statements
        assert statement.startswith("MERGE")


def test_commands_undo_a_commit(tmp_path, capsys):
    grown(tmp_path / "t", FIRST, FIRST[:1], [*FIRST[:1], (9, "b", 1.0)])

    assert main(["repair", str(tmp_path / "t"), "--undo", "2", "--key", "id"]) == 0
    assert "undo version 2 alone" in capsys.readouterr().out
    assert main(["repair", str(tmp_path / "t"), "1", "--where", "amount > 0", "--json"]) == 0
    assert '"warnings"' in capsys.readouterr().out
    assert main(["repair", str(tmp_path / "t")]) == 2
    assert "repair needs either the commit to undo" in capsys.readouterr().err
    assert main(["repair", str(tmp_path / "t"), "1", "--undo", "2"]) == 2


@pytest.mark.parametrize(
    ("where", "written"),
    [
        ("amount > 0", '--where "amount > 0"'),
        ('"amount" > 0', """--where '"amount" > 0'"""),
        ("name = 'a' and amount > 0", """--where "name = 'a' and amount > 0\""""),
        ("""name = 'a' and "amount" > 0""", None),
        ("name <> '{x}'", "--where \"name <> '{{x}}'\""),
    ],
)
def test_the_command_that_undoes_one_commit_can_be_typed(tmp_path, where, written):
    table = grown(tmp_path, FIRST, FIRST[:1], [*FIRST[:1], (9, "b", 1.0)])

    hint = table.repair(1, where).later_rows.alone

    command = None if written is None else f"%snapshot repair --undo 2 {written}"
    assert magic_line(hint, COMMANDS) == (command or python_call(hint))


def test_planning_to_undo_changes_nothing(tmp_path):
    table = grown(tmp_path / "t", FIRST, FIRST[:1])
    shutil.copytree(tmp_path / "t", tmp_path / "copy")

    table.repair(undo=2, key="id")

    assert {path.name for path in (tmp_path / "t").rglob("*")} == {path.name for path in (tmp_path / "copy").rglob("*")}


def test_values_of_all_types_that_are_listed_are_told_apart(tmp_path):
    """A row is undone by its values, so values that are equal in Python and differ in Arrow must not be one."""
    fields = [("id", "long"), ("f", "float"), ("b", "boolean"), ("n", "date")]
    plan = grown(
        tmp_path,
        [(1, 0.1, True, None)],
        [(1, 0.1, False, None)],
        [(1, 0.1, False, None), (1, 0.2, False, None)],
        fields=fields,
    ).repair(undo=2)

    assert plan.counts == {"inserted": 1, "deleted": 1, "updated": 0}
    value = pa.scalar(0.1, pa.float32()).as_py()
    assert f"`f` <=> CAST('{value!r}' AS FLOAT) AND `b` <=> false AND `n` IS NULL" in plan.statements[0]
