"""Have Paimon's Java core show system tables and incremental rows of the test tables, and write down its answers.

    python -m tests.scripts.expect_inspect JARS [KIND...]

JARS is the class path of `make_paimon_java.py`. Writes `expected/inspect/TABLE.json`, a list of `{"table", "version",
"columns", "rows"}`, and `expected/incremental/TABLE.json`, a list of `{"between", "mode", "columns", "rows"}`, read
through `audit_log`; `{"version"}` alone is what `audit_log` shows at a version. Where Paimon refuses, "rows" is null.
Paths of files are written from the table's folder on. `expected/inspect_rows/TABLE.json` holds the system tables of
rows at versions, with Paimon's spelling of their types. KIND is a folder to write; without one all are written.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError

from tests.scripts import make_paimon_java, make_samples
from tests.support.canonical import canonical_rows

DATA = Path(__file__).resolve().parents[1] / "data"
OF_TABLE = ("snapshots", "schemas", "options", "tags", "consumers", "aggregation_fields", "buckets")
"""System tables that Paimon shows of the latest version only."""
OF_VERSION = (
    "manifests",
    "files",
    "file_key_ranges",
    "partitions",
    "statistics",
    "table_indexes",
)
INSPECTED = {
    "inspected": ("", "2", "4", "7"),
    "written_by_1_4": ("", "3"),
    "written_by_0_7": ("",),
    "evolution_pk": ("1", "3", "4"),
    "evolution_append": ("2", "4"),
    "evolution_nested": ("",),
    "odd_names": ("",),
    "partition_names": ("",),
    "dynamic_bucket": ("",),
    "dv": ("", "5"),
    "dv_append": ("", "1"),
    "aggregation": ("",),
    "expired": ("", "9"),
    "append_parquet": ("",),
    "append_orc": ("",),
    "manifests_orc_1_4": ("",),
    "empty": ("",),
}
"""Tables, and the versions to inspect; an empty one is the latest."""
RANGES: dict[str, list[tuple[str, str]]] = {
    "expired": [("7", "11"), ("8", "9"), ("9", "11"), ("10", "11"), ("8", "10")],
    "written_by_1_4": [("0", "5"), ("0", "3"), ("1", "2"), ("1", "3"), ("2", "3"), ("2", "5"), ("3", "4"), ("4", "5")],
    "written_by_0_7": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "manifests_orc": [("0", "4"), ("1", "3"), ("2", "4")],
    "many_levels": [("0", "14"), ("1", "5"), ("2", "9"), ("8", "14"), ("3", "4"), ("13", "14")],
    "inspected": [("0", "9"), ("1", "4"), ("2", "4"), ("4", "6"), ("6", "9"), ("kept", "passing"), ("5", "5")],
    "changelog_full": [("0", "7"), ("1", "2"), ("2", "3"), ("3", "5"), ("3", "7"), ("5", "6"), ("6", "7")],
    "evolution_pk": [("0", "5"), ("1", "3"), ("2", "4"), ("4", "5")],
    "evolution_append": [("0", "4"), ("1", "3")],
    "dynamic_bucket": [("0", "3"), ("1", "3"), ("2", "3")],
    "ignore_delete": [("0", "3"), ("1", "3")],
    "append_bucketed": [("0", "2"), ("1", "2")],
    "dv_append": [("0", "5"), ("1", "3")],
    "dv": [("0", "6"), ("1", "3")],
    "first_row": [("0", "4"), ("1", "3")],
    "aggregation": [("0", "3"), ("1", "2")],
    "partial_update": [("0", "4"), ("1", "3")],
    "dv_1_4": [("0", "8"), ("1", "2"), ("2", "4"), ("2", "8"), ("3", "6"), ("4", "7"), ("6", "8"), ("7", "8")],
    "dv_bitmap64": [("2", "8"), ("4", "6")],
    "first_row_ignore_delete": [("0", "6"), ("2", "4"), ("1", "3")],
    "partial_groups_retract": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "partial_groups_remove": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "partial_aggregates": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "partial_remove": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "partial_ignore_delete": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "aggregates_remove": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "aggregates_descending": [("0", "4"), ("1", "3"), ("2", "4"), ("3", "4")],
    "aggregates_lookup": [("0", "8"), ("2", "4"), ("4", "7"), ("1", "8"), ("6", "8")],
}
"""Tables, and the ranges to read: start exclusive, end inclusive."""
STATES = {"written_by_1_4": (2, 3, 5), "many_levels": (2, 9, 14), "changelog_full": (5, 6), "dynamic_bucket": (3,)}
"""Tables, and the versions at which `audit_log` is read."""
ROWS: dict[str, tuple[int, ...]] = {
    "written_by_1_4": (1, 2, 3, 4, 5),
    "written_by_0_7": (1, 2, 3, 4),
    "many_levels": (2, 5, 9, 14),
    "changelog_full": (2, 5, 6, 7),
    "dynamic_bucket": (2, 3),
    "ignore_delete": (1, 2, 3),
    "inspected": (2, 4, 7, 9),
    "expired": (8, 9, 10, 11),
    "evolution_pk": (1, 2, 3, 4, 5),
    "evolution_append": (1, 2, 3, 4),
    "evolution_nested": (1, 2, 3),
    "partition_names": (1,),
    "append_bucketed": (1, 2),
    "dv": (1, 2, 3, 4, 5, 6),
    "dv_1_4": (1, 2, 4, 6, 7, 8),
    "dv_bitmap64": (2, 8),
    "dv_append": (1, 3, 5),
    "first_row": (1, 2, 3, 4),
    "first_row_ignore_delete": (1, 2, 3, 4, 5, 6),
    "partial_update": (1, 2, 3, 4),
    "partial_groups_retract": (1, 2, 3, 4),
    "partial_groups_remove": (1, 2, 3, 4),
    "partial_aggregates": (1, 2, 3, 4),
    "partial_remove": (1, 2, 3, 4),
    "partial_ignore_delete": (1, 2, 3, 4),
    "aggregation": (1, 2, 3),
    "aggregates_remove": (1, 2, 3, 4),
    "aggregates_descending": (1, 2, 3, 4),
    "aggregates_lookup": (1, 2, 3, 4, 5, 6, 7, 8),
    "aggregates_refused": (1, 2),
    "row_tracking": (1, 2, 3, 4),
    "data_evolution": (1, 2, 3, 4),
    "blobs": (1, 2, 3),
    "postponed": (1, 2, 3),
}
"""Tables, and the versions whose system tables of rows are read."""
BINLOGS = ("written_by_1_4", "many_levels", "evolution_nested", "dv", "partial_remove", "aggregates_remove")
"""Tables of which the `binlog` is read too."""


def inspect(core: make_paimon_java.Core, table: str) -> list[dict[str, Any]]:
    """Return what the core shows of a table."""
    asked = [(name, "") for name in OF_TABLE] + [(name, one) for name in OF_VERSION for one in INSPECTED[table]]
    found = []
    for name, version in asked:
        travel = {"scan__snapshot_id": version} if version else {}
        rows = core.read(f"{table}${name}", **travel)
        found.append({"table": name, "version": int(version) if version else None, **_body(_from_folder(rows, table))})
    return found


def between(core: make_paimon_java.Core, table: str) -> list[dict[str, Any]]:
    """Return the incremental rows that the core reads, and its audit log at versions."""
    found = []
    for start, end in RANGES[table]:
        for mode in ("auto", "delta", "changelog", "diff"):
            options = {"incremental_between": f"{start},{end}", "incremental_between_scan_mode": mode}
            found.append({"between": [start, end], "mode": mode, **_asked(core, table, options)})
    states = ((version, {"scan__snapshot_id": str(version)}) for version in STATES.get(table, ()))
    return found + [{"version": version, **_asked(core, table, options)} for version, options in states]


def rows_of(core: make_paimon_java.Core, table: str) -> list[dict[str, Any]]:
    """Return the system tables of rows, at versions."""
    names = ["audit_log", "ro", *(["binlog"] if table in BINLOGS else [])]
    names += ["row_tracking"] if table in make_paimon_java.tables_of_files.TRACKED else []
    found = []
    for name in names:
        for version in ROWS[table]:
            options = {"scan__snapshot_id": str(version)}
            case = {"table": name, "version": version, **_asked(core, table, options, name)}
            if case["rows"] is not None:
                fields = core.table(f"{table}${name}", **options).rowType().getFields()
                case["types"] = [field.type().asSQLString() for field in fields]
            found.append(case)
    return found


def file_indexes(core: make_paimon_java.Core, table: str) -> list[dict[str, Any]]:
    """Return what the core's own classes read of file indexes: 1.4.2 has no system table of them."""
    paimon = core.paimon
    opened = core.table(table)
    found = []
    for split in paimon.table.source.ReadBuilderImpl(opened).newScan().plan().splits():
        for file in split.dataFiles():
            content, beside = file.embeddedIndex(), [name for name in file.extraFiles() if name.endswith(".index")]
            if content is None and not beside:
                continue
            path = f"{split.bucketPath()}/{beside[0]}" if content is None else None
            content = content if path is None else Path(path.removeprefix("file:")).read_bytes()
            stream = paimon.fs.ByteArraySeekableStream(content)
            reader = paimon.fileindex.FileIndexFormat.createReader(stream, opened.rowType())
            found += [
                {
                    "file_path": f"{split.bucketPath()}/{file.fileName()}".partition(f"/d.db/{table}/")[2],
                    "column_name": column,
                    "index_type": kind,
                    "index_file_path": path and path.partition(f"/d.db/{table}/")[2],
                    "index_size_in_bytes": 0 if body is None else len(body),
                    "index_container_size_in_bytes": len(content),
                    "is_empty": body is None,
                }
                for column, kinds in dict(reader.readAll()).items()
                for kind, body in dict(kinds).items()
            ]
    return found


