"""What is stored, and what does it cost? `%snapshot files`, `manifests`, `inspect`, `retention` and `usage`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from snapshot_explorer.analysis.retention import Retention
from snapshot_explorer.analysis.usage import BY, Usage
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import (
    PRICE,
    REF,
    WHERE,
    check_options,
    price_of,
    snapshot_of,
    where_of,
    whole_number,
    without_quotes,
)
from snapshot_explorer.jupyter.limits import show_read_size
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    import plotly.graph_objects as go


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


def _manifests(invocation: Invocation) -> Frame:
    """Return the manifests of a version, or the entries of the named one."""
    manifest = invocation.arguments.get("entries")
    snapshot = snapshot_of(invocation)
    return snapshot.manifests() if manifest is None else snapshot.entries(manifest)


MANIFESTS = Command(
    name="manifests",
    question="What is stored, and what does it cost?",
    summary="Manifests: base, delta, changelog, index",
    run=_manifests,
    python='orders.at(17).manifests(); orders.at(17).entries("manifest-5d3f-0")',
    calls=(
        Call(verb="snapshot.manifests"),
        Call(verb="snapshot.entries", names={"manifest": "--entries"}),
    ),
    examples=(
        "%snapshot manifests 17",
        "%snapshot manifests 17 --entries manifest-5d3f-0",
        "%snapshot manifests --entries 0017.json",
        "m = %snapshot manifests latest^",
    ),
    arguments=(REF,),
    options=(
        Option(
            "--entries NAME",
            "the data files that one of the manifests adds and removes: its path as listed, its name, or an "
            "unambiguous suffix",
        ),
        TABLE,
    ),
    notes="For Delta, base is the checkpoint of the version, and delta the commits after it; with --entries, a "
    "manifest is a commit, a checkpoint file or a sidecar, and a remove in a checkpoint is a tombstone: the file was "
    "removed before. For Iceberg, base has the manifests of earlier commits, delta the manifests of the version's own "
    "commit, and index the manifests of delete files.",
)


def _inspect(invocation: Invocation) -> "Frame | go.Figure":
    """Return a system table or its figure, or without a name their list; a table of rows is limited like `load`."""
    name, table = invocation.named_table()
    system_table, ref = invocation.arguments.get("name"), invocation.arguments.get("ref")
    if system_table is None:
        return table.inspect()
    if any(
        inspection.name == system_table and inspection.of_rows
        for inspection in history_of(table).table_format.inspections
    ):
        snapshot = table.update() if ref is None else table.at(ref)
        if snapshot.version is not None:
            show_read_size(invocation, name, snapshot, None, ways="Add --yes to read them all")
    frame = table.inspect(system_table, ref)
    return frame.picture() if invocation.arguments.has("picture") else frame


INSPECT = Command(
    name="inspect",
    question="What is stored, and what does it cost?",
    summary="A table of metadata, under the format's own name",
    run=_inspect,
    python='orders.inspect("files", 17)',
    calls=(Call(verb="table.inspect"),),
    examples=(
        "%snapshot inspect files 17",
        "%snapshot inspect",
        "%snapshot inspect history",
        "p = %snapshot inspect partitions",
        "%snapshot inspect audit_log 17",
        "%snapshot inspect timeline --picture",
    ),
    arguments=(
        Argument(
            "NAME",
            "the metadata table; without it, the metadata tables of the open table are listed",
            value_type="inspection",
        ),
        Argument("REF", "the version, for tables that describe one; by default latest", value_type="ref"),
    ),
    options=(
        Option("-p, --picture", "as a figure, with a table beside it: timeline and file_groups of Hudi have one"),
        Option("-y, --yes", "read all rows, whatever their number"),
        TABLE,
    ),
    notes="Columns, types and texts match SELECT * FROM orders$files in Paimon, where times without zone are UTC, "
    "DESCRIBE HISTORY and DESCRIBE DETAIL in Delta, and orders.files in Iceberg. The timeline of Hudi shows which "
    "actions were requested, are running, completed or were rolled back, how long each ran and which ran at the "
    "same time; file_groups shows when each file slice was live, and its log files. Tables with rows cost as much "
    "as load and have the same limits; they show the first rows and return all.",
)


def _retention(invocation: Invocation) -> Retention:
    arguments = invocation.arguments
    last = arguments.get("keep-last")
    keep_last = None if last is None else whole_number("--keep-last", last, minimum=1)
    return invocation.table().retention(arguments.get("keep"), keep_last=keep_last)


RETENTION = Command(
    name="retention",
    question="What is stored, and what does it cost?",
    summary="What expiry would delete, and what keeps the rest",
    run=_retention,
    python='orders.retention(keep="7d", keep_last=10)',
    calls=(Call(verb="table.retention"),),
    examples=(
        "%snapshot retention",
        "%snapshot retention --keep 7d --keep-last 10",
        "r = %snapshot retention --keep 0d --keep-last 1",
    ),
    options=(
        Option("--keep AGE", "keep versions up to this age, such as 7d or 36h; by default the table's setting"),
        Option("--keep-last N", "keep at least this many of the newest versions; by default the table's setting"),
        TABLE,
    ),
    notes="Deletes nothing, and shows the engine's own command: sys.expire_snapshots of Paimon, VACUUM of Delta, "
    "system.expire_snapshots of Iceberg. r.versions, r.unloadable, r.freed and r.holders are frames, r.commands the "
    "commands.",
)


def _usage(invocation: Invocation) -> Usage:
    arguments = invocation.arguments
    without = arguments.repeated.get("without")
    return invocation.table().usage(
        arguments.get("by") or BY[0],
        without=without,
        to_free=arguments.get("to-free"),
        price=price_of(arguments),
        everything=arguments.has("everything"),
        where=arguments.repeated.get("where"),
    )


USAGE = Command(
    name="usage",
    question="What is stored, and what does it cost?",
    summary="Which versions, tags and branches hold which bytes",
    run=_usage,
    python='orders.usage("version", without="1..8")',
    calls=(Call(verb="table.usage", names={"to_free": "--to-free"}),),
    examples=(
        "%snapshot usage",
        "%snapshot usage --by version",
        "%snapshot usage --without 1..8 --without tag:v1",
        "%snapshot usage --to-free 50kB --price gb_month=0.02,read=0.0004",
    ),
    options=(
        Option(
            "--by GROUP",
            "what files are grouped by: holder, version, commit, operation, user, day, partition or size; "
            "time: live and held bytes at each version; column: compressed bytes, from the footers of the live files",
        ),
        Option(
            "--without REF",
            "what would be freed without this: a version, a range A..B, a tag (tag:v1) or a branch (branch:dev)",
            repeated=True,
        ),
        Option(
            "--to-free SIZE", "the mildest expiry that frees at least this, such as 500MB, with the engine's command"
        ),
        PRICE,
        Option("--everything", "also count all other files by kind, such as metadata: lists every folder"),
        Option('--where "SQL"', "with --by time: what such a condition would have read at each version", repeated=True),
        TABLE,
    ),
    notes="Counts each data file once, from metadata, and deletes nothing. u.summary, u.groups and u.removal.freed are "
    "frames. What the engine's own expiry would delete is in %snapshot retention.",
)
