"""The first version where a condition holds, against linear search in a model of the table."""

import uuid
from itertools import pairwise

import fsspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.view import picture_of
from tests.inner.jupyter import magic_line
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable, metadata, protocol, remove
from tests.support.row_histories import KINDS, STEPS, play


def played(kind, steps):
    return play(kind, fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}", steps)


def first_true(model, test):
    return next((version for version, rows in zip(model.versions, model.rows, strict=True) if test(rows)), None)


@pytest.fixture(params=sorted(KINDS))
def table(request):
    """A table of 12 versions; each inserts a row, and version 7 of them the first without a name."""
    names = [["ann"]] * 6 + [[None]] + [["bob"]] * 4
    model = played(request.param, [("insert", some) for some in names])
    found = open_table(model.url)
    found.model = model
    return found


@pytest.mark.parametrize("kind", ["delta", "paimon"])  # delete files of Iceberg leave the rows in the metadata
@settings(max_examples=10)
@given(steps=STEPS, limit=st.integers(0, 6))
def test_a_condition_on_metadata_is_found_as_by_linear_search(kind, steps, limit):
    model = played(kind, steps)
    table = open_table(model.url)

    found = table.bisect("null_count.name > 0")
    schema = table.bisect("len(columns) = 2")

    # A deletion vector leaves it unknown how many of the nulls are left.
    if kind == "paimon":
        assert found.version == first_true(model, lambda rows: any(row[1] is None for row in rows.values()))
    assert table.bisect(f"rows > {limit}").version == first_true(model, lambda rows: len(rows) > limit)
    assert schema.version == model.versions[0]
    assert len(schema.evaluated) == len(model.versions)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=10)
@given(steps=STEPS, number=st.integers(1, 8))
def test_a_condition_on_rows_is_a_change_that_linear_search_finds_too(kind, steps, number):
    model = played(kind, steps)
    table = open_table(model.url)
    holds = dict(zip(model.versions, (number in rows for rows in model.rows), strict=True))

    every = table.bisect(f"id = {number}")
    assert every.version == next((version for version in model.versions if holds[version]), None)
    assert {row["version"]: row["holds"] for row in every.evaluated.to_dict()} == holds

    for condition in (f"id = {number}", f"count(*) filter (where id = {number}) > 0"):
        found = table.bisect(condition, single_pass=False)

        reported = {row["version"]: row["holds"] for row in found.evaluated.to_dict()}
        assert reported == {version: holds[version] for version in reported}
        if not holds[model.versions[-1]]:
            assert found.version is None
            continue
        assert holds[found.version]
        place = model.versions.index(found.version)
        assert place == 0 or not holds[model.versions[place - 1]]
        assert found.last_good == (model.versions[place - 1] if place else None)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=5)
@given(steps=STEPS, number=st.integers(1, 8))
def test_a_single_pass_evaluates_every_version_as_the_model_does(kind, steps, number):
    model = played(kind, steps)
    table = open_table(model.url)
    conditions = {
        f"id = {number} OR name = 'bob'": lambda rows: any(
            key == number or row[1] == "bob" for key, row in rows.items()
        ),
        f"count(*) filter (where id > {number}) > 1": lambda rows: sum(key > number for key in rows) > 1,
        "count(name) < 2 AND coalesce(sum(id), 0) < 9": lambda rows: (
            sum(row[1] is not None for row in rows.values()) < 2 and sum(rows) < 9
        ),
        f"min(id) + {number} > max(id)": lambda rows: bool(rows) and min(rows) + number > max(rows),
    }

    for condition, holds in conditions.items():
        found = table.bisect(condition, single_pass=True)
        assert {row["version"]: row["holds"] for row in found.evaluated.to_dict()} == {
            version: holds(rows) for version, rows in zip(model.versions, model.rows, strict=True)
        }
        assert found.version == first_true(model, holds)


