"""Write the figures and the table of the guide's page on performance from `notebooks/guide/performance.json`.

    python -m tests.benchmarks.page

`python -m tests.benchmarks.run_all` measures. `tests/package/test_guide.py` fails where they differ from the file.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "notebooks" / "guide" / "performance.md"
MEASURED = PAGE.with_suffix(".json")
"""The runs: of each command the date, cores, load and versions, and its results as `report.record` wrote them."""

BUSY = 1.0
"""The load average before a run from which on its rows are marked; they are too where it is not known."""
LOW = 0.5
"""Ratios below it are bold."""
_BLOCK = re.compile(r"(<!-- (figures|measured)[^>]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)
_STORE = "on S3, 50 ms per request:"
_EIGHT = "Delta, 8 files of 1,000,000 rows:"
_VERSIONS = "Delta: rows that differ between two versions of 10 million rows"
_TABLES = "Two Delta tables of 10 million rows of which 0.1 % differ: rows that differ"
FIGURES = {
    "open": (
        "Open a table",
        {
            "Delta: open the newest of 10,000 commits without checkpoint": "Delta, 10,000 commits without a checkpoint",
            f"Delta {_STORE} open": "Delta on a store with 50 ms per request",
            f"Paimon {_STORE} open": "Paimon on that store",
            f"Iceberg {_STORE} open": "Iceberg on that store",
        },
    ),
    "history": (
        "Read a history",
        {
            "Iceberg, 2,000 snapshots: open and history": "Iceberg, 2,000 snapshots",
            "Hudi, 2,000 commits: open and history": "Hudi, 2,000 commits",
            "Delta: when each of 100,000 files was added and removed, over 10,000 commits": "Delta, the lifetimes of "
            "100,000 files in 10,000 commits",
            "Paimon: when each of 20,000 files was added and removed, over 2,000 snapshots": "Paimon, the lifetimes of "
            "20,000 files in 2,000 snapshots",
        },
    ),
    "rows": (
        "Read rows",
        {
            f"{_EIGHT} all rows, plain strings": "Delta, 8 million rows",
            f"{_EIGHT} where id < 1000": "Delta, 1,000 rows of 8 million",
            "Paimon: read 10 million rows of a primary-key table, 16 buckets": "Paimon, 10 million rows merged by key",
            "Iceberg, 10 million rows, deletes: positions and equality": "Iceberg, 10 million rows and deletes",
            "Hudi: read 8 million rows, a tenth updated in log files": "Hudi, 8 million rows, a tenth in log files",
            "Delta: read 4,000 files of 20 rows": "Delta, 4,000 files of 20 rows",
        },
    ),
    "stores": (
        "Read from a store with 50 ms per request",
        {
            f"Delta {_STORE} all rows": "Delta, all rows",
            f"Delta {_STORE} where id < 1000": "Delta, a condition",
            f"Delta {_STORE} preview of 200 rows": "Delta, a preview",
            f"Paimon {_STORE} where id < 1000": "Paimon, a condition",
            f"Iceberg {_STORE} where id < 1000": "Iceberg, a condition",
        },
    ),
    "diff": (
        "Find the rows that differ",
        {
            f"{_VERSIONS}, 1 of 100 files changed": "Two versions of 10 million rows, 1 of 100 files changed",
            f"{_VERSIONS}, half of the files changed": "The same, half of the files changed",
            f"{_TABLES}, by key": "Two tables of 10 million rows, by key",
            f"{_TABLES}, as multisets": "The same, without a key",
        },
    ),
}
"""The figures by the name of their files: what they show, and the labels of the measurements in them."""
_WIDTH, _BAR, _TEXT = 760, 14, 330
"""Of a figure, in pixels: the width, the height of a bar, and what the text beside the longest bar needs."""
_HIGH, _TICKS, _NAMES, _LINE = 230, 48, 150, 15
"""Of the figure with lines, in pixels: the lower end of the panels, the space for the numbers of an axis, the space for
the names of the lines in both panels, and the height of a name."""
_LINES = (
    ".line{fill:none;stroke:#0072b2;stroke-width:2}.grid{stroke:#8c959f;stroke-width:.5}"
    "@media(prefers-color-scheme:dark){.line{stroke:#56b4e9}}"
)
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#24292f}.work{font-weight:600}.ours{fill:#0072b2}.peer{fill:#8c959f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ours{fill:#56b4e9}.peer{fill:#6e7681}}"
)


def page() -> str:
    """Return the text of the page as the file gives it; a benchmark that was never run has no row."""
    runs = json.loads(MEASURED.read_text("utf-8"))
    blocks = {"figures": _figures(runs), "measured": _table(runs)}
    text, count = _BLOCK.subn(lambda found: found[1] + blocks[found[2]] + found[4], PAGE.read_text("utf-8"))
    if count != len(blocks):
        raise SystemExit(f"{PAGE.name} needs <!-- figures --> and <!-- measured -->, each with <!-- end -->.")
    return text


def pictures() -> dict[Path, str]:
    """Return the figures as SVG by the paths of their files."""
    runs = json.loads(MEASURED.read_text("utf-8"))
    drawn = {name: _drawn(title, _chosen(runs, labels)) for name, (title, labels) in FIGURES.items()}
    drawn["growth"] = _growth_drawn(_growths(runs))
    return {ROOT / "notebooks" / "pictures" / f"performance-{name}.svg": text for name, text in drawn.items()}


def _chosen(runs: list[dict[str, Any]], labels: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the results of a figure by their labels."""
    results = {result["work"]: result for run in runs for result in run["results"]}
    return {label: results[work] for work, label in labels.items() if work in results}


