"""Total rows over versions: the explorer's line and the figure of the history have the same answer."""

import numpy as np
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol, remove
from tests.support.explorers import messages_to_the_page, unpacked


@pytest.fixture
def long_table(memory_root):
    """A table whose newest commits do not record how many rows they remove, and with too many commits to look it up."""
    written = DeltaTable(*memory_root, first=None)
    written.commit(protocol(), metadata(), add("0", rows=10))
    for number in range(1, 400):
        removed = [remove(str(number - 1))] if number % 50 == 0 else []
        written.commit(add(str(number), rows=10), *removed)
    return open_table(written.url)


def lines(table):
    """Return the totals that the explorer draws, those of the figure of the history, and the names of both lines."""
    with messages_to_the_page() as sent:
        explorer = Explorer(table, variables={})
        assert explorer.model_id
        explorer.wait()
    assert sum(size for *_, size in sent) < 190_000  # a page that opens receives what it draws once
    drawn, name = unpacked(explorer.facts["total"]), explorer.facts["line"]
    explorer.close()
    (line,) = [trace for trace in table.history().picture().data if trace.yaxis == "y2"]
    return drawn, np.asarray(line.y).tolist(), (name, line.name)


def test_totals_that_commits_do_not_record_come_from_the_files(long_table):
    recorded = long_table.history()["total_rows"].to_pylist()[::-1]
    expected = [10 * (at + 1 - at // 50) for at in range(400)]

    drawn, figure, names = lines(long_table)

    assert None in recorded
    assert figure == expected
    assert drawn == expected[-len(drawn) :]
    assert names == ("total rows", "total rows")


def test_totals_are_unknown_everywhere_where_other_files_delete_rows():
    table = open_table(samples.path("shipments"))

    drawn, figure, _ = lines(table)

    for line in (drawn, figure):
        assert line[0] == 32
        assert np.isnan(line[1:]).all()