def test_a_single_pass_is_chosen_where_it_reads_less(memory_root):
    table = DeltaTable(*memory_root)
    note = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000))) * 5
    for number in range(8):
        table.append([(number, note + str(number))])
    announced = []

    found = open_table(table.url).bisect("max(id) >= 5", announce=announced.append)
    by_loads = open_table(table.url).bisect("max(id) >= 5", single_pass=False)

    assert found.version == by_loads.version == 6
    assert len(found.evaluated) == len(found.versions) > len(by_loads.evaluated)
    assert (announced[0].single_pass, announced[0].files, announced[0].loads) == (True, 8, 5)
    assert str(announced[0]).startswith("Evaluating 9 versions in a single pass: id of 8 files (")


@pytest.mark.parametrize("condition", ["avg(id) > 1", "count(DISTINCT id) > 1", "string_agg(name, '') = 'a'", max])
def test_a_single_pass_is_refused_for_conditions_that_do_not_add_up(table, condition):
    reason = "a function is called with one version" if callable(condition) else "counts, exact sums"
    with pytest.raises(InvalidArgumentError, match=f"A single pass may not be exact here: {reason}"):
        table.bisect(condition, single_pass=True)


def test_a_condition_on_rows_loads_a_version_for_each_halving(table):
    announced = []

    found = table.bisect("name IS NULL", announce=announced.append, single_pass=False)

    assert found.version == table.model.versions[7]
    assert found.last_good == table.model.versions[6]
    assert found.commit.version == found.version
    assert (announced[0].versions, announced[0].loads, announced[0].columns) == (12, 5, ("name",))
    assert len(found.evaluated) <= 5
    assert "at most 5 loads of name" in str(announced[0])


def test_every_version_is_announced_with_files_that_only_older_ones_have_to_read():
    announced = []

    found = open_table(samples.path("payments")).bisect("amount > 1000", every=True, announce=announced.append)

    assert found.changes["holds"].to_pylist() == [False, True, False]
    assert str(announced[0]).startswith("Evaluating 22 versions")
    assert announced[0].files


def test_a_function_of_a_snapshot_is_a_condition(table):
    found = table.bisect(lambda snapshot: snapshot.count("name IS NULL") > 0)

    assert found.version == table.model.versions[7]
    assert found.call == f"open_table({table.path!r}).bisect(<lambda>)"


def test_a_result_is_exported_to_files_and_json(table, tmp_path):
    found = table.bisect("max(id) > 5")

    found.to_csv(tmp_path / "found.csv")
    found.to_parquet(tmp_path / "found.parquet")

    assert pq.read_table(tmp_path / "found.parquet").equals(found.to_arrow())
    assert (tmp_path / "found.csv").read_text().startswith('"version","committed_at","holds","note"')
    assert '"holds":true' in found.to_json()


def test_the_result_is_drawn_with_its_source_and_its_call(table):
    found = table.bisect("max(id) > 5", good=table.model.versions[1])
    shown = found._repr_mimebundle_()

    assert shown["text/plain"].startswith(f"max(id) > 5 holds first at version {found.version} of {table.name}")
    assert f").bisect('max(id) &gt; 5', good={table.model.versions[1]})" in shown["text/html"].replace("&#x27;", "'")
    assert "changes" not in shown["text/plain"]
    assert found.to_pandas().shape[0] == len(found.evaluated)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_condition_on_metadata_that_comes_and_goes_is_said_to(kind):
    model = played(kind, [("insert", ["a", "b"]), ("delete", 0), ("delete", 0), ("insert", ["c", "d"])])

    found = open_table(model.url).bisect("rows >= 4")

    assert found.version == first_true(model, lambda rows: len(rows) >= 4)
    assert found.answer.endswith(", and changes 3 times")
    runs = f"{model.versions[1]} and {model.versions[4]}"
    assert f"The condition changes 3 times: it holds at versions {runs}.\n" in repr(found)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_versions_that_cannot_be_read_are_skipped_and_named(kind):
    model = played(kind, [("insert", ["x"]) for _ in range(8)])
    filesystem = fsspec.filesystem("memory")
    root = model.url.removeprefix("memory://")
    gone = model.versions[4]
    folder = {"delta": "", "iceberg": "data/", "paimon": "bucket-0/"}[kind]
    filesystem.rm_file(f"{root}/{folder}data-{gone}.parquet")
    # The file is live from version 4 on; it is written anew under another name, which only later versions have.
    table = open_table(model.url)

    with pytest.raises(InvalidArgumentError, match=f"bad is version {model.versions[-1]}, but cannot be read"):
        table.bisect("count(id) > 3", bad="latest")
    found = table.bisect("count(id) > 3")

    assert found.skipped == tuple(model.versions[4:])
    assert found.version == first_true(model, lambda rows: len(rows) > 3)
    assert "cannot be read" in repr(found)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("nam IS NULL", "Unknown column 'nam' in the condition 'nam IS NULL'. Did you mean name?"),
        ("name IS", "is not SQL"),
        ("", "is empty"),
        ("rows > 3 AND id > 1", "names metadata, rows, and a column, id"),
        ("null_count.nam > 1", "Unknown column 'nam' in the condition"),
        ("max(id) > 'x'", "Could not convert"),
        ("id IN (SELECT 1)", "contains a subquery"),
        (17, "The condition is of type int. Give SQL"),
        (lambda _: None, "returned NoneType"),
        (lambda _: 1 / 0, "raised at version"),
    ],
)
def test_a_condition_that_does_not_fit_is_refused_before_any_row_is_read(table, condition, message):
    with pytest.raises(InvalidArgumentError, match=message):
        table.bisect(condition)


