"""Engines run the statements that erase rows; afterwards no trace is left, and no byte of any file has them."""

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_lake
from tests.oracles.erasure_tables import MARK, TABLES, WHERE


@pytest.fixture(params=list(TABLES))
def erased(request, connector_wrote, oracle):
    if request.param == "ducklake":
        folder = oracle("erasure_tables.py", inner="ducklake")
    else:
        folder = connector_wrote(request.param)
    return request.param, json.loads((folder / "erasure.json").read_text())


def test_no_trace_of_rows_is_left_where_engines_ran_the_statements(erased):
    kind, answer = erased
    tables = len(TABLES[kind])
    assert answer["plan"]["verdict"].startswith(f"{tables} of {tables} tables have matching rows")
    assert answer["plan"]["notes"] == []
    # Only later releases of Paimon than the tested connector have this procedure.
    assert [text for text in answer["failed"] if "sys.compact_manifest" not in text] == []
    assert answer["rows"] == {name: [79, 0] for name in TABLES[kind]}

    trace = open_lake(answer["lake"]).trace(WHERE)
    rows = trace.tables.to_arrow().to_pylist()

    # Paimon's manifests keep the statistics, and the timeline of Hudi the versions, which lack their files.
    left = {"paimon": "found", "hudi": "unknown"}.get(kind, "absent")
    assert {row["outcome"] for row in rows} == {left}, trace
    assert {(row["versions"], row["stored_files"], row["unnamed_files"]) for row in rows} == {(0, 0, 0)}


def test_no_byte_of_a_file_has_the_rows(erased):
    kind, answer = erased
    lake = Path(answer["lake"])
    files = [path for path in (lake if lake.is_dir() else lake.parent).rglob("*") if path.is_file()]

    assert [path for path in files if MARK.encode() in path.read_bytes()] == []
    data = [path for path in files if path.suffix == ".parquet" and path.parent.name != "_delta_log"]
    assert len(data) >= len(TABLES[kind])
    for path in data:
        rows = pq.ParquetFile(path).read()
        if "id" in rows.column_names:
            assert not pc.any(pc.equal(rows["id"], 42)).as_py(), path


def test_compacted_manifests_of_paimon_have_no_statistics_of_erased_rows(oracle):
    lake = oracle("paimon_erase.py") / "warehouse" / "d.db"

    traces = open_lake(lake).trace(WHERE).traces

    assert [len(traces[name].metadata) > 0 for name in ("kept", "compacted")] == [True, False]
    assert (traces["kept"].is_found, traces["compacted"].is_found) == (True, False)
    left = [path for path in (lake / "compacted").rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]
    assert left == []
