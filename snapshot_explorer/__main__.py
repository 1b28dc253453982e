"""`python -m snapshot_explorer PATH`: a table's card and log in a terminal."""

import argparse
import sys
from collections.abc import Sequence

from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.opening import open_table

_DRAWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table's card and its newest commits, and return the exit status: 2 where the table cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m snapshot_explorer",
        description="Show what a Paimon, Delta or Iceberg table is and what its newest commits did. Only reads.",
    )
    parser.add_argument("path", metavar="PATH", help="the table's folder, or a URL such as s3://lake/shop.db/orders")
    parser.add_argument("--branch", metavar="B", help="the branch; the main one without it")
    parser.add_argument("--format", metavar="F", help="paimon, delta or iceberg; detected without it")
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=_DRAWN, help="the most commits (20)")
    given = parser.parse_args(arguments)
    try:
        table = open_table(given.path, branch=given.branch, format=given.format)
        log = table.history(limit=given.limit)
    except SnapshotExplorerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{table}\n\n{log}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
