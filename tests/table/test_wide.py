"""Tables of very many columns: what is drawn of them is bounded, and says what is cut."""

import json

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.formats import bind
from snapshot_explorer.results import Frame
from snapshot_explorer.storage import Storage
from snapshot_explorer.view import drawing_of, render_html, render_text
from tests.support.delta.table_builder import DeltaTable, add, metadata
from tests.support.effort import at_most_steps

COLUMNS = 5_000
LONGEST_TEXT, LONGEST_PAGE = 20_000, 80_000


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A table of very many columns, half of which a second version renames."""
    root = tmp_path_factory.mktemp("wide")
    names = [f"column_{number}" for number in range(COLUMNS)]
    table = DeltaTable(None, root, fields=[(name, "long") for name in names])
    renamed = [f"{name}_b" if place % 2 else name for place, name in enumerate(names)]
    table.commit(metadata([(name, "long") for name in renamed]))
    return open_table(str(root))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda table: table.current.schema, "200 of 5,000 columns"),
        (lambda table: table.current, "200 of 5,000 columns"),
        (lambda table: table, "columns"),
        (lambda table: table.compare(0, 1).schema, "20 of 5,000 changes of the schema"),
        (lambda table: table.compare(0, 1), "20 of 5,000 changes of the schema"),
        (lambda table: table.health(), "ok"),
        (lambda table: table.inspect("detail"), "delta"),
    ],
    ids=["schema", "snapshot", "table", "compared schemas", "comparison", "health", "detail"],
)
def test_what_is_drawn_of_a_wide_table_is_bounded_and_says_so(wide, made, said):
    page = made(wide)._repr_mimebundle_()

    assert len(page["text/plain"]) < LONGEST_TEXT
    assert len(page["text/html"]) < LONGEST_PAGE
    assert said in page["text/plain"]
    assert said in page["text/html"]
    assert len(repr(made(wide))) < LONGEST_TEXT


def test_a_frame_of_very_many_columns_is_drawn_in_part():
    rows = pa.table({f"column_{number}": [number] for number in range(COLUMNS)})
    deep = pa.table({"statistics": pa.StructArray.from_arrays([pa.array([1])] * COLUMNS, names=rows.column_names)})

    shown, page = render_text(drawing_of(Frame(rows, title="Rows"))), render_html(drawing_of(Frame(rows, title="Rows")))

    assert "of 5,000 columns; not shown: column_" in shown.replace("\n", " ")
    assert "100 of 5,000 columns" in page
    assert (len(shown), len(page)) < (LONGEST_TEXT, LONGEST_PAGE)
    assert len(render_html(drawing_of(Frame(deep, title="Rows")))) < LONGEST_PAGE


class CountedName(str):
    """A name that counts how often names of its kind are compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other):
        CountedName.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_chosen_column_of_a_wide_table_is_not_compared_with_all_the_others(wide):
    names = [CountedName(name) for name in wide.at(0).to_arrow(limit=0).column_names[::-1]]
    CountedName.comparisons = 0

    rows = wide.at(0).to_arrow(columns=names, limit=5)

    assert rows.column_names == [str(name) for name in names]
    assert 0 < CountedName.comparisons < 20 * COLUMNS


@pytest.mark.parametrize("answer", [lambda table: table.profile_over(), lambda table: table.anomalies()])
def test_the_numbers_of_columns_cost_in_proportion_to_the_columns(memory_root, answer):
    names = [f"column_{number}" for number in range(1_000)]
    table = DeltaTable(*memory_root, fields=[(name, "long") for name in names])
    for number in range(3):
        of_columns = {name: dict.fromkeys(names, number) for name in ("minValues", "maxValues", "nullCount")}
        table.commit(add(f"{number}.parquet", stats=json.dumps({"numRecords": 9, **of_columns})))
    opened = open_table(table.url)

    with at_most_steps(len(names) * 1_000):
        answer(opened)


def test_the_statistics_of_chosen_columns_are_not_searched_for_among_all_the_others(memory_root):
    names = [CountedName(f"column_{number}") for number in range(1_000)]
    table = DeltaTable(*memory_root, fields=[(str(name), "long") for name in names])
    for number in range(2):
        of_columns = {name: dict.fromkeys(map(str, names), number) for name in ("minValues", "maxValues", "nullCount")}
        table.commit(add(f"{number}.parquet", stats=json.dumps({"numRecords": 9, **of_columns})))
    table_format = bind(Storage(table.url))
    CountedName.comparisons = 0

    read = table_format.changes_with_statistics([1, 2], names, 2)

    assert len(read.added) == 2
    assert CountedName.comparisons < 20 * len(names)