def test_one_version_and_one_file_are_singular(memory_root):
    table = DeltaTable(*memory_root, first=None)
    table.commit(protocol(), metadata(), table.data("a.parquet", [(1, "ann")]))
    announced = []

    opened = open_table(table.url)

    assert "evaluated 1 of 1 version\n" in repr(opened.bisect("id = 1", announce=announced.append))
    assert [str(one).partition(" (")[0] for one in announced] == ["Evaluating 1 version in a single pass: id of 1 file"]
    assert "compared 1 of 1 version: no" in repr(opened.blame("id = 1"))


def test_a_condition_on_numbers_that_the_metadata_lacks_is_unknown_and_not_false(memory_root):
    table = DeltaTable(*memory_root)
    table.append([(1, None), (2, None)], stats='{"numRecords":2}')
    table.append([(3, None)], stats="{}")
    opened = open_table(table.url)

    def answers(condition):
        return [row["holds"] for row in opened.bisect(condition).evaluated.to_dict()]

    assert answers("null_rate.name > 0.1") == answers("null_count.name = 0 and version > 0") == [False, None, None]
    assert answers("null_count.name > 0 or version = 1") == [False, True, None]
    assert answers("rows > 9") == [False, False, None]
    assert answers("files > 1") == [False, False, True]
    shown = repr(opened.bisect("rows > 9"))
    assert "rows > 9 does not hold at version 1" in shown
    assert "its files, or statistics of them, are not known" in shown
    assert opened.anomalies().title == f"Anomalies of {opened.name}; the metadata has no statistics of id, name"


def test_good_must_come_before_bad_and_the_condition_hold_at_bad(table):
    first, second = table.model.versions[:2]

    with pytest.raises(InvalidArgumentError, match="good, where it does not hold, must come before bad"):
        table.bisect("id > 1", good=second, bad=first)
    with pytest.raises(InvalidArgumentError, match=f"bad is version {second}, but the condition does not hold there"):
        table.bisect("name IS NULL", bad=second)


def lines(found):
    """Return the next calls of a bisection as lines of %snapshot."""
    return [magic_line(hint, COMMANDS) for hint in found.next_calls]


def test_a_condition_that_no_longer_holds_is_said_in_one_sentence(table):
    found = table.bisect("max(id) < 3", single_pass=False)

    assert found.version is None
    assert repr(found).startswith(f"max(id) < 3 does not hold at version {table.model.versions[-1]} of {table.name}\n")
    assert found.notes[0].endswith("search up to it: bad=....")
    assert found.notes[1].startswith("Every change is found by every=True: at most 12 loads of id, each of about ")
    assert lines(found)[-1] == '%snapshot bisect "max(id) < 3" --all'
    every = table.bisect("max(id) < 3")
    assert every.answer.startswith(f"max(id) < 3 holds already at version {table.model.versions[0]} of ")
    assert repr(table.bisect("rows > 99")).startswith(f"rows > 99 holds at no version of {table.name}\n")


