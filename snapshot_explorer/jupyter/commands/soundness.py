"""Is it sound? `%snapshot health`, `check`, `verify` and `orphans`."""

from collections.abc import Mapping
from typing import Any

from snapshot_explorer import formats
from snapshot_explorer.analysis.checks import CheckResult
from snapshot_explorer.analysis.health import Health
from snapshot_explorer.analysis.retention import LEVELS, Orphans, Verification
from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import REF, STORAGE_OPTIONS, dict_of, names_of, ref_of
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake import Lake, check, open_lake
from snapshot_explorer.results import Frame
from snapshot_explorer.results.outputs import output_file, output_path
from snapshot_explorer.table import Table, open_table


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


def _check(invocation: Invocation) -> CheckResult:
    """Return whether rules hold for a table or a lake, and write the requested files."""
    arguments = invocation.arguments
    files = {name: output_path(path) for name in ("markdown", "junit") if (path := arguments.get(name)) is not None}
    result = check(
        _target(invocation),
        arguments.get("fail-on"),
        since=arguments.get("since"),
        at=arguments.get("at"),
        key=names_of(arguments, "key"),
        config=arguments.get("config"),
    )
    for name, file in files.items():
        content = result.to_markdown() if name == "markdown" else result.to_junit()
        with output_file(file) as written:
            written.write(content.encode())
    return result


def _target(invocation: Invocation) -> Table | Lake:
    path = invocation.arguments.get("path")
    if path is None:
        return invocation.table()
    value = invocation.variables.get(path)
    if isinstance(value, Table | Lake):
        return value
    branch, table_format = (invocation.arguments.get(name) for name in ("branch", "format"))
    return _open_target(
        str(value) if isinstance(value, str) else path, branch, table_format, dict_of(invocation, "options")
    )


def _open_target(
    path: str, branch: str | None, table_format: str | None, storage_options: Mapping[str, Any] | None
) -> Table | Lake:
    """Return the table at a path, otherwise the lake of the tables below it. Only a table has a branch or a format."""
    try:
        return open_table(path, branch=branch, format=table_format, storage_options=storage_options)
    except TableNotFoundError as error:
        if branch or table_format:
            raise
        try:
            return open_lake(path, storage_options=storage_options)
        except TableNotFoundError:
            raise error from None


CHECK = Command(
    name="check",
    question="Is it sound?",
    summary="Whether rules hold for what happened recently",
    run=_check,
    python='check(orders, "late,anomaly,rows < 0.5 * previous", since="1d")',
    calls=(Call(verb="check", names={"target": ""}),),
    examples=(
        "%snapshot check",
        '%snapshot check s3://lake/shop.db --since 1d --fail-on late,anomaly,schema-change,"rows < 0.5 * previous"',
        "%snapshot check s3://lake/shop.db --config checks.toml --junit checks.xml --markdown checks.md",
    ),
    arguments=(
        Argument(
            "PATH",
            "a table, or a folder with tables; or a variable with either. By default the current table",
            value_type="path or table",
        ),
    ),
    options=(
        Option(
            "--fail-on RULES",
            "the rules, separated by commas: late, anomaly, schema-change, unreadable, duplicates, and "
            'conditions such as "rows < 0.5 * previous"; by default late,anomaly,unreadable',
        ),
        Option("--since TIME", "judge commits from this time on: 1d (the default), yesterday, 2026-11-01"),
        Option("--at TIME", "judge at this time; by default now"),
        Option(
            "--key A,B", "the columns that identify a row, for duplicates; by default the primary key, or all columns"
        ),
        Option("--branch B", "check this branch of the table at PATH"),
        Option("--format F", f"the format of the table at PATH: {formats.names()}"),
        Option("--config FILE", "a TOML file with rules and thresholds"),
        Option("--markdown FILE", "also write Markdown to this file"),
        Option("--junit FILE", "also write JUnit XML to this file"),
        STORAGE_OPTIONS,
        TABLE,
    ),
    notes="late: the newest commit that changes data is older than the table's own rhythm allows. anomaly: a number "
    "jumps. schema-change: the schema changed. unreadable: a version lacks files. duplicates: rows have the same key, "
    "which reads rows; the other rules read metadata. A condition must not hold; it names rows, files and bytes of the "
    "newest version, previous_rows, previous_files and previous_bytes of the last version before --since (previous for "
    "short), commits, added_rows and removed_rows since then, and age_hours. In a terminal, the exit status is 0 if "
    "all rules pass, 1 if one fails, and 2 if none fails but one could not be evaluated: what was not checked did not "
    "pass.",
)


def _verify(invocation: Invocation) -> Verification:
    """Return whether the data files of all versions exist, and are as the metadata records."""
    chosen = [level for level in LEVELS if invocation.arguments.has(level)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other. --bytes includes the others.")
    return invocation.table().verify(chosen[0] if chosen else "existence", resume=invocation.arguments.has("resume"))


VERIFY = Command(
    name="verify",
    question="Is it sound?",
    summary="Whether files exist, and which versions can be loaded",
    run=_verify,
    python='orders.verify("footers")',
    calls=(
        Call(verb="table.verify", defaults={"level": "existence"}),
        Call(verb="table.verify", flag="--footers", defaults={"level": "footers"}),
        Call(verb="table.verify", flag="--bytes", defaults={"level": "bytes"}),
    ),
    examples=("%snapshot verify", "%snapshot verify --footers", "v = %snapshot verify --bytes"),
    options=(
        Option("--existence", "check only that files exist with the recorded sizes; the default"),
        Option("--footers", "also read the footers of Parquet and ORC files, and compare their rows"),
        Option("--bytes", "also read each file and its deletes as a whole, with their checksums"),
        Option("--resume", "skip files that an earlier call, even an interrupted one, found in order"),
        TABLE,
    ),
    notes="Covers the files of every version of every branch, each once. v.files lists them, those with problems "
    "first; v.versions says which versions can be loaded, and why not. A sign per version, oldest first: + can be "
    "loaded, ~ only its metadata, - not at all, ? unknown. v.is_ok is true if everything was checked and nothing "
    "differs.",
)


def _orphans(invocation: Invocation) -> Orphans:
    """Return the files below the table's folder that no version, tag or branch names."""
    table, older_than = invocation.table(), invocation.arguments.get("older-than")
    return table.orphans() if older_than is None else table.orphans(older_than)


ORPHANS = Command(
    name="orphans",
    question="Is it sound?",
    summary="Files that no version, tag or branch names",
    run=_orphans,
    python='orders.orphans(older_than="3d")',
    calls=(Call(verb="table.orphans"),),
    examples=("%snapshot orphans", "%snapshot orphans --older-than 12h", "o = %snapshot orphans --older-than 0d"),
    options=(
        Option(
            "--older-than AGE",
            "the minimum age of the files, such as 12h or 3d, the default; longer than any commit takes",
        ),
        TABLE,
    ),
    notes="Deletes nothing, and shows the engine's own command. Lists each folder of the table once, then reads all "
    "metadata of all branches. o.files lists the files, with what the engine's clean-up would do; o.unread lists "
    "metadata that could not be read; if there is any, no file is called an orphan.",
)
