"""Have Delta's connector write tables that use each feature we read, and random ones; and say what it reads of them.

    python delta_tables.py OUT [SEED] [NAME...]

Runs in the environment of .ci/oracles. Leaves `tables/NAME/`, `expected/NAME/VERSION.json` and `expected/NAME.json` as
`delta_lake` describes them, and `deltalake/NAME/VERSION.json` with what the library deltalake reads of them.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import delta_lake
import delta_random
import delta_rust
import delta_stories
import delta_types
import delta_writes


def main() -> None:
    """Write everything below the folder that the command line names."""
    out, seed, names = Path(sys.argv[1]), int((sys.argv[2:] or ["1"])[0]), sys.argv[3:]
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stories = (*delta_stories.STORIES, *delta_writes.STORIES, *delta_types.STORIES, *delta_random.stories(seed))
    chosen = [story for story in stories if not names or story.name in names]
    jars = sorted(Path(sys.executable).parent.parent.joinpath("jars", "delta").glob("*.jar"))
    spark = delta_lake.session(jars)
    delta_lake.write_all(spark, chosen, out / "tables", out / "expected")
    spark.stop()
    delta_rust.read_all(out / "tables", out / "deltalake")


if __name__ == "__main__":
    main()
