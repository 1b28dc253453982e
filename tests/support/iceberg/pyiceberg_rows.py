"""Write down what pyiceberg reads of Iceberg tables: a second opinion beside Iceberg's own.

`NAME.json` is `{"refs", "inspections", "snapshots"}`: branches and tags with their snapshot ids, rows of INSPECTED as
`inspected` gives them, and by snapshot id
`{"outcome": "rows", "columns", "rows", "files", "deletes"}`, with the recorded paths of the data files and how many
delete files apply to each, or `"outcome": "error"` with its `"message"`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.canonical import canonical_rows

if TYPE_CHECKING:
    from pathlib import Path


INSPECTED = ("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files", "all_manifests")
"""Metadata tables that are compared."""


def inspected(rows: list[dict[str, Any]]) -> list[str]:
    """Return of the rows of a metadata table what is compared, as sorted texts: paths, metrics and snapshots."""
    names = ("file_path", "path", "readable_metrics", "reference_snapshot_id")
    return sorted(
        json.dumps({name: row.get(name) for name in names}, default=str, sort_keys=True, ensure_ascii=False)
        for row in rows
    )


def read_all(tables: Path, out: Path) -> None:
    """Read every table below a folder at every snapshot."""
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(tables.iterdir()):
        (out / f"{path.name}.json").write_text(json.dumps(_read(path), ensure_ascii=False) + "\n")


def _read(path: Path) -> dict[str, Any]:
    from pyiceberg.table import StaticTable

    number = (path / "metadata" / "version-hint.text").read_text().strip()
    table = StaticTable.from_metadata(str(path / "metadata" / f"v{number}.metadata.json"))
    return {
        "refs": {name: ref.snapshot_id for name, ref in table.metadata.refs.items()},
        "inspections": {name: _inspected(table, name) for name in INSPECTED},
        "snapshots": {one.snapshot_id: _rows(table, one.snapshot_id) for one in table.metadata.snapshots},
    }


def _inspected(table: Any, name: str) -> list[str] | None:
    try:
        return inspected(getattr(table.inspect, name)().to_pylist())
    except Exception:  # noqa: BLE001 - it refuses a table whose newest snapshot has no files
        return None


def _rows(table: Any, snapshot_id: int) -> dict[str, Any]:
    try:
        scan = table.scan(snapshot_id=snapshot_id)
        rows, tasks = scan.to_arrow(), list(scan.plan_files())
    except Exception as error:  # noqa: BLE001 - whatever it does not read is an answer too
        return {"outcome": "error", "message": f"{type(error).__name__}: {error}"[:300]}
    return {
        "outcome": "rows",
        "columns": rows.column_names,
        "rows": canonical_rows(rows),
        "files": {task.file.file_path: len(task.delete_files) for task in tasks},
    }
