"""Have Paimon's Java core write tables with Iceberg metadata beside their own.

    python -m tests.oracles.paimon_twins OUT

Writes `OUT/tables/appended`, whose Iceberg metadata lacks the last two snapshots, and `OUT/tables/keyed`, a table with
a primary key, whose Iceberg metadata has compacted files alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.oracles import paimon_core

_TWIN = {"metadata.iceberg.storage": "table-location"}


def main() -> None:
    """Write the tables."""
    out = Path(sys.argv[1])
    core = paimon_core.Core(Path(sys.prefix) / "jars" / "paimon-1.4", out)
    (out / "tables").symlink_to(core.warehouse / "d.db")
    core.create("appended", {"id": "BIGINT", "name": "STRING"}, "", {**_TWIN, "bucket": "-1", "file.format": "parquet"})
    for number in range(3):
        core.write("appended", [(number, "a"), (number + 10, "b")])
    behind = core.table("appended", metadata__iceberg__storage="disabled")
    for number in range(3, 5):
        core.write("appended", [(number, "c")], table=behind)
    core.create(
        "keyed", {"id": "BIGINT NOT NULL", "name": "STRING"}, "id", {**_TWIN, "bucket": "1", "file.format": "parquet"}
    )
    core.write("keyed", [(1, "a"), (2, "b")])
    core.compact_all("keyed", full=True)
    core.write("keyed", [(2, "c")])


if __name__ == "__main__":
    main()
