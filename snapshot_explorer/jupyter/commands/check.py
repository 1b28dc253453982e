"""`%snapshot check`: rules on recent commits, for scripts and CI."""

from collections.abc import Mapping
from typing import Any

from snapshot_explorer import formats
from snapshot_explorer.analysis.checks import CheckResult
from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import STORAGE_OPTIONS, dict_of, names_of
from snapshot_explorer.lake import Lake, check, open_lake
from snapshot_explorer.results.outputs import output_file, output_path
from snapshot_explorer.table import Table, open_table


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