def _asked(core: make_paimon_java.Core, table: str, options: dict[str, str], name: str = "audit_log") -> dict[str, Any]:
    try:
        return _body(core.read(f"{table}${name}", **options))
    except Py4JError:
        return {"rows": None}


def _body(rows: pa.Table) -> dict[str, Any]:
    return {"columns": rows.column_names, "rows": canonical_rows(rows)}


def _from_folder(rows: pa.Table, table: str) -> pa.Table:
    """Return the rows with paths from the table's folder on."""
    if "file_path" not in rows.column_names:
        return rows
    index = rows.column_names.index("file_path")
    paths = [path.partition(f"/d.db/{table}/")[2] for path in rows.column(index).to_pylist()]
    return rows.set_column(index, "file_path", pa.array(paths, pa.string()))


def main() -> None:
    """Read the tables, all in one Java process."""
    with tempfile.TemporaryDirectory() as folder:
        core = make_paimon_java.Core(sys.argv[1], Path(folder))
        kinds = {
            "inspect": (INSPECTED, inspect),
            "incremental": (RANGES, between),
            "inspect_rows": (ROWS, rows_of),
            "file_indexes": (("file_indexed",), file_indexes),
        }
        for kind in sys.argv[2:] or kinds:
            tables, ask = kinds[kind]
            out = DATA / "expected" / kind
            out.mkdir(parents=True, exist_ok=True)
            for table in tables:
                make_samples.clean_copy(DATA / "paimon" / table, core.warehouse / "d.db" / table)
                lines = [json.dumps(one, ensure_ascii=False) for one in ask(core, table)]
                (out / f"{table}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
        core.close()


if __name__ == "__main__":
    main()
