"""Plan repairs and erasures in a process of the project's own environment, for the scripts beside this one.

A line of JSON on the standard input has the arguments of `Table.repair`, and what it returns is one on the output.
"""

import json
import sys

import snapshot_explorer as sx
from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        table = None if "erase" in asked else open_table(asked["path"])
        if table is None:
            trace = sx.open_lake(asked["path"]).trace(asked["erase"])
            erasure = trace.statements(asked["names"])
            answer = {"verdict": trace.verdict, "statements": dict(erasure.statements), "notes": list(erasure.notes)}
        elif "versions" in asked:
            versions = table.versions()
            before = versions[versions.index(asked["before"]) - 1] if "before" in asked else None
            answer = {"newest": versions[-1], "before": before}
        elif "merge" in asked:
            answer = brought(table, asked)
        elif "check" in asked:
            answer = table.diff_rows(*asked["check"], where=asked["where"], key=asked["key"]).is_empty
        else:
            answer = planned(table, asked)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def planned(table, asked):
    """Return a plan as JSON: the statements and the numbers of rows, or the reason why there is none."""
    try:
        plan = table.repair(
            asked.get("to"), asked["where"], undo=asked.get("undo"), key=asked["key"], name=asked["name"]
        )
    except SnapshotExplorerError as error:
        return {"refused": str(error)}
    return {
        "statements": plan.statements,
        "counts": plan.counts,
        "to": plan.to,
        "undone": plan.undone,
        "now": plan.version,
        "left": plan.left_counts,
    }


def brought(table, asked):
    """Return the statements of a three-way diff as JSON, or the reason why there are none."""
    base, theirs = map(table.at, asked["merge"])
    diff = sx.diff3(base, table.at("latest"), theirs, key=["id"])
    try:
        text = diff.merge_statement(asked["name"]).statement
    except SnapshotExplorerError as error:
        return {"refused": str(error)}
    kinds = diff.incoming.column(0).to_pylist()
    return {
        "statements": text.split(";\n\n") if text else [],
        "counts": {name: kinds.count(kind) for name, kind in zip(KINDS, ("+I", "+U", "-D"), strict=True)},
        "undone": None,
        "versions": [base.version, theirs.version],
    }


KINDS = ("inserted", "updated", "deleted")


if __name__ == "__main__":
    main()
