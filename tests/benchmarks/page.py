"""Write the table of measurements in the guide's page from `notebooks/guide/performance.json`.

    python -m tests.benchmarks.page

`python -m tests.benchmarks.run_all` measures. `tests/package/test_guide.py` fails where it differs from the file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "notebooks" / "guide" / "performance.md"
MEASURED = PAGE.with_suffix(".json")
"""The runs: of each command the date, cores, load and versions, and its results as `report.record` wrote them."""

BUSY = 1.0
"""The load average before a run from which on its rows are marked; they are too where it is not known."""
LOW = 0.5
"""Ratios below it are bold."""
_BLOCK = re.compile(r"(<!-- measured[^>]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def page() -> str:
    """Return the text of the page with the table that the file gives; a benchmark that was never run has no row."""
    block = _table(json.loads(MEASURED.read_text("utf-8")))
    text, count = _BLOCK.subn(lambda found: found[1] + block + found[3], PAGE.read_text("utf-8"))
    if count != 1:
        raise SystemExit(f"{PAGE.name} needs one table between <!-- measured --> and <!-- end -->, it has {count}.")
    return text


def _table(runs: list[dict[str, Any]]) -> str:
    table = ["| work | seconds | compared with | `python tests/benchmarks/...` |", "|---|---|---|---|"]
    for run in runs:
        mark = " \\*" if _was_busy(run) else ""
        table += [_row(result, f"`{run['command']}`", mark) for result in run["results"]]
    return f"{_conditions(runs)}\n\n" + "\n".join(table) + "\n"


def _conditions(runs: list[dict[str, Any]]) -> str:
    """Return where and when it was measured."""
    dates = sorted({run["date"] for run in runs})
    when = f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}"
    cores = " or ".join(str(count) for count in sorted({run["cores"] for run in runs}))
    versions: dict[str, set[str]] = {}
    for run in runs:
        for name, version in run["versions"].items():
            versions.setdefault(name, set()).add(version)
    used = ", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in versions.items())
    busy = " Rows with \\* were measured beside other work." if any(map(_was_busy, runs)) else ""
    return f"Measured {when} on {cores} cores with {used}.{busy}"


def _was_busy(run: dict[str, Any]) -> bool:
    return run["load"] is None or run["load"] >= BUSY


def _row(result: dict[str, Any], command: str, mark: str) -> str:
    """Return a row of the table."""
    seconds = result["seconds"]
    stopped = result.get("stopped", ())
    less, more = "less than ", "more than "
    against = [
        f"{less if name in stopped else ''}{_ratio(seconds / other)} of {name}, "
        f"{more if name in stopped else ''}{_number(other)} s"
        for name, other in result.get("peers", {}).items()
    ]
    if result.get("processor"):
        against.append("processor time")
    if note := result.get("note"):
        against.append(note)
    return f"| {result['work']} | {_number(seconds)}{mark} | {'; '.join(against)} | {command} |"


def _ratio(ratio: float) -> str:
    return f"**{_number(ratio)}**" if ratio < LOW else _number(ratio)


def _number(value: float) -> str:
    """Return two significant digits, and all of those before the point."""
    if value >= 10:
        return f"{value:,.0f}"
    digits = f"{value:.2g}"
    return f"{value:.1f}" if float(digits) >= 1 else f"{float(digits):f}".rstrip("0")


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
