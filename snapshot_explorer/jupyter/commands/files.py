"""`%snapshot files`: the live data files of a version."""

from collections.abc import Mapping

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import REF, snapshot_of, without_quotes
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.results import Frame


def _files(invocation: Invocation) -> Frame:
    return snapshot_of(invocation).files(_partition(invocation.arguments.repeated.get("partition", ())))


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
    summary="Data files that are live at a version",
    run=_files,
    python='orders.at(17).files({"dt": "2026-01-01"})',
    examples=("%snapshot files 17", "%snapshot files --partition dt=2026-01-01 --partition hr=3"),
    arguments=(REF,),
    options=(
        Option(
            flags=("-p", "--partition"),
            metavar="COLUMN=VALUE",
            value_type="partition",
            repeated=True,
            meaning="only files of this partition; repeatable, or joined by /. COLUMN=null is the null partition",
        ),
        TABLE,
    ),
)
