"""Write the tables that are kept in tests/data/delta, and what Delta reads of them, with Delta itself.

    .venv-oracles/bin/python tests/data/make_delta.py [NAME...]

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

import delta_lake
import delta_stories
import delta_types
import delta_writes

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "snapshot_explorer" / "samples" / "payments"


def keep(names: list[str]) -> None:
    """Write the kept tables again, those of some names or all."""
    stories = [story for story in (*delta_stories.STORIES, *delta_writes.STORIES, *delta_types.STORIES) if story.kept]
    chosen = [story for story in stories if not names or story.name in names]
    with tempfile.TemporaryDirectory() as folder:
        spark = delta_lake.session(jars())
        delta_lake.write_all(spark, chosen, Path(folder) / "tables", Path(folder) / "expected")
        spark.stop()
        for story in chosen:
            delta_lake.prune(Path(folder) / "tables" / story.name, story)
            _replace(Path(folder) / "tables" / story.name, HERE / "delta" / story.name)
            _replace(Path(folder) / "expected" / story.name, HERE / "expected" / "delta" / story.name)
            shutil.copy(Path(folder) / "expected" / f"{story.name}.json", HERE / "expected" / "delta")


def expect_sample() -> None:
    """Write what Delta reads of the sample."""
    spark = delta_lake.session(jars())
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / SAMPLE.name
        shutil.copytree(SAMPLE, table)
        lake = delta_lake.Lake(spark=spark, path=table)
        out = HERE / "expected" / "samples" / SAMPLE.name
        out.mkdir(parents=True, exist_ok=True)
        for version in lake.versions():
            text = json.dumps(delta_lake.rows_at(lake, version), ensure_ascii=False)
            (out / f"{version}.json").write_text(text + "\n")
        text = json.dumps(delta_lake.about(lake), ensure_ascii=False)
        (HERE / "expected" / "delta" / f"{SAMPLE.name}.json").write_text(text + "\n")
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
