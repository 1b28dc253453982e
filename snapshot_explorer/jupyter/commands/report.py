"""`%snapshot report`: one HTML file to hand over."""

from pathlib import Path

from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import RANGE, WHERE
from snapshot_explorer.jupyter.help_text import HelpText
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.view.reports import report


def _report(invocation: Invocation) -> HelpText:
    """Write a report on a table, or on the results in variables, and return its path."""
    arguments = invocation.arguments
    file, overwrite, title = arguments.get("file") or "", arguments.has("overwrite"), arguments.get("title")
    names = arguments.get("of")
    if names is None:
        between, where = arguments.get("a..b"), arguments.get("where")
        target = report(file, invocation.table(), between=between, where=where, title=title, overwrite=overwrite)
    else:
        alone = next((name for name in ("a..b", "where") if arguments.get(name) is not None), None)
        if alone is not None:
            shown = "A..B" if alone == "a..b" else f"--{alone}"
            raise UsageError(f"{shown} is for a report on one table. Leave it out.")
        results = [_result(invocation, name.strip()) for name in names.split(",")]
        target = report(file, *results, title=title, overwrite=overwrite)
    return HelpText(f"Wrote {target}, {Path(target).stat().st_size / 1000:,.0f} kB.")


def _result(invocation: Invocation, name: str) -> object:
    if name not in invocation.variables:
        raise UsageError(f"--of names variables with results, and {name!r} is none. Example: --of b,orders.")
    return invocation.variables[name]


REPORT = Command(
    name="report",
    question="Load, query, report",
    summary="One HTML file to hand over",
    run=_report,
    python='report("night.html", orders, between="7..8", where="order_id = 42")',
    calls=(Call(verb="report", names={"path": "FILE"}),),
    examples=(
        "%snapshot report night.html",
        '%snapshot report night.html 7..8 --where "order_id = 42"',
        "%snapshot report night.html --of b,lake --overwrite",
    ),
    arguments=(
        Argument("FILE", "the file, on the local disk", value_type="text", required=True),
        RANGE,
    ),
    options=(
        WHERE,
        Option("--of VARIABLES", "the results in these variables, instead of the table"),
        Option("--title TEXT", "the heading; by default the first part's"),
        Option("--overwrite", "replace the file if it exists"),
        TABLE,
    ),
    notes="The file contains the table's card, a picture of its commits and the newest of them; with A..B also the "
    "comparison of the two versions and the rows that differ, with --where the history of the rows of a condition. It "
    "names the code that was run and what was not read, needs no network, and has no script. It cannot be written into "
    "the folder of a table.",
)
