"""Have Hudi's connector for Spark write tables with random histories; and say what it, and hudi-rs, read of them.

    python -m tests.oracles.hudi_tables OUT JAR [SEED]

Runs in the environment of .ci/oracles for Spark 3.5; JAR is a folder of its jars. `connector_tables.py` writes those of
hudi-1.2 too. Leaves `tables/NAME/` and
`expected/NAME/VERSION.json` as `support.hudi.histories` describes them, and `hudi-rs/NAME.json`: `{"outcome": "rows",
"columns", "rows"}` of the newest version, or `"outcome": "error"` with its `"message"`.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.canonical import canonical_rows
from tests.support.hudi import histories


def main() -> None:
    """Write everything below the folder that the command line names."""
    out, jar, seed = Path(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or ["1"])[0])
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    jars = sorted(Path(sys.executable).parents[2].joinpath("jars", jar).glob("*.jar"))
    spark = histories.session(jars, out.absolute() / "warehouse")
    write_all(spark, out, jar, seed)
    spark.stop()


def write_all(spark: Any, out: Path, jar: str, seed: int) -> None:
    """Write the tables, and what Hudi and hudi-rs read of them."""
    histories.write_all(spark, out, jar, seed)
    (out / "hudi-rs").mkdir()
    for path in sorted((out / "tables").iterdir()):
        (out / "hudi-rs" / f"{path.name}.json").write_text(json.dumps(_second(path), ensure_ascii=False) + "\n")


def _second(path: Path) -> dict[str, Any]:
    from hudi import HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(path.as_uri()).build()
    try:
        batches = table.read()
    except Exception as error:  # noqa: BLE001 - it does not read every table
        return {"outcome": "error", "message": str(error)}
    if not batches:
        return {"outcome": "error", "message": "hudi-rs gives no schema of a table without rows"}
    rows = pa.Table.from_batches(batches)
    rows = rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])
    return {"outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows)}


if __name__ == "__main__":
    main()