@pytest.mark.parametrize(
    "condition", ["id >= 1", "rows >= 1", "count(id) >= 1", lambda snapshot: bool(snapshot.version)]
)
def test_a_good_version_where_the_condition_holds_gives_no_answer(table, condition):
    good = table.model.versions[2]

    found = table.bisect(condition, good=good)

    assert (found.version, found.commit, found.last_good) == (None, None, None)
    assert found.answer == f"{found.condition} holds already at {good}, which was given as good: no answer"
    assert repr(found).startswith(found.answer)
    assert f"table.bisect({found.condition!r}, bad={good})" in repr(found)


def test_a_condition_that_holds_at_the_earliest_version_is_not_said_to_hold_first_there(table):
    found = table.bisect("id >= 1")

    earliest = table.model.versions[0]
    assert found.version == earliest
    assert found.answer == f"id >= 1 holds already at version {earliest} of {table.name}, the earliest that can be read"


def vacuumed(memory_root):
    """Return a Delta table of six versions with a row each, compacted into one file; the six files are gone."""
    table = DeltaTable(*memory_root)
    names = [f"{number}.parquet" for number in range(6)]
    for number, name in enumerate(names):
        table.append([(number, "ann")], name=name, stats='{"numRecords":1}')
    rows = [(number, "ann") for number in range(6)]
    compacted = table.data("all.parquet", rows, data_change=False, stats='{"numRecords":6}')
    table.commit(*(remove(name, data_change=False) for name in names), compacted, operation="OPTIMIZE")
    for name in names:
        table.remove_file(name)
    return open_table(table.url)


def test_only_commands_that_can_work_are_suggested_after_a_bisection(memory_root):
    table = vacuumed(memory_root)

    of_gone = lines(table.bisect("rows > 2"))
    of_existing = lines(table.bisect("files = 1 and rows = 6"))

    assert of_gone == ["%snapshot diff 2..3", "%snapshot verify"]
    assert of_existing == ["%snapshot diff 6..7", "%snapshot verify"]


def test_the_headline_says_that_the_version_given_as_good_cannot_be_read(memory_root):
    table = vacuumed(memory_root)

    found = table.bisect("id >= 0", good=6)

    assert (found.version, found.last_good) == (7, None)
    assert found.answer.endswith(", unless at 6, which was given as good and cannot be read")


def test_a_diff_of_rows_is_suggested_where_the_files_that_differ_exist(memory_root):
    table = DeltaTable(*memory_root)
    for number in range(4):
        table.append([(number, "ann")], name=f"{number}.parquet", stats='{"numRecords":1}')
    table.remove_file("0.parquet")

    found = lines(open_table(table.url).bisect("rows > 2"))

    assert found == ["%snapshot diff 2..3 --rows"]


def test_the_preview_of_a_diff_whose_files_are_gone_says_so(memory_root):
    table = vacuumed(memory_root)

    preview = table.diff_rows(2, "latest", preview=True)

    assert preview.announcement.startswith("Version 2 cannot be read: ")
    assert "does not exist" in preview.announcement
    assert "Reads" not in repr(preview)


def test_a_column_of_the_table_is_meant_before_metadata_of_its_name(table):
    assert table.bisect("metadata.rows > 3").version == table.model.versions[2]


def test_every_version_where_a_condition_changes_is_found():
    orders = open_table(samples.path("orders"))
    expected = [(version, orders.at(version).count("amount < 0") > 0) for version in orders.versions()]

    for single_pass in (None, False):
        found = orders.bisect("amount < 0", every=True, single_pass=single_pass)

        changes = [(row["version"], row["holds"]) for row in found.changes.to_dict()]
        differing = [pair for before, pair in pairwise(expected) if before[1] != pair[1]]
        assert changes == [expected[0], *differing]
        assert len(found.evaluated) == len(expected)
        assert found.call.endswith(".bisect('amount < 0', every=True)")
    assert found.changes.title.startswith(f"amount < 0 changes {len(differing)} time")


