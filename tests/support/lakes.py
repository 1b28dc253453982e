"""Lakes of small tables with planted incidents, and the histories that the benchmark has real writers write."""

import json
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from tests.support.delta.table_builder import DeltaTable, metadata
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

NOW = datetime(2026, 11, 22, 6, tzinfo=UTC)
"""The time at which the lakes are viewed: nothing happens later."""


@dataclass(frozen=True)
class Step:
    """A commit."""

    hours_ago: float
    first: int
    """The first id of its rows."""
    rows: int
    adds_column: bool = False

    @property
    def millis(self):
        return round((NOW - timedelta(hours=self.hours_ago)).timestamp() * 1000)


def _steps(gaps, age, seed):
    """Return appends of 100 to 140 rows with these gaps in hours between them, the last one at an age."""
    numbers = random.Random(seed)
    ages = [age]
    for gap in reversed(gaps):
        ages.append(ages[-1] + gap * numbers.uniform(0.95, 1.05))
    steps, first = [], 0
    for hours in reversed(ages):
        count = numbers.randint(100, 140)
        steps.append(Step(hours, first, count))
        first += count
    return steps


def _with(steps, number, **changed):
    steps[number] = replace(steps[number], **changed)
    return steps


QUIET = {
    "hourly": lambda seed: _steps([1] * 13, 0.4, seed),
    "daily": lambda seed: _steps([24] * 13, 20, seed),
    "office": lambda seed: _steps([1, 1, 1, 1, 20] * 3, 18, seed),
    "outage": lambda seed: _steps([1] * 6 + [60] + [1] * 6, 0.9, seed),
}
"""Histories without an incident."""


def _jump(seed):
    return _with(_steps([1] * 13, 0.4, seed), -3, rows=9_000)


def _doubled(seed):
    steps = _steps([1] * 13, 0.4, seed)
    return _with(steps, -2, first=steps[-4].first, rows=steps[-4].rows)


INCIDENTS = {
    "late": lambda seed: _steps([1] * 13, 9, seed),
    "stopped": lambda seed: _steps([24] * 13, 11 * 24, seed),
    "busy": lambda seed: _steps([1] * 9 + [0.01] * 5, 0.02, seed),
    "jump": _jump,
    "schema": lambda seed: _with(_steps([1] * 13, 0.4, seed), -2, adds_column=True),
    "doubled": _doubled,
    "broken": lambda seed: _steps([1] * 13, 0.4, seed),
}
"""Histories with one incident."""
HISTORIES = QUIET | INCIDENTS


def incident_of(row):
    """Return the incident that a row of LAKE_OVERVIEW reports; None for a quiet table."""
    if row.get("problem") is not None:
        return "broken"
    marks = row["anomalies"] or []
    if row["rhythm"] == "late":
        return "stopped" if row["usual_seconds"] > 36_000 else "late"
    if row["rhythm"] == "busy":
        return "busy"
    if row["schema_changes"]:
        return "schema"
    if marks:
        return "doubled" if "loaded twice" in marks[0] else "jump"
    return None


def write_lake(root):
    """Write a table of each format and history into folders such as `delta/late`."""
    for number, (name, history) in enumerate(HISTORIES.items()):
        for writer in (write_delta, write_iceberg, write_paimon):
            table_format = writer.__name__.removeprefix("write_")
            folder = Path(root) / f"{table_format}.db" / f"{name}_{table_format}"
            writer(folder, history(number))
            if name == "broken":
                damage(folder, table_format)


def damage(folder, table_format):
    """Truncate the newest metadata of a table."""
    patterns = {"delta": "_delta_log/*.json", "iceberg": "metadata/*.metadata.json", "paimon": "snapshot/snapshot-*"}
    files = folder.glob(patterns[table_format])
    newest = max(files, key=lambda path: (len(path.name), path.name))
    newest.write_bytes(newest.read_bytes()[:60])


def _rows(step):
    return [(number, f"n{number}") for number in range(step.first, step.first + step.rows)]


def write_delta(folder, steps):
    table = DeltaTable(None, folder, first=None)
    for number, step in enumerate(steps):
        names = {"id": step.first, "name": f"n{step.first}"}
        statistics = {
            "numRecords": step.rows,
            "minValues": names,
            "maxValues": names,
            "nullCount": {"id": 0, "name": 0},
        }
        actions = [table.data(f"part-{number}.parquet", _rows(step), stats=json.dumps(statistics))]
        if number == 0:
            actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata(), *actions]
        elif step.adds_column:
            actions = [metadata((("id", "long"), ("name", "string"), ("note", "string"))), *actions]
        table.commit(*actions, millis=step.millis)


def write_iceberg(folder, steps):
    table = IcebergTable(LocalFileSystem(auto_mkdir=True), str(folder), location=str(folder))
    for step in steps:
        if step.adds_column:
            schema = table.metadata["schemas"][0]
            note = {"id": 3, "name": "note", "required": False, "type": "string"}
            table.metadata["schemas"].append({**schema, "schema-id": 1, "fields": [*schema["fields"], note]})
            table.metadata |= {"current-schema-id": 1, "last-column-id": 3}
        table.commit(_rows(step), millis=step.millis)
        if table.metadata["current-schema-id"]:
            table.metadata["snapshots"][-1]["schema-id"] = 1
            table.write_metadata(step.millis)


def write_paimon(folder, steps):
    table = PaimonTable(LocalFileSystem(auto_mkdir=True), str(folder), statistics=True)
    schema_id = 0
    for step in steps:
        if step.adds_column:
            schema = json.loads((folder / "schema/schema-0").read_text())
            schema["fields"].append({"id": 2, "name": "note", "type": "STRING"})
            schema |= {"id": 1, "highestFieldId": 2}
            table.write("schema/schema-1", json.dumps(schema).encode())
            schema_id = 1
        table.commit(_rows(step), millis=step.millis, schemaId=schema_id)
