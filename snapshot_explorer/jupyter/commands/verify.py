"""`%snapshot verify`: whether the files of a table exist and are as recorded."""

from snapshot_explorer.analysis.retention import LEVELS, Verification
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.usage_error import UsageError


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
