"""Have Paimon's Java core write the tables of `paimon_histories.py`, and the newest one read them.

    python paimon_write.py OUT RELEASE SEED [NAME...]

RELEASE is 1.4 or 0.9: a folder `jars/paimon-RELEASE` of the environment. Writes `OUT/tables/NAME/`, `OUT/skipped.json`
(the steps of histories that Paimon refused) and, in a process of its own, what `paimon_read.py` says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "data")]

import paimon_core  # noqa: E402
from paimon_histories import TABLES  # noqa: E402
from paimon_story import Story  # noqa: E402
from paimon_values import Dice  # noqa: E402


def main() -> None:
    """Write the tables."""
    out, release, seed, *names = sys.argv[1:]
    skipped = {}
    core = paimon_core.Core(Path(sys.prefix) / "jars" / f"paimon-{release}", Path(out))
    Path(out, "tables").symlink_to(core.warehouse / "d.db")
    for name, table in TABLES.items():
        if release in table.releases and (not names or name in names):
            story = Story(core, name, Dice(f"{seed} {release} {name}"), release)
            story.attempt("the whole history", lambda table=table, story=story: table.fill(story))
            skipped[name] = story.skipped
    Path(out, "skipped.json").write_text(json.dumps(skipped, indent=1))
    subprocess.run([sys.executable, HERE / "paimon_read.py", out], check=True)


if __name__ == "__main__":
    main()
