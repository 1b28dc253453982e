"""Have Delta's connector clean logs up, a quarter of all in a run: a part of `delta_tables.py`.

What it deletes of each log is also written down, and compared everywhere: `tests/retention/test_metadata_files.py`.
Writes of each log of the quarter `OUT/NUMBER/before` and `after`, copies of the table, and `asked.json`: its name in
`LOGS`, the noon that its times count from, and the time just before the checkpoint that starts the clean-up.
"""

from __future__ import annotations

import json
import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.support.delta.expired_logs import LOGS, ExpiredLog

if TYPE_CHECKING:
    from pathlib import Path


def chosen(seed: int) -> dict[str, ExpiredLog]:
    """Return the logs of a run by name."""
    return dict(list(LOGS.items())[seed % 4 :: 4])


def write_all(spark: Any, out: Path, seed: int) -> None:
    """Write the tables, and a checkpoint of each."""
    # Without the session of this thread the connector reads no checkpoint. It only logs that it writes none then.
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    for number, (name, log) in enumerate(chosen(seed).items()):
        before, after = (out / str(number) / when for when in ("before", "after"))
        log.write(before, noon)
        shutil.copytree(before, after)
        now = time.time()
        tables = spark._jvm.org.apache.spark.sql.delta.DeltaLog
        tables.forTable(spark._jsparkSession, str(after)).checkpoint()
        newest = max(int(path.name[:20]) for path in (after / "_delta_log").glob("0*.json"))
        if not list((after / "_delta_log").glob(f"{newest:020d}.checkpoint*")):
            raise RuntimeError(f"The connector wrote no checkpoint of version {newest} of the log {name!r}.")
        asked = {"name": name, "noon": noon.timestamp(), "now": now}
        (out / str(number) / "asked.json").write_text(json.dumps(asked))
