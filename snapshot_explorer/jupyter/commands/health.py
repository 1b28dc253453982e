"""`%snapshot health`: the health of a version."""

from snapshot_explorer.analysis.health import Health
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import REF, names_of, ref_of
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.results import Frame


def _health(invocation: Invocation) -> Health | Frame:
    """Return the symptoms of a table and the health of a version, or with `--over` the numbers of many versions."""
    over = invocation.arguments.get("over")
    if over is not None and invocation.arguments.get("ref") is not None:
        raise UsageError("REF and --over exclude each other. Use one version, or --over A..B for all of a range.")
    table = invocation.table()
    if over is not None:
        return table.health(between=over)
    ref, colon, reason = (expected := invocation.arguments.get("expect") or "").partition(":")
    if expected and not colon:
        raise UsageError(f'--expect needs a version and a reason, got {expected!r}. Example: "11: a backfill".')
    health = table.health(
        ref_of(invocation),
        metadata_only=invocation.arguments.has("metadata-only"),
        expect={ref.strip(): reason.strip()} if expected else None,
        config=invocation.arguments.get("config"),
        key=names_of(invocation.arguments, "key"),
    )
    for line in history_of(table).open_branch.expected[-1].to_toml().split("\n") if expected else ():
        invocation.show_line(line)
    return health


HEALTH = Command(
    name="health",
    question="Is it sound?",
    summary="What went wrong, and the health of a version",
    run=_health,
    python='orders.health(17); orders.health(between="10..latest")',
    calls=(Call(verb="table.health", names={"between": "--over"}),),
    examples=(
        "%snapshot health",
        "%snapshot health latest~10",
        "%snapshot health --over ..",
        '%snapshot health --expect "11: a backfill"',
        "%snapshot health --key order_id",
        "h = %snapshot health 17",
    ),
    arguments=(REF,),
    options=(
        Option("--over A..B", "the numbers at every version of a range, newest first; .. is all of them"),
        Option(
            '--expect "REF: REASON"',
            "a version whose findings are expected, such as 11: a backfill, for the rest of the session",
        ),
        Option("--config FILE", "a TOML file of check, for the versions that are expected"),
        Option(
            "--key A,B", "the columns that identify a row: also look for rows with the same values, which reads them"
        ),
        Option("--metadata-only", "look for no file, and read no other version"),
        TABLE,
    ),
    notes="First a sentence for each finding, with the command that shows the evidence: files that are missing, "
    "versions at which numbers jump, and doubled rows, of all versions, or with REF of that one. Then a verdict on "
    "the version, findings with their thresholds, and the engine's own commands to run; this package never runs them. "
    "h.findings, h.partitions and h.levels are frames. --expect shows the lines for the file of --config, which check "
    "reads too. Reads metadata and looks for every file; with --metadata-only, reads the metadata of the version "
    "alone. Reads no rows, but for --key.",
)