def _figures(runs: list[dict[str, Any]]) -> str:
    """Return the figures, each with a sentence about what is in it."""
    parts = []
    for name, (title, labels) in FIGURES.items():
        results = list(_chosen(runs, labels).values())
        ratios = sorted(result["seconds"] / min(result["peers"].values()) for result in results)
        less = sum(ratio < 1 for ratio in ratios)
        parts.append(
            f"**{title}.** In {less} of {len(ratios)} it takes less time than the fastest of the others: from "
            f"{_number(ratios[0])} to {_number(ratios[-1])} of that time.\n\n"
            f"![{title}: the seconds of this package and of others](../pictures/performance-{name}.svg)\n"
        )
    return "\n".join([*parts, _growth_text(_growths(runs))])


def _growths(runs: list[dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """Return the plans of tables of several sizes, by format."""
    results = [result for run in runs for result in run["results"] if "growth" in result]
    return {result["work"].partition(",")[0]: result["growth"] for result in results}


def _growth_text(growths: dict[str, list[dict[str, float]]]) -> str:
    sizes = [point["files"] for points in growths.values() for point in points]
    peaks = [point["mib"] for points in growths.values() for point in points]
    exponents = [
        math.log(after["seconds"] / before["seconds"]) / math.log(after["files"] / before["files"])
        for points in growths.values()
        for before, after in itertools.pairwise(points)
    ]
    return (
        f"**Plan with a condition.** Of {min(sizes):,} to {max(sizes):,} files a condition leaves one. From one size "
        f"to the next, time grows with an exponent of at most {max(exponents):.2f}. Memory is between "
        f"{min(peaks):,} and {max(peaks):,} MiB.\n\n"
        "![Plan with a condition: seconds of the processor and memory by the number of files]"
        "(../pictures/performance-growth.svg)\n"
    )


def _growth_drawn(growths: dict[str, list[dict[str, float]]]) -> str:
    """Return a figure of two panels with logarithmic axes: time and memory by the number of files."""
    files = [point["files"] for points in growths.values() for point in points]
    parts, panel = [], (_WIDTH - _NAMES) // 2
    for left, name, title in ((0, "seconds", "seconds of the processor"), (_WIDTH // 2, "mib", "memory, MiB")):
        values = [point[name] for points in growths.values() for point in points]
        x = _scale(min(files), max(files), left + _TICKS, left + panel)
        y = _scale(_power(min(values), math.floor), _power(max(values), math.ceil), _HIGH, 30)
        parts.append(f'<text class="work" x="{left}" y="14">{title}</text>')
        parts += [
            f'<path class="grid" d="M{left + _TICKS},{y(value)}H{left + panel}"/>'
            f'<text x="{left + _TICKS - 6}" y="{y(value) + 4}" text-anchor="end">{_number(value)}</text>'
            for value in _powers(min(values), max(values))
        ]
        parts += [
            f'<text x="{x(value)}" y="{_HIGH + 18}" text-anchor="middle">{_short(value)}</text>'
            for value in sorted(set(files))
        ]
        labels = _apart({key: y(points[-1][name]) + 4 for key, points in growths.items()})
        for key, points in growths.items():
            line = " ".join(f"{x(point['files'])},{y(point[name])}" for point in points)
            parts.append(
                f'<polyline class="line" points="{line}"/>'
                f'<text x="{left + panel + 6}" y="{labels[key]}">{escape(key)}</text>'
            )
    size = f'viewBox="0 0 {_WIDTH} {_HIGH + 26}" width="{_WIDTH}" height="{_HIGH + 26}"'
    title = "<title>Plan with a condition</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{title}<style>{_STYLE}{_LINES}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _scale(low: float, high: float, start: int, end: int) -> Callable[[float], int]:
    """Return the pixel of a value on a logarithmic axis."""
    span = math.log(high / low) or 1
    return lambda value: round(start + (end - start) * math.log(value / low) / span)


def _power(value: float, to: Callable[[float], int]) -> float:
    return 10.0 ** to(math.log10(value))


def _powers(low: float, high: float) -> list[float]:
    """Return the powers of ten around values."""
    return [10.0**exponent for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def _short(count: float) -> str:
    return f"{count / 1e6:g} M" if count >= 1e6 else f"{count:,.0f}"


def _apart(places: dict[str, int]) -> dict[str, int]:
    """Return the places of labels, moved so that none lies on another."""
    apart: dict[str, int] = {}
    for key in sorted(places, key=places.__getitem__):
        apart[key] = max(places[key], max(apart.values(), default=-_LINE) + _LINE)
    return apart


def _drawn(title: str, results: dict[str, dict[str, Any]]) -> str:
    """Return a figure: the seconds of each work as bars, ours first; the longest bar of each has the same length."""
    parts, y = [], 0
    for label, result in results.items():
        parts.append(f'<text class="work" x="0" y="{y + 14}">{escape(label)}</text>')
        y += 21
        all_seconds = {"snapshot_explorer": result["seconds"], **result["peers"]}
        for name, seconds in all_seconds.items():
            length = max(1, round((_WIDTH - _TEXT) * seconds / max(all_seconds.values())))
            kind = "peer" if name in result["peers"] else "ours"
            text = escape(f"{name.replace('*', '').replace('`', '')}, {_number(seconds)} s")
            parts.append(
                f'<rect class="{kind}" x="0" y="{y}" width="{length}" height="{_BAR}" rx="2"/>'
                f'<text x="{length + 6}" y="{y + 11}">{text}</text>'
            )
            y += _BAR + 4
        y += 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}" role="img"'
    )
    return f"{head}>\n<title>{title}</title><style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"


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
    against = [
        f"{_ratio(seconds / other)} of {name}, {_number(other)} s" for name, other in result.get("peers", {}).items()
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
    for path, text in pictures().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
