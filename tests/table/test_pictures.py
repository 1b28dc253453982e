"""Figures, as users get them from a table, and progress of what takes long."""

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.core import progress
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from tests.inner.core import listen
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def orders(memory_root):
    written = PaimonTable(*memory_root)
    for _ in range(4):
        written.commit()
    written.tag("v1", 2)
    return open_table(f"memory:/{written.root}")


def test_a_history_has_a_figure(orders):
    made = orders.history().picture(y="files")

    assert list(made.data[0].x) == [1, 2, 3, 4]
    assert made.layout.title.text == f"History of {orders.name}"
    assert "3 of 4 versions" in orders.history(limit=3).picture().layout.title.text
    with pytest.raises(InvalidArgumentError, match="counts rows, files, bytes"):
        orders.history().picture(y="cows")


def test_a_frame_without_a_figure_says_which_have_one(orders):
    with pytest.raises(
        UnsupportedFeatureError, match=r"There is no figure of 'Tags of .*'\. There is one of table.hist"
    ):
        orders.tags().picture()


def test_a_comparison_has_a_figure_and_is_the_table_beside_it(orders):
    comparison = orders.compare(1, 3)

    picture = comparison.picture()

    assert repr(picture) == repr(comparison)
    assert comparison.picture().svg == picture.svg
    assert f">{orders.name}: version 1 to 3<" in picture.svg


def test_lifetimes_have_a_figure(orders):
    picture = orders.lifetimes().picture()

    assert list(picture.data[0].y) == [1, 2, 3, 4]
    assert repr(picture).splitlines()[3].split()[0] == "4"
    assert orders.lifetimes().picture().to_json() == picture.to_json()


@pytest.mark.parametrize("name", samples.names())
def test_samples_have_every_figure(name):
    table = open_table(samples.path(name))
    first, last = table.versions()[0], table.versions()[-1]

    for y in ("rows", "files", "bytes"):
        assert table.history().picture(y=y).data
    assert table.compare(first, last).picture().svg.count("<rect") > 10
    assert ">no partition differs<" in table.compare(last, last).picture().svg
    assert table.lifetimes().picture().data


def test_long_work_tells_how_far_it_has_come(orders, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    said = []

    class Heard:
        def show(self, one):
            said.append((one.title, one.done, one.total))

        def clear(self):
            said.append(None)

    listen(Heard())
    try:
        orders.history(kind="append", limit=3)
        orders.lifetimes()
        _ = orders.compare(1, 4).files
        orders.at(4).to_arrow()
    finally:
        listen(None)

    assert said == [
        ("Reading commits", 4, 4),
        None,
        ("Reading the changes of versions", 1, 4),
        ("Reading the changes of versions", 4, 4),
        None,
        ("Reading the files of two versions", 2, 2),
        None,
        ("Reading the changes between", 3, 3),
        None,
        *(("Reading splits", done, 4) for done in range(1, 5)),
        None,
    ]
