"""Readers of a table that a writer changes as fast as it can: every answer is a version that existed, or says why not.

    python tests/benchmarks/live.py [--minutes 5] [--format delta|iceberg|paimon|all] [--readers 4] [--pause 0]
        [--writer PYTHON SCRIPT]

A process of its own commits, compacts, checkpoints, expires and vacuums; threads open the table, update it, load,
count and compare versions, read history, lifetimes, changes, readability and retention, compare it with another table,
trace rows, verify files and find orphans, and check each answer against what the writer noted before it committed.
Prints what was right, the errors of the table's own, and what was wrong; ends with 1 if anything was, or if threads or
files stay open. `--writer` names another writer, such as that of tests/oracles/live_deltalake.py, which takes what
tests/support/live.py takes.
"""

# ruff: noqa: T201 - it prints what it measured

import argparse
import logging
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.live_readers import read_live

FORMATS = ("delta", "iceberg", "paimon")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--format", choices=(*FORMATS, "all"), default="all")
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--writer", nargs=2)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    wrong = []
    for kind in FORMATS if asked.format == "all" else (asked.format,):
        found = read_live(
            kind, seconds=asked.minutes * 60, readers=asked.readers, pause=asked.pause, command=asked.writer
        )
        print(f"{kind}: {found['commits']:,} commits, {found['right'].total():,} right answers,", end=" ")
        print(f"{found['errors'].total():,} errors that say what vanished, {len(found['wrong']):,} wrong")
        for name, times in found["right"].most_common():
            print(f"  {times:,} x {name}")
        for name, times in found["errors"].most_common():
            print(f"  {times:,} x {name}, such as: {found['said'][name][:200]}")
        print(f"  threads and open files: {found['before']} before, {found['after']} after")
        wrong += [f"{kind}: {sentence}" for sentence in found["wrong"]]
        wrong += [f"{kind}: threads or files stay open"] if found["after"] > found["before"] else []
    print("\n".join(wrong) if wrong else "RIGHT: every answer is a version that existed, or says what vanished.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
