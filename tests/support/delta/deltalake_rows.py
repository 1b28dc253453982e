"""Write down what the library deltalake reads of tables: a second opinion beside Delta's own.

`NAME/VERSION.json` is `{"version", "outcome": "rows", "columns", "rows", "source"}` or `"outcome": "error"` with its
`"message"`. Its SQL reads more features than its way through pyarrow, which gives nulls for mapped columns.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.support.canonical import canonical_rows

if TYPE_CHECKING:
    from pathlib import Path


def read_all(tables: Path, out: Path) -> None:
    """Read every table below a folder at every version whose commit is there."""
    for table in sorted(tables.iterdir()):
        (out / table.name).mkdir(parents=True, exist_ok=True)
        for commit in table.glob("_delta_log/*.json"):
            if commit.stem.isdigit():
                answer = read(table, int(commit.stem))
                (out / table.name / f"{int(commit.stem)}.json").write_text(
                    json.dumps(answer, ensure_ascii=False) + "\n"
                )


def read(table: Path, version: int) -> dict[str, Any]:
    """Return what deltalake reads of a table at a version."""
    try:
        rows = rows_at(table, version)
    except (Exception, BaseException) as error:  # noqa: BLE001 - it also panics, which is no Exception
        return {"version": version, "outcome": "error", "message": str(error)[:300], "source": "deltalake"}
    return {
        "version": version,
        "outcome": "rows",
        "columns": rows.column_names,
        "rows": canonical_rows(rows),
        "source": "deltalake",
    }


def rows_at(table: Path, version: int | None = None) -> pa.Table:
    """Return the rows of a table, of the newest version or of one."""
    from deltalake import DeltaTable, QueryBuilder

    found = QueryBuilder().register("t", DeltaTable(str(table), version=version)).execute("SELECT * FROM t")
    return pa.table(found.read_all() if hasattr(found, "read_all") else found)
