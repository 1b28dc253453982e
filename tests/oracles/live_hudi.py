"""Have Hudi's connector for Spark write, compact, clean and archive a merge-on-read table while others read it.

    python -m tests.oracles.live_hudi OUT

Runs in the environment of .ci/oracles for Spark 3.5. Writes OUT/table, and after each statement a line to OUT/model:
a version and the ids of its rows, as JSON. Compactions do not change rows. It ends once OUT/enough exists, and the
table has a history; then OUT/ended exists.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path

from tests.support.hudi import histories

_WRITE = re.compile(r"(\d+)_\d+\.(?:commit|deltacommit|replacecommit)")
_SERVICES = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "3",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "6",
}


def main() -> None:
    """Write the table until the time is over."""
    out = Path(sys.argv[1]).absolute()
    jars = sorted(Path(sys.executable).parents[2].joinpath("jars", "hudi-1.2").glob("*.jar"))
    spark = histories.session(jars, out / "warehouse")
    for key, value in {**histories.OPTIONS, **_SERVICES, "hoodie.spark.sql.insert.into.operation": "upsert"}.items():
        spark.sql(f"SET {key}={value}")
    spark.sql(
        f"CREATE TABLE t (id BIGINT, name STRING, ordering BIGINT) USING hudi LOCATION '{(out / 'table').as_uri()}' "
        "TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ordering')"
    )
    ids: set[int] = set()
    noted: set[int] = set()
    for step in itertools.count(1):
        if step > 12 and (out / "enough").exists():
            break
        if step % 4:
            spark.sql(f"INSERT INTO t SELECT id, 'n', {step}L FROM range({step * 2}, {step * 2 + 5})").collect()
            ids |= set(range(step * 2, step * 2 + 5))
        else:
            spark.sql(f"DELETE FROM t WHERE id < {step * 2 - 6}").collect()
            ids = {number for number in ids if number >= step * 2 - 6}
        with (out / "model").open("a") as model:
            for version in sorted(_versions(out / "table") - noted):
                noted.add(version)
                model.write(json.dumps([version, sorted(ids)]) + "\n")
    spark.stop()
    (out / "ended").touch()


def _versions(path: Path) -> set[int]:
    names = (file.name for file in (path / ".hoodie" / "timeline").iterdir())
    return {int(matched[1]) for name in names if (matched := _WRITE.fullmatch(name))}


if __name__ == "__main__":
    main()
