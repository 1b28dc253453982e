"""Have the connector of a format write all that tests compare with, in one session of Spark.

    python -m tests.oracles.connector_tables OUT FORMAT SEED [NAME...]

Runs in the environment of .ci/oracles, for Hudi and Paimon in that for Spark 3.5. Writes what `repair_tables.py`,
`pair_tables.py` and `erasure_tables.py` describe. Delta adds `delta_tables.py` with the scenarios of these names, or
all; Hudi adds `hudi_tables.py`. Iceberg adds `twin_tables.py`, `orphan_tables.py` and random histories: `tables/NAME/`
and `expected/NAME/SNAPSHOT-ID.json` as `support.iceberg.histories` describes them, and `pyiceberg/NAME.json` as
`support.iceberg.pyiceberg_rows` does.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from tests.oracles import (
    delta_tables,
    erasure_tables,
    hudi_tables,
    orphan_tables,
    pair_tables,
    repair_tables,
    twin_tables,
)
from tests.support.iceberg import histories, pyiceberg_rows
from tests.support.oracles import lakes

FAMILIES = int(os.environ.get("SNAPSHOT_EXPLORER_PAIR_FAMILIES", "2"))
"""How many tables `pair_tables.py` writes."""


def main() -> None:
    """Write everything below the folder that the command line names."""
    out, kind, seed, names = Path(sys.argv[1]).absolute(), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    spark = lakes.session(kind, out)
    match kind:
        case "delta":
            delta_tables.write_all(spark, out, seed, names)
        case "hudi":
            hudi_tables.write_all(spark, out, lakes.JARS["hudi"], seed)
        case "iceberg":
            histories.write_all(spark, out, seed)
            pyiceberg_rows.read_all(out / "tables", out / "pyiceberg")
            twin_tables.write_all(spark, out)
            orphan_tables.write_all(spark, out)
    pair_tables.write_all(spark, kind, out, str(seed), FAMILIES)
    repair_tables.write_all(spark, kind, out, seed)
    erasure_tables.write_all(spark, kind, out)
    spark.stop()


if __name__ == "__main__":
    main()
