"""Have Delta's connector write tables that use each feature we read, and random ones; and say what it reads of them.

A part of `connector_tables.py`. Leaves `tables/NAME/`, `expected/NAME/VERSION.json` and `expected/NAME.json` as
`support.delta.connector` describes them, `deltalake/NAME/VERSION.json` with what the library deltalake reads, in
`vacuumed/` what `delta_vacuum.py` writes, `logs/` what
`delta_log_cleanup.py` writes, and `described.json` with how the session's catalog describes a table.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.oracles import delta_log_cleanup, delta_vacuum
from tests.support.delta import (
    connector,
    deltalake_rows,
    feature_scenarios,
    random_scenarios,
    type_scenarios,
    write_scenarios,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def write_all(spark: Any, out: Path, seed: int, names: Sequence[str]) -> None:
    """Write the scenarios of these names, or all of them."""
    scenarios = (
        *feature_scenarios.SCENARIOS,
        *write_scenarios.SCENARIOS,
        *type_scenarios.SCENARIOS,
        *random_scenarios.scenarios(seed),
    )
    chosen = [scenario for scenario in scenarios if not names or scenario.name in names]
    with ThreadPoolExecutor(1) as pool:
        vacuumed = pool.submit(delta_vacuum.write_all, spark, out / "vacuumed")
        cleaned = pool.submit(delta_log_cleanup.write_all, spark, out / "logs", seed)
        connector.write_all(spark, chosen, out / "tables", out / "expected")
        vacuumed.result()
        cleaned.result()
    spark.sql(f"create table orders using delta location '{out / 'named' / 'orders'}' as select 1L as id")
    described = spark.sql("describe table extended default.`orders`").collect()
    (out / "described.json").write_text(json.dumps([row.asDict() for row in described]))
    deltalake_rows.read_all(out / "tables", out / "deltalake")
