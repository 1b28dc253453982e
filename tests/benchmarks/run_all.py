"""Run the benchmarks that the guide's page shows, and write what they measured to `performance.json` and the page.

    python -m tests.benchmarks.run_all [--peers PYTHON ...] [--delta-spark PYTHON JARS] [--paimon-spark PYTHON JARS]
        [--hudi-jars JARS] [--only WORD ...]

Each benchmark has a process of its own, one after another. What others measure needs packages that pin older ones than
ours: `--peers` names interpreters, and each peer (deltalake with polars, pypaimon, polars-avro, pyiceberg with
sqlalchemy, hudi with pyspark, lake-sift with reladiff[duckdb]) is taken from the first one that has it, or from this
one. JARS is a folder with a connector's jars for the PySpark of its PYTHON, which also has this package's dependencies;
the PySpark for Hudi's is that of its peer.

Benchmarks that fail, or whose peers are missing, are named at the end, and the page keeps their last results. The exit
code is 1 if one failed. Measure on a machine with nothing else to do: rows measured beside other work are marked.
"""

# ruff: noqa: T201 - it prints what it runs
from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks import page
from tests.benchmarks.report import RESULTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BENCHMARKS = (
    "delta_open.py 10000 {deltalake}",
    "lifetimes.py delta --deltalake {deltalake}",
    "lifetimes.py paimon --pypaimon {pypaimon}",
    "lifetimes.py manifest --polars {polars_avro}",
    "lifetimes.py questions",
    "paimon_pypaimon.py --python {pypaimon}",
    "rows_diff.py",
    "pairs.py --peers {lake_sift}",
    "trace.py --deltalake {deltalake}",
    "row_history.py",
    "rows.py --latency 0 --peers {deltalake}",
    "iceberg_metadata.py 2000 {pyiceberg}",
    "iceberg_rows.py 10000000 {pyiceberg} 4000",
    "hudi_metadata.py 2000 {hudi}",
    "hudi_rows.py {hudi} {hudi_jars}",
    "store.py delta --peers {deltalake} {duckdb_extensions} --delays 0 50 200",
    "store.py paimon --peers {pypaimon} --delays 0 50 200",
    "store.py iceberg --peers {pyiceberg} {duckdb_extensions} --delays 0 50 200",
    "store.py hudi --peers {hudi} --delays 0 50 200",
    "small_files.py delta {deltalake} 4000",
    "small_files.py paimon {pypaimon} 4000",
    "spark_rows.py raw",
    "spark_rows.py vectors --jars {delta_jars}",
    "spark_rows.py merge --jars {paimon_jars}",
    "spark_metadata.py",
    "size.py delta iceberg --entries 1000000 --peers {deltalake} {pyiceberg}",
    "size.py --growth",
    "explorer.py",
    "lake.py --deltalake {deltalake} --pyiceberg {pyiceberg} --pypaimon {pypaimon}",
    "lake.py --deltalake {deltalake} --pyiceberg {pyiceberg} --pypaimon {pypaimon} --spark --tables 10000",
)
"""The commands below tests/benchmarks, with the peers that they need: a package of Python, or a folder of jars."""
PACKAGES = {
    "deltalake": ("deltalake", "polars"),
    "pypaimon": ("pypaimon",),
    "polars_avro": ("polars_avro",),
    "pyiceberg": ("pyiceberg", "sqlalchemy"),
    "duckdb_extensions": (
        "duckdb-extensions",
        "duckdb-extension-httpfs",
        "duckdb-extension-delta",
        "duckdb-extension-iceberg",
        "pyarrow",
    ),
    "hudi": ("hudi", "pyspark"),
    "lake_sift": ("lake-sift", "reladiff"),
}
"""The packages that a peer's environment needs, by its word in BENCHMARKS."""
OWN = ("pyarrow", "duckdb")
"""The packages whose versions the page names beside those of the peers."""
MINUTES = 30
LOAD = round(os.getloadavg()[0], 1)
"""The load of the machine before the first benchmark."""
_VERSION = "import importlib.metadata as m; print(m.version('{}'))"


def shown(command: str) -> str:
    """Return a command as the page shows it, without the paths of the peers."""
    return re.sub(r"{\w+}", lambda found: "JARS" if found[0].endswith("_jars}") else "PYTHON", command)


def interpreters(peers: Sequence[str]) -> dict[str, str]:
    """Return for each peer the first interpreter that has its packages."""
    found: dict[str, str] = {}
    for peer, packages in PACKAGES.items():
        for python in (*peers, sys.executable):
            if peer not in found and all(version(python, one) for one in packages):
                found[peer] = python
    return found


