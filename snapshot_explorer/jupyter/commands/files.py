"""`%snapshot files`: the live data files of a version, or how a read of it uses them."""

from collections.abc import Mapping

from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import (
    REF,
    WHERE,
    check_options,
    snapshot_of,
    where_of,
    without_quotes,
)
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.results import Frame


def _files(invocation: Invocation) -> Frame:
    """Return the live files of a version, or the plan of a read: the files that it reads and skips."""
    arguments = invocation.arguments
    flag = "where" if arguments.has("where") else "plan"
    check_options(arguments, flag, never_with=("partition",))
    snapshot = snapshot_of(invocation)
    if arguments.has(flag):
        return snapshot.plan(where_of(invocation, snapshot))
    return snapshot.files(_partition(arguments.repeated.get("partition", ())))


def _partition(texts: tuple[str, ...]) -> Mapping[str, str | None] | None:
    """Return `k=v` texts, possibly joined by `/`, as a mapping. `k=null` is the null partition."""
    partition: dict[str, str | None] = {}
    for text in (part for whole in texts for part in whole.split("/")):
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--partition must be column=value, got {text!r}. Example: --partition dt=2026-01-01.")
        partition[name] = None if value == "null" else without_quotes(value)
    return partition or None


FILES = Command(
    name="files",
    question="What is stored, and what does it cost?",
    summary="Data files live at a version, or opened by a read",
    run=_files,
    python='orders.at(17).files({"dt": "2026-01-01"}); orders.at(17).plan(where="amount > 10")',
    calls=(
        Call(verb="snapshot.files"),
        Call(verb="snapshot.plan", flag="--plan"),
    ),
    examples=(
        "%snapshot files 17",
        "%snapshot files --partition dt=2026-01-01 --partition hr=3",
        '%snapshot files 17 --where "amount > 10"',
        "%snapshot files 17 --plan",
    ),
    arguments=(REF,),
    options=(
        Option(
            "-p, --partition COLUMN=VALUE",
            "only files of this partition; repeatable, or joined by /. COLUMN=null is the null partition",
            repeated=True,
        ),
        Option(
            WHERE.spelling,
            "the plan of a read with this condition: the files that it opens, and those it skips",
        ),
        Option("--plan", "the plan of a read of all rows"),
        TABLE,
    ),
    notes="A plan has one row per split that is read, and one per partition, bucket and reason for files that are "
    "skipped: partition, bucket, key range or statistics of a column. Reads metadata only.",
)
