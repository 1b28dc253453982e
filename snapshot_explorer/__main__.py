"""`python -m snapshot_explorer PATH`: a table's card and log in a terminal, or the tables below a folder."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from snapshot_explorer.discovery import find_tables
from snapshot_explorer.errors import SnapshotExplorerError, TableNotFoundError
from snapshot_explorer.opening import open_table
from snapshot_explorer.render import Pairs, text
from snapshot_explorer.table import Table

_DRAWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table's card and its newest commits, and return the exit status: 2 where the table cannot be read.

    Of a folder that is no table the tables below it are printed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m snapshot_explorer",
        description="Show what a Paimon, Delta or Iceberg table is and what its newest commits did, "
        "or which tables are below a folder. Only reads.",
    )
    parser.add_argument(
        "path", metavar="PATH", help="the table's folder, one above it, or a URL such as s3://lake/shop.db"
    )
    parser.add_argument("--branch", metavar="B", help="the branch; the main one without it")
    parser.add_argument("--format", metavar="F", help="paimon, delta or iceberg; detected without it")
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=_DRAWN, help="the most commits (20)")
    given = parser.parse_args(arguments)
    try:
        table = open_table(given.path, branch=given.branch, format=given.format)
        table.read_overview()
        shown = f"{_card(table)}\n\n{table.history(limit=given.limit)}"
    except SnapshotExplorerError as error:
        below = _tables_below(given.path) if isinstance(error, TableNotFoundError) else None
        if below is None:
            sys.stderr.write(f"{error}\n")
            return 2
        shown = below
    sys.stdout.write(f"{shown}\n")
    return 0


def _tables_below(path: str) -> str | None:
    try:
        found = find_tables(path)
    except SnapshotExplorerError:
        return None
    return str(found) if found.num_rows else None


def _card(table: Table) -> str:
    """Return the card of a table as text, without the commands of notebooks that may come next."""
    card = table.drawing()
    rows = [row for part in card.parts if isinstance(part, Pairs) for row in part.rows if row[0] != "next"]
    return text(replace(card, parts=(Pairs(tuple(rows)),)))


if __name__ == "__main__":
    sys.exit(main())
