"""Have Delta's connector write tables that use each feature we read, and random ones; and say what it reads of them.

    python -m tests.oracles.delta_tables OUT [SEED] [NAME...]

Runs in the environment of .ci/oracles. Leaves `tables/NAME/`, `expected/NAME/VERSION.json` and `expected/NAME.json` as
`support.delta.connector` describes them, `deltalake/NAME/VERSION.json` with what the library deltalake reads, in
`vacuumed/` what `delta_vacuum.py` writes, in the same session, and `described.json` with how the session's catalog
describes a table.
"""

from __future__ import annotations

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.oracles import delta_vacuum
from tests.support.delta import (
    connector,
    deltalake_rows,
    feature_scenarios,
    random_scenarios,
    type_scenarios,
    write_scenarios,
)


def main() -> None:
    """Write everything below the folder that the command line names."""
    out, seed, names = Path(sys.argv[1]), int((sys.argv[2:] or ["1"])[0]), sys.argv[3:]
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    scenarios = (
        *feature_scenarios.SCENARIOS,
        *write_scenarios.SCENARIOS,
        *type_scenarios.SCENARIOS,
        *random_scenarios.scenarios(seed),
    )
    chosen = [scenario for scenario in scenarios if not names or scenario.name in names]
    jars = sorted(Path(sys.executable).parent.parent.joinpath("jars", "delta").glob("*.jar"))
    spark = connector.session(jars)
    with ThreadPoolExecutor(1) as pool:
        vacuumed = pool.submit(delta_vacuum.write_all, spark, out / "vacuumed")
        connector.write_all(spark, chosen, out / "tables", out / "expected")
        vacuumed.result()
    spark.sql(f"create table orders using delta location '{out / 'named' / 'orders'}' as select 1L as id")
    described = spark.sql("describe table extended default.`orders`").collect()
    (out / "described.json").write_text(json.dumps([row.asDict() for row in described]))
    spark.stop()
    deltalake_rows.read_all(out / "tables", out / "deltalake")


if __name__ == "__main__":
    main()
