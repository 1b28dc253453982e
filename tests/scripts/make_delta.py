"""Write the tables that are kept in tests/data/delta, and what Delta reads of them, with Delta itself.

    .venv-oracles/bin/python -m tests.scripts.make_delta [NAME...]

Runs in the environment of .ci/oracles: Delta Lake 4.4.0 on PySpark 4.1.4 and Java 17. Without names, writes all.
The sample's expectations are written by `make_delta.py sample`.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.delta import connector, feature_scenarios, type_scenarios, write_scenarios

DATA = Path(__file__).resolve().parents[1] / "data"
SAMPLE = DATA.parents[1] / "snapshot_explorer" / "samples" / "payments"


def keep(names: list[str]) -> None:
    """Write the kept tables again, those of some names or all."""
    scenarios = (*feature_scenarios.SCENARIOS, *write_scenarios.SCENARIOS, *type_scenarios.SCENARIOS)
    kept = [scenario for scenario in scenarios if scenario.kept]
    chosen = [scenario for scenario in kept if not names or scenario.name in names]
    with tempfile.TemporaryDirectory() as folder:
        spark = connector.session(jars())
        connector.write_all(spark, chosen, Path(folder) / "tables", Path(folder) / "expected")
        spark.stop()
        for scenario in chosen:
            connector.prune(Path(folder) / "tables" / scenario.name, scenario)
            _replace(Path(folder) / "tables" / scenario.name, DATA / "delta" / scenario.name)
            _replace(Path(folder) / "expected" / scenario.name, DATA / "expected" / "delta" / scenario.name)
            shutil.copy(Path(folder) / "expected" / f"{scenario.name}.json", DATA / "expected" / "delta")


def expect_sample() -> None:
    """Write what Delta reads of the sample."""
    spark = connector.session(jars())
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / SAMPLE.name
        shutil.copytree(SAMPLE, table)
        lake = connector.Lake(spark=spark, path=table)
        out = DATA / "expected" / "samples" / SAMPLE.name
        out.mkdir(parents=True, exist_ok=True)
        for version in lake.versions():
            text = json.dumps(connector.rows_at(lake, version), ensure_ascii=False)
            (out / f"{version}.json").write_text(text + "\n")
        text = json.dumps(connector.about(lake), ensure_ascii=False)
        (DATA / "expected" / "delta" / f"{SAMPLE.name}.json").write_text(text + "\n")
    spark.stop()


def jars() -> list[Path]:
    """Return the connector's jars, which lie beside the environment's own files."""
    return sorted(Path(sys.executable).parent.parent.joinpath("jars", "delta").glob("*.jar"))


def _replace(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if sys.argv[1:] == ["sample"]:
        expect_sample()
    else:
        keep(sys.argv[1:])
