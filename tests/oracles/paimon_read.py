"""Have the newest Paimon's Java core read the tables below a folder, and write down what it reads.

    python -m tests.oracles.paimon_read OUT

Reads `OUT/warehouse/d.db/NAME/`; writes `OUT/expected/NAME/VERSION.json`, the rows of each version, and
`OUT/changes/NAME.json`, a list of `{"between", "mode", "columns", "rows"}`: incremental rows, read through audit_log.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.scripts import expect
from tests.support.canonical import canonical_rows
from tests.support.oracles import paimon_core

NEWEST = "paimon-1.4"
MODES = ("delta", "changelog")


def read(core: paimon_core.Core, name: str, **options: str) -> dict[str, Any]:
    """Return what the core reads, or that it does not."""
    try:
        rows = core.read(name, **options)
    except paimon_core.JException as error:
        return {"outcome": "error", "message": str(error).splitlines()[0], "columns": [], "rows": None}
    return {"outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows)}


def states(core: paimon_core.Core, name: str, out: Path) -> list[int]:
    """Write down the rows of every version; return the versions."""
    out.mkdir(parents=True)
    found = []
    for file, _, version, extra in expect.versions(core.warehouse / "d.db" / name):
        if "branch" not in extra and "tag" not in extra:
            found.append(extra["version"])
            (out / file).write_text(json.dumps(extra | read(core, name, scan__snapshot_id=version)) + "\n")
    return found


def changes(core: paimon_core.Core, name: str, versions: list[int]) -> list[dict[str, Any]]:
    """Return incremental rows: of all versions, of the later half and of the last one."""
    last = versions[-1]
    found = []
    for start in sorted({0, last // 2, last - 1}):
        for mode in MODES:
            options = {"incremental_between": f"{start},{last}", "incremental_between_scan_mode": mode}
            found.append({"between": [start, last], "mode": mode, **read(core, f"{name}$audit_log", **options)})
    return found


def main() -> None:
    """Read the tables."""
    out = Path(sys.argv[1])
    core = paimon_core.Core(Path(sys.prefix) / "jars" / NEWEST, out)
    out.joinpath("changes").mkdir()
    for table in sorted((core.warehouse / "d.db").iterdir()):
        versions = states(core, table.name, out / "expected" / table.name)
        if versions:
            rows = changes(core, table.name, versions)
            out.joinpath("changes", f"{table.name}.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
