"""Measure what every call costs on very large tables: processor seconds and peak memory, each in a process of its own.

    python tests/benchmarks/scale.py [--quick] [--folder FOLDER] [TABLE ...] [--calls CALL;CALL]

Tables of 1 million live files, of 100,000 commits and of 200,000 partitions, of formats, a Delta table of 1 million
files in 2,000 commits, and one of 20,000 columns; with `--quick` a hundredth of that. They are written once, into
FOLDER (a folder of the system's temporary folder by default; some 3 GB, which takes 20 minutes), and found there again.
The table is opened before the call, and the opening is not counted but in `open` and `explorer`. Memory is the peak of
the whole process, its libraries included. The bytecode of the package is kept in FOLDER, as an installed package has
it. Asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
import argparse
import functools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from snapshot_explorer.view import drawing_of

sys.path.append(str(Path(__file__).parents[2]))

ROOT = Path(__file__).parents[2]
FILES, COMMITS, PARTITIONS, COLUMNS = 1_000_000, 100_000, 200_000, 20_000
GROWING_COMMITS = 2_000
QUICK = 100
AFTER_LIFETIMES = "usage after lifetimes, by "
"""Calls that begin so are measured without the lifetimes, which are read before."""
_YOUNG = 10
"""Versions between the oldest and the newest of a table of files: scale_tables.YOUNG_COMMITS."""


def write(name: str, folder: Path, shrink: int) -> None:
    """Write a table, so many times smaller than it is meant."""
    from tests.benchmarks import scale_tables

    files, commits, partitions = FILES // shrink, COMMITS // shrink, PARTITIONS // shrink
    writers: dict[str, Callable[[Path], object]] = {
        "delta-files": functools.partial(scale_tables.delta_files, files=files),
        "paimon-files": functools.partial(scale_tables.paimon_files, files=files, keyed=True),
        "paimon-append-files": functools.partial(scale_tables.paimon_files, files=files, keyed=False),
        "hudi-files": functools.partial(scale_tables.hudi_files, files=files),
        "hudi-commits": functools.partial(scale_tables.hudi_commits, commits=commits),
        "delta-commits": functools.partial(scale_tables.delta_commits, commits=commits),
        "delta-checkpoints": functools.partial(scale_tables.delta_commits, commits=commits, checkpoint_every=100),
        "paimon-commits": functools.partial(scale_tables.paimon_commits, commits=commits),
        "delta-growth": functools.partial(
            scale_tables.delta_growth, files=files, commits=max(20, GROWING_COMMITS // shrink)
        ),
        "delta-partitions": functools.partial(scale_tables.delta_partitions, partitions=partitions),
        "paimon-partitions": functools.partial(scale_tables.paimon_partitions, partitions=partitions),
        "delta-columns": functools.partial(scale_tables.delta_columns, columns=COLUMNS // shrink),
    }
    writers[name](folder)


def _explore(path: str) -> object:
    import snapshot_explorer as sx

    explorer = sx.explore(sx.open_table(path))
    explorer.wait(600)
    return explorer


def _compared(table: Any) -> object:
    found = table.compare(f"latest~{_YOUNG}", "latest")
    return drawing_of(found), found.files, found.partitions


_ON_FILES: Mapping[str, Callable[[Any], object]] = {
    "manifests": lambda table: table.current.manifests(),
    "files": lambda table: table.current.files(),
    "files of a partition": lambda table: table.current.files({"day": "2026-01-03"}),
    "files, statistics": lambda table: table.current.files(statistics=True),
    "plan": lambda table: table.current.plan(),
    "plan, where": lambda table: table.current.plan("day = '2026-01-03'"),
    "compare": _compared,
    "changes": lambda table: table.at("latest").file_changes(since="earliest"),
    "lifetimes": lambda table: table.lifetimes().to_arrow(),
    "health": lambda table: table.health(),
    "readability": lambda table: table.verify().versions,
    "retention": lambda table: table.retention("5m"),
    "usage": lambda table: table.usage(),
}
_ON_COMMITS: Mapping[str, Callable[[Any], object]] = {
    "versions": lambda table: table.versions(),
    "a version of the middle": lambda table: table.at(table.versions()[len(table.versions()) // 2]).files(),
    "history, 20": lambda table: table.history(limit=20),
    "history": lambda table: table.history(),
    "timeline": lambda table: _timeline(table.history()),
    "changes": lambda table: table.at("latest").file_changes(since="earliest"),
    "lifetimes": lambda table: table.lifetimes().to_arrow(),
    "compare": _compared,
    "readability": lambda table: table.verify().versions,
    "retention": lambda table: table.retention("5m"),
    "usage": lambda table: table.usage(),
}
_ON_PARTITIONS: Mapping[str, Callable[[Any], object]] = {
    "files": lambda table: table.current.files(),
    "files, drawn": lambda table: repr(table.current.files()),
    "plan": lambda table: table.current.plan(),
    "plan, where": lambda table: table.current.plan("day = '2026-01-03'"),
    "compare": _compared,
    "diff plan": lambda table: table.diff_rows(table.current.version - _YOUNG, table.current.version, preview=True),
    "lifetimes": lambda table: table.lifetimes().to_arrow(),
    "health": lambda table: table.health(),
    "readability": lambda table: table.verify().versions,
    "retention": lambda table: table.retention("5m"),
    "usage": lambda table: table.usage(),
}
_ON_COLUMNS: Mapping[str, Callable[[Any], object]] = {
    "schema, drawn": lambda table: repr(table.at("latest").schema),
    "history": lambda table: table.history(),
    "3 rows": lambda table: table.current.to_arrow(limit=3),
    "rows": lambda table: table.current.to_arrow(),
    "profile over versions": lambda table: table.profile_over(),
    "anomalies": lambda table: table.anomalies(),
    "compare": _compared,
}
_ON_GROWTH: Mapping[str, Callable[[Any], object]] = {
    "lifetimes": lambda table: table.lifetimes(),
    **{
        f"{AFTER_LIFETIMES}{by}": lambda table, by=by: table.usage(by)
        for by in ("holder", "version", "commit", "operation", "user", "day", "size", "time")
    },
}
TABLES: Mapping[str, Mapping[str, Callable[[Any], object]]] = {
    "delta-files": _ON_FILES,
    "delta-growth": _ON_GROWTH,
    "paimon-files": _ON_FILES,
    "paimon-append-files": _ON_FILES,
    "hudi-files": _ON_FILES,
    "hudi-commits": _ON_COMMITS,
    "delta-commits": _ON_COMMITS,
    "delta-checkpoints": _ON_COMMITS,
    "paimon-commits": _ON_COMMITS,
    "delta-partitions": _ON_PARTITIONS,
    "paimon-partitions": _ON_PARTITIONS,
    "delta-columns": _ON_COLUMNS,
}


def _timeline(history: Any) -> object:
    from tests.inner.view import timeline

    return timeline(history.to_arrow(), y="rows", title="History").figure.to_json()


def _busy() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def call(table: str, name: str, path: str) -> dict[str, Any]:
    """Make one call in this process; return its seconds of processor and clock, and the peak of memory in MB."""
    import snapshot_explorer as sx

    opened = None if name in ("open", "explorer") else sx.open_table(path)
    if opened is not None and name.startswith(AFTER_LIFETIMES):
        opened.lifetimes()
    began, busy = time.perf_counter(), _busy()
    if name == "open":
        sx.open_table(path)
    elif name == "explorer":
        _explore(path)
    else:
        TABLES[table][name](opened)
    return {
        "processor": _busy() - busy,
        "clock": time.perf_counter() - began,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _in_a_process(folder: Path, *arguments: str) -> str:
    command = [sys.executable, __file__, *arguments]
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | bytecode)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RuntimeError(last)
    return done.stdout


def _made(name: str, folder: Path, shrink: int) -> Path:
    """Return the folder of a table, which is written if it is not there."""
    path = folder / f"{name}-{shrink}"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        began = time.perf_counter()
        _in_a_process(folder, "--write", name, str(unfinished), str(shrink))
        unfinished.rename(path)
        print(f"wrote {path} in {time.perf_counter() - began:.0f} s")
    return path


def measure(names: list[str], folder: Path, shrink: int, only: list[str] | None = None) -> list[dict[str, Any]]:
    """Print and return what each call on each table costs."""
    found = []
    for name in names:
        path = _made(name, folder, shrink)
        _in_a_process(folder, "--call", name, "explorer", str(_made(name, folder, 10 * QUICK)))  # writes the bytecode
        print(f"\n{name:30}{'processor s':>12}{'clock s':>10}{'peak MB':>10}")
        for called in ["open", *TABLES[name], "explorer"]:
            if only and called not in only:
                continue
            try:
                cost = json.loads(_in_a_process(folder, "--call", name, called, str(path)))
            except RuntimeError as error:
                print(f"{called:30}{error}")
                continue
            found.append({"table": name, "call": called} | cost)
            print(f"{called:30}{cost['processor']:12.2f}{cost['clock']:10.2f}{cost['peak']:10,}", flush=True)
    return found


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        return
    if sys.argv[1:2] == ["--call"]:
        print(json.dumps(call(*sys.argv[2:5])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "snapshot-explorer-scale")
    parser.add_argument("--calls", type=lambda text: text.split(";"), help="only these calls, separated by ;")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    measure(given.tables or list(TABLES), given.folder, QUICK if given.quick else 1, given.calls)


if __name__ == "__main__":
    main()
