"""Have Paimon's Java core write the tables of `paimon_histories.py`, and the newest one read them.

    python -m tests.oracles.paimon_write OUT RELEASE SEED [NAME...]

RELEASE is 1.4 or 0.9: a folder `jars/paimon-RELEASE` of the environment. Writes `OUT/tables/NAME/`, `OUT/skipped.json`
(the steps of histories that Paimon refused) and, in a process of its own, what `paimon_read.py` says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.oracles import paimon_core
from tests.support.oracles.paimon_histories import TABLES
from tests.support.oracles.paimon_scenario import Scenario
from tests.support.oracles.paimon_values import Dice


def main() -> None:
    """Write the tables."""
    out, release, seed, *names = sys.argv[1:]
    skipped = {}
    core = paimon_core.Core(Path(sys.prefix) / "jars" / f"paimon-{release}", Path(out))
    Path(out, "tables").symlink_to(core.warehouse / "d.db")
    for name, table in TABLES.items():
        if release in table.releases and (not names or name in names):
            scenario = Scenario(core, name, Dice(f"{seed} {release} {name}"), release)
            scenario.attempt("the whole history", lambda table=table, scenario=scenario: table.fill(scenario))
            skipped[name] = scenario.skipped
    Path(out, "skipped.json").write_text(json.dumps(skipped, indent=1))
    subprocess.run([sys.executable, "-m", "tests.oracles.paimon_read", out], check=True)


if __name__ == "__main__":
    main()
