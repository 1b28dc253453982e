"""Have Paimon's Java core erase a row as the statements of the planner do, with and without compacted manifests.

    python -m tests.oracles.paimon_erase OUT

The tested connector for Spark has no `compact_manifest`, which since Paimon 1.0 calls `compactManifests` of the core.
Writes `OUT/warehouse/d.db/kept` and `compacted`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.oracles.erasure_tables import MARK
from tests.support.oracles import paimon_core


def main() -> None:
    """Write the tables."""
    core = paimon_core.Core(Path(sys.prefix) / "jars" / "paimon-1.4", Path(sys.argv[1]))
    paimon = core.paimon
    for name in ("kept", "compacted"):
        core.create(name, {"id": "INT NOT NULL", "part": "INT", "name": "STRING"}, "id", {"bucket": "1"})
        core.write(name, [(number, number % 3, f"row {number}") for number in range(40)])
        core.write(name, [(42, 1, MARK)])
        core.write(name, [(number + 100, number % 3, f"row {number}") for number in range(40)])
        core.write(name, [(42, 1, MARK)], delete=True)
        core.compact_all(name, full=True)
        if name == "compacted":
            commit = paimon.table.sink.BatchWriteBuilderImpl(core.table(name)).newCommit()
            commit.compactManifests()
            commit.close()
        config = paimon.options.ExpireConfig.builder().snapshotRetainMax(1).snapshotRetainMin(1).build()
        core.table(name).newExpireSnapshots().config(config).expire()


if __name__ == "__main__":
    main()
