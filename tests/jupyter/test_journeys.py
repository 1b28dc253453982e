"""Three journeys of someone who reads only what the screen says: each command is one that the output before suggests.

The numbers of commands are in the guide, `notebooks/guide/rows.md`.
"""

import re

import numpy as np
import pytest

from snapshot_explorer import samples


class Journey:
    """Counts the commands of a user, who copies what outputs suggest."""

    def __init__(self, shell):
        self.shell, self.commands, self.page = shell, 0, ""

    def types(self, line):
        cell = self.shell.ok(line)
        self.commands += 1
        self.page = cell.shown.get("text/plain", "")
        return cell

    def copies(self, beginning):
        """Run the suggested command that begins so."""
        found = re.search(rf"{re.escape(beginning)}[^,\n]*", self.page)
        assert found, self.page
        return self.types(found.group())


@pytest.fixture
def journey(shell):
    shell.ok(f"%snapshot open {samples.path('orders')}")
    return Journey(shell)


def test_the_commit_that_broke_the_amounts_is_found_in_one_command_though_it_was_mended_since(journey):
    found = journey.types("%snapshot bisect amount < 0").result

    assert journey.commands == 1
    assert found.version == 8
    assert "2026-11-06 03:00:00" in journey.page
    assert "The condition changes 2 times: it holds at versions 8 to 10." in journey.page


def test_the_rows_before_it_are_floats_of_pandas_in_two_commands(journey):
    found = journey.types("%snapshot bisect amount < 0 --bad 8").result
    assert (found.version, found.last_good) == (8, 7)
    journey.copies("%snapshot load 7")

    before = journey.shell["before"]
    assert journey.commands == 2
    assert before["amount"].dtype == np.float64
    assert before["amount"].min() > 0
    assert np.sqrt(before["amount"]).sum() > 0  # what a plot needs, with no further step


def test_what_expiring_would_free_takes_a_command_and_the_strictest_rule_another(journey):
    first = journey.types("%snapshot expire").result
    strictest = journey.copies("%snapshot retention --keep").result

    assert journey.commands == 2
    assert (first.freed_files, strictest.freed_files) == (0, 28)
    assert "59.5 kB" in journey.page
    assert "What the strictest rule" not in journey.page


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("bisect amount < 0 --bad 8", "amount < 0"),
        ("bisect --bad 8 amount < 0", "amount < 0"),
        ("bisect amount > -1 --bad=8", "amount > -1"),
        ("bisect orders amount < {limit} --bad 8", "amount < 0"),
        ("bisect wrong --bad 8", "amount < 0"),
        ('blame "order_id" = 42', '"order_id" = 42'),
        ("blame buyer = 'Ada' as found", "buyer = 'Ada'"),
        ("blame 'order_id = 42' --between 1..8", "order_id = 42"),
    ],
)
def test_conditions_need_no_quotes(journey, line, where):
    journey.shell["limit"], journey.shell["wrong"] = 0, "amount < 0"

    found = journey.types(f"%snapshot {line}").result or journey.shell["found"]

    assert where in repr(found).split("\n", maxsplit=1)[0]


def test_two_versions_are_compared_and_a_column_is_profiled_without_flags(journey):
    assert (journey.types("%snapshot 7 8").result.a, journey.types("%snapshot 3 HEAD").result.b) == (7, 18)
    assert list(journey.types("%snapshot profile amount").result.columns) == ["amount"]
    assert set(journey.types("%snapshot profile amount --anomalies").result["column"].to_pylist()) <= {"amount", None}
