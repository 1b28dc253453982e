"""The details that a writer stored about a commit as JSON text, as names and values."""

import json
from collections.abc import Iterable, Iterator

from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.view.drawing import Line, Pairs, Part

_SHOWN_DETAILS = 60
_LONGEST_DETAILS = 1_000_000
_LONGEST_VALUE = 300
_METRICS = "operationMetrics"
_ENGINES = ("engineInfo", "clientVersion")
"""Where Delta's writers record their name and version: Spark and Databricks, and early delta-rs."""
_MILLISECONDS = ("executionTimeMs", "execution_time_ms")
"""Metrics of how long an operation of Delta took: Spark's and Databricks', and delta-rs'."""
_JOBS = (
    *("job.jobName", "job.jobId", "notebook.notebookId"),
    *("summary.app-name", "summary.app-id", "summary.spark.app.id", "summary.flink.job-id"),
)
"""Where a job, a notebook or an application is recorded by Databricks in Delta, and by Spark and Flink in Iceberg."""


def stored_details(text: str | None) -> tuple[Part, ...]:
    """Return the details of a commit as parts of a drawing: the numbers that the operation counted, then the rest."""
    details = _details(text)
    metrics = [(name[len(_METRICS) + 1 :], value) for name, value in details if name.startswith(f"{_METRICS}.")]
    rest = [pair for pair in details if not pair[0].startswith(f"{_METRICS}.")]
    parts: list[Part] = []
    for heading, pairs in (("What the operation counted:", metrics), ("As it is stored:", rest)):
        if pairs:
            cut_off = len(pairs) - _SHOWN_DETAILS
            notes = (
                [Line(f"{cut_off:,} more are not shown; the commit's details have them all.")] if cut_off > 0 else []
            )
            parts += [Line(heading), Pairs(tuple(pairs[:_SHOWN_DETAILS])), *notes]
    return tuple(parts)


def writer_facts(text: str | None) -> dict[str, str]:
    """Return how long a commit took, the engine that wrote it, and its job, as far as the details name them."""
    details = dict(_details(text))
    took = _first(details, [f"{_METRICS}.{name}" for name in _MILLISECONDS])
    iceberg = (_first(details, [f"summary.engine-{name}"]) for name in ("name", "version"))
    facts = {
        "took": f"{int(took) / 1000:,.1f} s" if took.isascii() and took.isdigit() else "",
        "engine": _first(details, _ENGINES) or " ".join(filter(None, iceberg)),
        "job": _first(details, _JOBS),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _first(details: dict[str, object], names: Iterable[str]) -> str:
    """Return the first of the named details that is a text which is not empty; an empty text if none is."""
    return next((value for name in names if isinstance(value := details.get(name), str) and value), "")


def _details(text: str | None) -> list[tuple[str, object]]:
    """Return JSON as names and values, nested names joined by dots; numbers keep their spelling."""
    if not text:
        return []
    if len(text) > _LONGEST_DETAILS:
        return [("details", truncate(text, _LONGEST_VALUE))]
    try:
        value_of_text = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return [("details", truncate(text, _LONGEST_VALUE))]
    return [(name or "details", value) for name, value in _flat("", value_of_text)]


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value and name.count(".") < 3:  # noqa: PLR2004 - deeper levels are JSON
        for key, inner in value.items():
            yield from _flat(f"{name}.{truncate(key, 80)}" if name else truncate(key, 80), inner)
    elif isinstance(value, str):
        yield name, truncate(value, _LONGEST_VALUE)
    elif value is None or isinstance(value, bool):
        yield name, value
    else:
        yield name, truncate(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
