"""`%snapshot usage`: who holds the bytes of a table."""

from snapshot_explorer.analysis.usage import BY, Usage
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import PRICE, price_of


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
