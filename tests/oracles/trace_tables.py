"""Compare the trace of all tables below a folder with brute force, such as a folder of golden tables.

    python -m tests.oracles.trace_tables FOLDER [NAME]

Prints the outcome of each table, and how many there are of each; also for tables that cannot be opened, or have no
integers.
"""

import sys
import traceback
from collections import Counter
from pathlib import Path

from snapshot_explorer import find_tables, open_table
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.trace_answers import assert_trace_is_brute_force, column_and_values


def main():
    """Compare the tables whose path contains the name."""
    outcomes = Counter()
    for row in find_tables(sys.argv[1], depth=8).to_arrow().to_pylist():
        if sys.argv[2:] and sys.argv[2] not in row["path"]:
            continue
        outcome = _outcome(Path(row["path"]), row["format"])
        outcomes[row["format"], outcome] += 1
        sys.stdout.write(f"{outcome}: {row['path']}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{dict(outcomes)}\n")
    sys.exit(any(outcome == "wrong" for _, outcome in outcomes))


def _outcome(path, format_name):
    try:
        table = open_table(str(path), format=format_name)
        found = column_and_values(table)
        if found is None:
            return "no integers"
        outcomes = {_compared(path, table, found[0], value) for value in found[1]}
    except SnapshotExplorerError as error:
        return f"refused: {type(error).__name__}"
    except AssertionError:
        traceback.print_exc()
        return "wrong"
    return "complete" if outcomes == {True} else "incomplete"


def _compared(path, table, name, value):
    return assert_trace_is_brute_force(path, table, name, value).is_complete


if __name__ == "__main__":
    main()
