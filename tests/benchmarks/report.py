"""What benchmarks measured, for the guide's page: `record` writes it to the file that `run_all` names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULTS = "SNAPSHOT_EXPLORER_BENCHMARK_RESULTS"
"""The environment variable with the path of the file. Without it nothing is recorded."""


def record(
    work: str,
    seconds: float,
    peers: Mapping[str, float] | None = None,
    *,
    processor: bool = False,
    note: str = "",
    growth: Sequence[Mapping[str, float]] = (),
) -> None:
    """Append a measurement to the file of the results.

    Args:
        work: What was done, as the guide says it. The guide has one row for each.
        seconds: What it took.
        peers: The seconds of what else does the work, by name, measured in the same run.
        processor: Whether these are seconds of the processor, not of the clock.
        note: What else the row says.
        growth: The same work on tables of several sizes: `files`, `seconds`, and `mib`, the process's peak of memory.
    """
    if not (path := os.environ.get(RESULTS)):
        return
    found = {"work": work, "seconds": _rounded(seconds)}
    if peers:
        found["peers"] = {name: _rounded(other) for name, other in peers.items()}
    if processor:
        found["processor"] = True
    if note:
        found["note"] = note
    if growth:
        found["growth"] = [{**point, "seconds": _rounded(point["seconds"])} for point in growth]
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(found, ensure_ascii=False) + "\n")


def _rounded(seconds: float) -> float:
    """Return three significant digits."""
    return float(f"{seconds:.3g}")