def version(python: str, package: str) -> str | None:
    """Return the version of a package in another environment; None without it."""
    done = subprocess.run([python, "-c", _VERSION.format(package)], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def measured(command: str, python: str, peers: Mapping[str, str], folder: Path) -> list[dict[str, Any]]:
    """Return what a benchmark recorded.

    Raises:
        SystemExit: It failed or recorded nothing. The message says why.
    """
    script, *arguments = command.split()
    with tempfile.TemporaryDirectory() as place:
        results = Path(place) / "results"
        results.touch()
        there = os.environ | {RESULTS: str(results), "PYTHONPATH": str(page.ROOT), "PYTHONWARNINGS": "ignore"}
        try:
            done = subprocess.run(
                [python, str(folder / script), *(one.format(**peers) for one in arguments)],
                env=there,
                check=False,
                timeout=MINUTES * 60,
            )
        except subprocess.TimeoutExpired:
            raise SystemExit(f"did not end in {MINUTES} minutes") from None
        if done.returncode:
            raise SystemExit(f"ended with exit code {done.returncode}")
        recorded = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    if not recorded:
        raise SystemExit("recorded nothing")
    return recorded


def run_of(command: str, python: str, peers: Mapping[str, str], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the record of a run for the file. Contains no path and no name of the machine."""
    versions = {"Python": ".".join(map(str, sys.version_info[:3]))}
    versions |= {name: found for name in OWN if (found := version(python, name))}
    if command.startswith("spark"):
        versions["pyspark"] = version(python, "pyspark") or ""
    for name in peers:
        if f"{{{name}}}" in command:
            versions |= _jars(peers[name]) if name.endswith("_jars") else {name: version(peers[name], name) or ""}
    return {
        "command": shown(command),
        "date": datetime.now(UTC).date().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "load": LOAD,
        "versions": versions,
        "results": results,
    }


def _jars(folder: str) -> dict[str, str]:
    """Return the connectors in a folder, by the names of their files."""
    parts = [path.stem.rpartition("-") for path in sorted(Path(folder).glob("*spark*.jar"))]
    return {name: number for name, _, number in parts}


def merged(runs: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the runs with a new one in place of that of its command; in the order of BENCHMARKS, then the rest."""
    order = {shown(command): place for place, command in enumerate(BENCHMARKS)}
    kept = [run for run in runs if run["command"] != new["command"]]
    return sorted([*kept, new], key=lambda run: order.get(run["command"], len(order)))


def run_all(
    commands: Sequence[str],
    peers: Mapping[str, str],
    pythons: Mapping[str, str],
    *,
    folder: Path = Path(__file__).parent,
    file: Path = page.MEASURED,
) -> tuple[dict[str, str], dict[str, str]]:
    """Run benchmarks and merge their results into the file after each one.

    Args:
        commands: As in BENCHMARKS.
        peers: Interpreters by the package that they have, and folders of jars.
        pythons: The interpreter to run the benchmark with, by a folder of jars that it needs.
        folder: Where the scripts are.
        file: The file of the results.

    Returns:
        Why a benchmark failed, and why one was not run, by its command.
    """
    failed, skipped = {}, {}
    for command in commands:
        missing = [name for name in (*PACKAGES, "delta_jars", "paimon_jars", "hudi_jars") if f"{{{name}}}" in command]
        if missing := [name for name in missing if name not in peers]:
            skipped[command] = f"{', '.join(missing)} is missing"
            continue
        print(f"\n== {command}", flush=True)
        python = next((one for jars, one in pythons.items() if f"{{{jars}}}" in command), sys.executable)
        try:
            results = measured(command, python, peers, folder)
        except SystemExit as error:
            failed[command] = str(error)
            continue
        runs = json.loads(file.read_text("utf-8")) if file.exists() else []
        runs = merged(runs, run_of(command, python, peers, results))
        file.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return failed, skipped


def main() -> None:
    asked = argparse.ArgumentParser(description=sys.modules[__name__].__doc__.splitlines()[0])
    asked.add_argument("--peers", nargs="*", default=[], metavar="PYTHON", help="interpreters that have peers")
    asked.add_argument("--delta-spark", nargs=2, metavar=("PYTHON", "JARS"), help="for Delta's connector")
    asked.add_argument("--paimon-spark", nargs=2, metavar=("PYTHON", "JARS"), help="for Paimon's connector")
    asked.add_argument("--hudi-jars", metavar="JARS", help="for Hudi on Spark, which the peer of hudi-rs has")
    asked.add_argument("--only", nargs="*", metavar="WORD", help="run the commands that contain a word")
    given = asked.parse_args()
    peers, pythons = interpreters(given.peers), {}
    for name, pair in (("delta_jars", given.delta_spark), ("paimon_jars", given.paimon_spark)):
        if pair:
            pythons[name], peers[name] = pair
    if given.hudi_jars:
        peers["hudi_jars"] = given.hudi_jars
    commands = [one for one in BENCHMARKS if not given.only or any(word in one for word in given.only)]
    failed, skipped = run_all(commands, peers, pythons)
    page.main()
    for how, ended in (("not run", skipped), ("FAILED", failed)):
        for command, why in ended.items():
            print(f"{how}: {command}: {why}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
