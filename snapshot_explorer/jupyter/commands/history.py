"""What happened? `%snapshot log`, `show`, `tags` and `branches`."""

from typing import TYPE_CHECKING, get_args

from snapshot_explorer.arrow.value_text import MINUS
from snapshot_explorer.core.records import Measure, TableSchema
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.command import TABLE, Arguments, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import RANGE, REF, check_options, snapshot_of, whole_number
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.table import Snapshot

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from snapshot_explorer.results import Frame


PICTURE_COMMITS = 10_000
"""Commits that a picture reads without `-n`."""


def _log(invocation: Invocation) -> "Frame | go.Figure":
    """Return the commits, newest first, or their picture."""
    arguments = invocation.arguments
    check_options(arguments, "picture", only_with=("measure",), never_with=("stat",))
    is_picture, measure = arguments.has("picture"), _measure(arguments)
    text = arguments.get("limit")
    default = PICTURE_COMMITS if is_picture else invocation.settings.display_limit
    limit = default if text is None else whole_number("-n", text, also="all")
    table = invocation.table()
    frame = table.history(
        arguments.get("a..b"),
        limit=limit,
        kind=arguments.get("kind"),
        operation=arguments.get("operation"),
        user=arguments.get("user"),
        since=arguments.get("since"),
        until=arguments.get("until"),
        text=arguments.get("grep"),
        maintenance=not arguments.has("no-maintenance"),
        stat=arguments.has("stat"),
        anomalies=arguments.has("anomalies"),
        recorded_times=arguments.has("recorded-times"),
        exact=arguments.has("exact"),
    )
    if note := history_of(table).table_format.clock.copied_note(frame.to_arrow()):
        invocation.show_once(note)
    if is_picture:
        return frame.picture(y=measure)
    if text is not None:
        frame.limit = limit
    return frame


def _measure(arguments: Arguments) -> str:
    measure = arguments.get("measure") or "rows"
    if measure not in get_args(Measure):
        measures = ", ".join(get_args(Measure))
        raise UsageError(f"--measure must be one of {measures}, got {measure!r}. Example: --picture --measure files.")
    return measure


LOG = Command(
    name="log",
    question="What happened?",
    summary="Commits, newest first, or as a figure",
    run=_log,
    python='orders.history("A..B", limit=20, kind="compact", since="@3d", text="...")',
    calls=(Call(verb="table.history", names={"between": "A..B", "text": "--grep", "maintenance": "--no-maintenance"}),),
    examples=(
        "%snapshot log",
        "%snapshot log 10..latest --kind compact -n all",
        "%snapshot log --since @2026-11-01 --grep nightly",
        "%snapshot log --picture",
        "%snapshot log 100..200 --picture --measure files",
        "%snapshot log --picture --since @7d --no-maintenance --anomalies",
        "%snapshot log --exact -n 5",
        "h = %snapshot log -t orders -n 100",
    ),
    arguments=(RANGE,),
    options=(
        Option(
            "-n, --limit N",
            "the number of commits, or all; by default the setting display_limit (20), and with --picture "
            f"{PICTURE_COMMITS:,}",
        ),
        Option("--kind K", "only commits of a kind, such as compact"),
        Option("--operation WORD", "only commits with this operation of the writer, such as MERGE"),
        Option("--user TEXT", "only commits of a user whose recorded name contains the text", own_type="user"),
        Option("--since TIME", "only commits at or after a time: 2026-11-01, 3d, yesterday"),
        Option("--until TIME", "only commits at or before a time"),
        Option("--grep TEXT", "only commits whose stored details contain the text"),
        Option("--no-maintenance", "hide commits that change no data, such as compact"),
        Option("--stat", "show the files, rows and bytes that each commit added and removed"),
        Option("--anomalies", "mark what jumps at each version: rows, files, a null rate, a range"),
        Option(
            "--recorded-times",
            "show and order by the times that Delta's writers recorded: after a copy, file times differ",
        ),
        Option(
            "--exact",
            "count the rows that each commit changed also where metadata does not: reads the rows that differ",
        ),
        Option("-p, --picture", "as a figure, with a table beside it"),
        Option("--measure WHAT", "with --picture: what the bars show, rows, files or bytes"),
        TABLE,
    ),
    notes="Reads only the commits that it returns, unless it filters by kind or text. Rows are those that a commit "
    f"inserted (+), deleted ({MINUS}) and updated, as its writer recorded them or as its files prove; rows that it "
    "only moved to other files are rewritten. A net change is the difference of the rows in files, where nothing else "
    "is known. Rows that readers merge by a key, and rows that equality deletes remove, are not counted without "
    "--exact. --stat shows the rows in files, without those that deletion vectors delete. In the picture, bars above "
    "the axis show what a commit inserted or updated, bars below what it deleted or updated, by kind; thin gray ones "
    "are rows that it only rewrote, and the line is the total. Tags are flags, dotted lines are new schemas; versions "
    "on gray can no longer be loaded. --anomalies marks versions where a number jumps, with the rule on hover and "
    "below the table; it reads the statistics of all files. Without figures, only the table is shown. In Python, "
    'orders.history(limit=10_000).picture(y="rows") is the picture, a plotly figure.',
)


def _show(invocation: Invocation) -> Snapshot | TableSchema:
    """Return a version, or its schema; the newest schema exists before the first commit."""
    if not invocation.arguments.has("schema"):
        return snapshot_of(invocation)
    if invocation.arguments.get("ref") is not None:
        return snapshot_of(invocation).schema
    return invocation.table().update(staleness_acceptable=True).schema


SHOW = Command(
    name="show",
    question="What happened?",
    summary="One version: its commit, files and schema",
    run=_show,
    python="orders.at(17); orders.at(17).schema",
    calls=(Call(verb="table.at"),),
    examples=(
        "%snapshot show 17",
        "%snapshot show latest~2",
        "%snapshot show orders@tag:v1",
        "%snapshot show 17 --schema",
    ),
    arguments=(REF,),
    options=(Option("--schema", "only columns, types and keys"), TABLE),
)


TAGS = Command(
    name="tags",
    question="What happened?",
    summary="Tags and the versions they name",
    run=lambda invocation: invocation.table().tags(),
    python="orders.tags()",
    calls=(Call(verb="table.tags"),),
    examples=("%snapshot tags",),
    options=(TABLE,),
    notes="Delta tables have none.",
)


def _branches(invocation: Invocation) -> "Frame | go.Figure":
    frame = invocation.table().branches()
    return frame.picture() if invocation.arguments.has("picture") else frame


BRANCHES = Command(
    name="branches",
    question="What happened?",
    summary="Branches other than the main one, and where they begin",
    run=_branches,
    python="orders.branches()",
    calls=(Call(verb="table.branches"),),
    examples=("%snapshot branches", "%snapshot branches --picture"),
    options=(
        Option("-p, --picture", "as a graph: a lane of commits for each branch, with tags"),
        TABLE,
    ),
    notes_in_notebooks="Open a branch with %snapshot open PATH --branch B.",
    notes="forked_version is the version of this table with the first commit of the branch; null if none is "
    "proven. Delta and Hudi tables have no branches; their graph has one lane.",
)
