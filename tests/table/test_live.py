"""A writer commits, compacts, expires and vacuums while readers open, update, compare and load.

The long form: `python tests/benchmarks/live.py --minutes 5`.
"""

import logging

import pytest

from tests.support.live_readers import read_live

pytestmark = pytest.mark.usefixtures("real_pauses")


@pytest.mark.parametrize("kind", ["delta", "iceberg", "paimon"])
def test_under_a_live_writer_every_answer_is_a_version_that_existed_or_says_what_vanished(kind, caplog):
    with caplog.at_level(logging.CRITICAL):
        found = read_live(kind, seconds=1.5, readers=3, pause=0.02)

    assert found["wrong"] == []
    assert found["commits"] > 5
    assert sum(found["right"].values()) > 0
    assert not {kind for kind in found["errors"] if kind.startswith("update")}
    assert found["after"] <= found["before"]
