"""Have Iceberg's connector for Spark write tables with random histories; and say what it, and pyiceberg, read of them.

    python -m tests.oracles.iceberg_tables OUT [SEED]

Runs in the environment of .ci/oracles. Leaves `tables/NAME/` and `expected/NAME/SNAPSHOT-ID.json` as
`support.iceberg.histories` describes them, and `pyiceberg/NAME.json` as `support.iceberg.pyiceberg_rows` does.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tests.support.iceberg import histories, pyiceberg_rows


def main() -> None:
    """Write everything below the folder that the command line names."""
    out, seed = Path(sys.argv[1]), int((sys.argv[2:] or ["1"])[0])
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    jars = sorted(Path(sys.executable).parent.parent.joinpath("jars", "iceberg").glob("*.jar"))
    spark = histories.session(jars, out.absolute())
    histories.write_all(spark, out, seed)
    spark.stop()
    pyiceberg_rows.read_all(out / "tables", out / "pyiceberg")


if __name__ == "__main__":
    main()
