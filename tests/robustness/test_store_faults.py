"""An object store that lies, to each client: the right answer or our error, in time, and nothing sent elsewhere.

The long form: python -m tests.support.store_fault_search --cases 3000 --seed 1
"""

import os

import pytest

from tests.support.store_fault_search import KINDS, run

CASES = int(os.environ.get("SNAPSHOT_EXPLORER_STORE_FAULTS", "3"))
SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "1"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_lies_gets_the_right_answer_or_our_error(kind):
    pytest.importorskip("s3fs")

    counts, findings = run(CASES, SEED, client="s3", kind=kind)

    assert findings == []
    assert counts["cases"] == CASES


def test_the_search_notices_a_client_that_follows_a_redirect(monkeypatch):
    pytest.importorskip("aiohttp")

    async def follow(*_):
        pass

    monkeypatch.setattr("snapshot_explorer.storage.web._check_redirect", follow)

    _, findings = run(12, SEED, client="web", kind="redirect")

    assert any("another server was asked" in finding for finding in findings)
