"""Mutate tables of both formats for some time, and show what is not answered or refused as it should be.

    python -m tests.robustness.mutate [--seconds 600] [--seed 0] [--workers 2] [--table paimon/dv]

Each mutated table gets every public call, in a forked process of limited memory. Prints the failures, each with the
seed that makes it again (`--seed N --count 1`), then one line of figures; the exit status is 1 if there was a failure.
"""

# ruff: noqa: T201 - it prints what it found
import argparse
import itertools
import sys
import tempfile
import time

from tests.support import mutations


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", action="append")
    given = parser.parse_args()
    seeds = itertools.count(given.seed) if given.count is None else range(given.seed, given.seed + given.count)
    with tempfile.TemporaryDirectory() as folder:
        until = time.monotonic() + given.seconds
        results = mutations.run(seeds, folder=folder, workers=given.workers, until=until, only=given.table)
    failures = mutations.failures(results)
    print("\n\n".join(failures))
    print(mutations.summary(results))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
