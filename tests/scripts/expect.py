"""Have Apache Paimon read tables at every version, and write down the rows: what our own reader must answer.

    python -m tests.scripts.expect OUT TABLE... [--jars FILE] [--source TEXT]

For each TABLE folder it writes OUT/<table>/<version>.json for every snapshot that exists, tag-<name>.json for every
tag and branch-<name>-<version>.json for every snapshot of a branch. The reader is Paimon's Spark connector at
`VERSION AS OF`; nothing of `snapshot_explorer` takes part but the start of the Spark session.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.scripts import make_samples
from tests.support.canonical import canonical_rows

if TYPE_CHECKING:
    from collections.abc import Iterator


def versions(table: Path) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield file name, suffix of the table's name, VERSION AS OF and the extra fields of every version of a table."""
    for snapshot in _snapshots(table):
        yield f"{snapshot}.json", "", str(snapshot), {"version": snapshot}
    for tag in sorted((table / "tag").glob("tag-*")):
        name = tag.name.removeprefix("tag-")
        yield f"tag-{name}.json", "", f"'{name}'", {"version": json.loads(tag.read_text())["id"], "tag": name}
    for branch in sorted((table / "branch").glob("branch-*")):
        name = branch.name.removeprefix("branch-")
        for snapshot in _snapshots(branch):
            extra = {"version": snapshot, "branch": name}
            yield f"branch-{name}-{snapshot}.json", f"$branch_{name}", str(snapshot), extra


def _snapshots(folder: Path) -> list[int]:
    return sorted(int(file.name.removeprefix("snapshot-")) for file in (folder / "snapshot").glob("snapshot-*"))


def read(spark: Any, name: str, version: str) -> pa.Table:
    """Return the rows that Paimon reads, as Arrow with zone-less and UTC timestamps distinguished."""
    frame = spark.sql(f"SELECT * FROM p.d.`{name}` VERSION AS OF {version}")
    batches = frame._collect_as_arrow()
    if not batches:
        return pa.table({column: pa.nulls(0) for column in frame.columns})
    return pa.Table.from_batches(batches)


def expect(spark: Any, warehouse: Path, tables: list[Path], out: Path, source: str) -> None:
    """Write the expectations of each table; a table is copied into the warehouse, so that it is only read."""
    for table in tables:
        make_samples.clean_copy(table, warehouse / "d.db" / table.name)
        folder = out / table.name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for file, suffix, version, extra in versions(table):
            rows = read(spark, table.name + suffix, version)
            expectation = {
                **extra,
                "outcome": "rows",
                "columns": rows.column_names,
                "rows": canonical_rows(rows),
                "source": source,
            }
            (folder / file).write_text(json.dumps(expectation, ensure_ascii=False) + "\n")


def main() -> None:
    """Read the command line and write the expectations."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--jars")
    parser.add_argument("--package", default=make_samples.PACKAGE)
    parser.add_argument("--source", default=make_samples.WRITER)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = make_samples.session(Path(folder), jars=arguments.jars, package=arguments.package)
        expect(spark, Path(folder), arguments.tables, arguments.out, arguments.source)
        spark.stop()


if __name__ == "__main__":
    main()