def test_with_every_version_a_bad_one_must_still_be_bad():
    with pytest.raises(InvalidArgumentError, match="bad is version 6"):
        open_table(samples.path("orders")).bisect("amount < 0", bad=6, every=True)


PATTERNS = [
    "0111111111011111111",
    "1010101010101010101",
    "0110000000000000011",
    "1000000000000000001",
    "0000111100001111011",
    "0111111110000000000",
    "0000000000000000111",
]
"""At which versions a row is called cy: changes of which halving sees one."""


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_condition_that_changes_often_is_said_to_or_the_answer_says_what_it_assumes(kind, pattern):
    model = played(kind, [("update", 0, "cy" if value == "1" else "bob") for value in pattern])
    table, versions = open_table(model.url), model.versions
    holds = [False, *(value == "1" for value in pattern)]
    changes = sum(before != after for before, after in pairwise(holds))

    for condition in ("name = 'cy'", "bool_or(name = 'cy')"):
        found = table.bisect(condition)
        assert found.evaluated["holds"].to_pylist() == holds
        assert found.version == versions[holds.index(True)]
        assert not found.assumes_one_change
        assert found.answer.endswith(f", and changes {changes} times" if changes > 1 else f" of {table.name}")
        assert len(found.changes) == changes + 1

    for condition in ("name = 'cy'", lambda snapshot: snapshot.count("name = 'cy'") > 0):
        found = table.bisect(condition, single_pass=False)
        answers = dict(zip(found.evaluated["version"].to_pylist(), found.evaluated["holds"].to_pylist(), strict=True))
        assert answers == {version: holds[versions.index(version)] for version in answers}
        assert found.next_calls[-1].arguments["every"]
        assert "at most 20 loads" in found.notes[-1]
        if found.version is not None:
            assert found.assumes_one_change
            for shown in (
                found.answer,
                repr(found),
                found._repr_mimebundle_()["text/html"],
                picture_of(found).tracks.title,
            ):
                assert "if it changes only once" in shown
            assert f"Version {found.version} is the first one if the condition changes only once." in repr(found)
        drawn = [span for span in picture_of(found).tracks.tracks[0].spans if span.group == "not evaluated"]
        assert sum(span.last - span.first + 1 for span in drawn) == len(versions) - len(answers)
        assert found.changes.title.startswith(f"{found.condition} changes at least ")


def test_a_large_table_is_halved_and_the_cost_of_the_rest_is_offered(memory_root):
    table = DeltaTable(*memory_root)
    table.append([(0, "ann")])
    for number in range(300):  # whose commits alone are more than is read without being asked for
        table.commit(operation=f"NOTHING {number}")
    table.append([(1, "bob")])
    opened = open_table(table.url)

    found = opened.bisect("name = 'bob'", good=2, bad="latest")

    assert (found.version, found.assumes_one_change) == (302, True)
    assert len(found.evaluated) < 12
    assert found.notes[-1].startswith(
        "Version 302 is the first one if the condition changes only once. Every change is found by every=True: "
        "at most 301 loads of name, each of about 2 files ("
    )
    assert lines(found)[-1] == "%snapshot bisect \"name = 'bob'\" --good 2 --bad 302 --all"


def test_a_terminal_says_what_is_assumed(memory_root, tmp_path, capsys):
    table = DeltaTable(None, tmp_path / "big")
    for number in range(300):
        table.commit(operation=f"NOTHING {number}")
    table.append([(1, "bob")])

    for flags in ([], ["--json"]):
        assert main(["bisect", str(tmp_path / "big"), "name = 'bob'", *flags]) == 0
        assert "holds first at version 301 of big, if it changes only once" in capsys.readouterr().out
    assert main(["bisect", str(tmp_path / "big"), "name = 'bob'", "--all"]) == 0
    assert "changes 1 time from version 0 to 301" in capsys.readouterr().out


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_are_counted_in_a_single_pass_without_reading_a_column(kind):
    model = played(kind, [("insert", ["ann", "bob"]), ("insert", ["cy"]), ("delete", 0)])

    found = open_table(model.url).bisect("count(*) > 2", single_pass=True)

    assert found.version == first_true(model, lambda rows: len(rows) > 2)
    assert len(found.evaluated) == len(model.versions)
