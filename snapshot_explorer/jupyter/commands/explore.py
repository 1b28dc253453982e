"""`%snapshot explore`: the explorer, a widget, or one file that works without a kernel."""

from contextlib import closing
from typing import Any

from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import check_options, whole_number
from snapshot_explorer.jupyter.help_text import HelpText

FOLLOW = Option("--follow", "look for new commits every few seconds, as %snapshot watch does")


def _explore(invocation: Invocation) -> object:
    from snapshot_explorer.jupyter.explorer import explore as explorer_of  # noqa: PLC0415 - widgets take long to import

    arguments = invocation.arguments
    check_options(arguments, "html", only_with=("versions", "overwrite"), never_with=("follow", "save-page"))
    versions: dict[str, Any] = {}
    if (number := arguments.get("versions")) is not None:
        versions["versions"] = whole_number("--versions", number, minimum=1)
    name, table = invocation.named_table()
    explorer = explorer_of(table, name=name, save_page=arguments.has("save-page"))
    if (file := arguments.get("html")) is not None:
        with closing(explorer):
            target = explorer.to_html(file, overwrite=arguments.has("overwrite"), **versions)
        return HelpText(f"Wrote {target}, {target.stat().st_size / 1000:,.0f} kB.")
    explorer.state.follow = arguments.has("follow")
    return explorer


EXPLORE = Command(
    name="explore",
    question="What is there?",
    summary="The explorer: timeline, comparison, rows, files",
    run=_explore,
    python="snapshot_explorer.explore(orders)",
    calls=(Call(verb="explore", names={"table": ""}),),
    examples=(
        "%snapshot explore",
        "e = %snapshot explore -t orders",
        "%snapshot watch",
        "%snapshot explore --html orders.html",
    ),
    options=(
        FOLLOW,
        Option("--save-page", "save the page of --html with the notebook: the explorer then works without a kernel"),
        Option("--html FILE", "write it into one file that works without Python"),
        Option("--versions N", "with --html: the number of newest versions that can be looked into, by default 50"),
        Option("--overwrite", "with --html: replace the file if it exists"),
        TABLE,
    ),
    notes="A timeline with markers A and B, and views of the commit, manifests, differences, rows, files, "
    "branches and health, each with the equivalent line of Python. Compare shows the rows that differ, Data blames "
    "rows and bisects a condition, Files has the lives of all files and what changed in each partition. "
    "Works by keyboard; e.state controls it from code, "
    "e.wait() waits for pending reads, e.close() ends it. Without widgets it is a table and a picture. "
    "--html writes a page of at most 2 MB that needs neither Python nor network, with what it recorded of the commits, "
    "of the newest versions, and of pairs of them. It cannot be written into the folder of a table.",
)
