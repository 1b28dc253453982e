"""The commands of `%snapshot`. A new command is one entry here and one function in `actions`."""

from collections.abc import Sequence
from difflib import get_close_matches

from IPython.core.error import UsageError

from snapshot_explorer.jupyter import actions
from snapshot_explorer.jupyter.comparing import DIFF, HEALTH, READABILITY, REF, RETENTION
from snapshot_explorer.jupyter.grammar import TABLE, Argument, Call, Command, Option
from snapshot_explorer.jupyter.manual import Manual, manual, overview

_WHERE = Option(flags=("--where",), value='"SQL"', meaning="only rows for which the condition is true")
_RANGE = Argument(name="A..B", holds="range", meaning="from one version to another, both included; either may miss")
_FILTERS = (
    Option(flags=("--kind",), value="K", holds="kind", meaning="only commits of a kind, such as compact"),
    Option(flags=("--operation",), value="WORD", meaning="only commits with this word of the writer's, as MERGE"),
    Option(flags=("--user",), value="TEXT", meaning="only commits of a user whose recorded name holds the text"),
    Option(flags=("--since",), value="@TIME", meaning="only commits at or after a time: @2026-11-01, @3d"),
    Option(flags=("--until",), value="@TIME", meaning="only commits at or before a time"),
    Option(flags=("--grep",), value="TEXT", meaning="only commits whose stored details hold the text"),
    Option(flags=("--no-maintenance",), meaning="hide commits that change no data, such as compact"),
)
"""Which commits to tell of."""


def _help(call: Call) -> Manual:
    word = call.arguments.get("command")
    return Manual(overview(COMMANDS)) if word is None else Manual(manual(find(word)))


def find(word: str) -> Command:
    """Return the command of that name.

    Raises:
        UsageError: There is none; the message names the nearest.
    """
    for command in COMMANDS:
        if command.name == word:
            return command
    names = [command.name for command in COMMANDS]
    near = get_close_matches(word, names, 1)
    hint = f"Did you mean {near[0]}?" if near else ""
    if not near and ("/" in word or "\\" in word):
        hint = "To open a table: %snapshot open PATH."
    said = word if word.isidentifier() else "that"
    raise UsageError(f"%snapshot has no command {said}. {hint} Commands: {', '.join(names)}.".replace("  ", " "))


COMMANDS: Sequence[Command] = (
    Command(
        name="open",
        summary="Open a table by its path",
        run=actions.open_,
        python='orders = snapshot_explorer.open_table("PATH", branch=None, storage_options=options)',
        examples=(
            "%snapshot open s3://lake/shop.db/orders as orders",
            "%snapshot open /data/shop.db/orders --branch dev --as orders_dev",
            "%snapshot open {path} as orders --options minio",
        ),
        arguments=(
            Argument(
                name="PATH",
                holds="text",
                required=True,
                meaning="the table's own folder or URL; or a variable that holds it, or that holds an open table",
            ),
        ),
        options=(
            Option(
                flags=("--as",),
                value="NAME",
                word="as",
                meaning="what to call it; also plainly: as NAME. Without it the last part of the path",
            ),
            Option(flags=("--branch",), value="B", meaning="look at this branch's history instead of the main one"),
            Option(flags=("--format",), value="F", holds="format", meaning="insist on a format: paimon or delta"),
            Option(
                flags=("--options",),
                value="VARIABLE",
                holds="dict",
                is_secret=True,
                meaning="a variable that holds a dict of storage options; the dict itself is refused, "
                "since a line stays in the notebook",
            ),
            Option(
                flags=("--external-files",),
                value="RULE",
                meaning="allow (the default) or refuse files outside of the table's folder that its metadata names",
            ),
        ),
        notes="Makes the table the current one, and binds a variable NAME to its handle: NAME.history() works at once. "
        "The tables stay open over %reload_ext as long as their variables hold the handles.",
    ),
    Command(
        name="status",
        summary="What is open, and its newest version",
        run=actions.status,
        python="orders.update(); orders",
        examples=("%snapshot", "%snapshot status orders"),
        options=(TABLE,),
        notes="Looks for new versions: one listing for each table. %snapshot alone does the same.",
    ),
    Command(
        name="tables",
        summary="The open tables; * marks the current one",
        run=actions.tables,
        python="orders.path, orders.format, orders.branch, orders.current.version",
        examples=("%snapshot tables",),
    ),
    Command(
        name="log",
        summary="Commits, newest first",
        run=actions.log,
        python='orders.history("A..B", limit=20, kind="compact", since="@3d", text="...")',
        examples=(
            "%snapshot log",
            "%snapshot log 10..latest --kind compact -n all",
            "%snapshot log --since @2026-11-01 --grep nightly",
            "h = %snapshot log -t orders -n 100",
        ),
        arguments=(_RANGE,),
        options=(
            Option(
                flags=("-n", "--limit"),
                value="N",
                holds="number",
                meaning="how many commits, or all; without it the setting display_limit (20)",
            ),
            *_FILTERS,
            Option(flags=("--stat",), meaning="show files, rows and bytes that each commit added and removed"),
            TABLE,
        ),
        notes="Reads no more commits than it returns, unless it has to look for a kind or a text. Rows are those in "
        "files, before any merge.",
    ),
    Command(
        name="timeline",
        summary="Commits as a figure, with a table beside it",
        run=actions.timeline,
        python='orders.history("A..B", limit=10_000).picture(y="rows")',
        examples=(
            "%snapshot timeline",
            "%snapshot timeline 100..200 -y files",
            "%snapshot timeline --since @7d --no-maintenance",
            "p = %snapshot timeline -y bytes -n all",
        ),
        arguments=(_RANGE,),
        options=(
            Option(flags=("-y",), value="WHAT", holds="measure", meaning="what bars count: rows, files or bytes"),
            Option(
                flags=("-n", "--limit"),
                value="N",
                holds="number",
                meaning=f"how many commits, the newest ones, or all; without it {actions.TIMELINE_COMMITS:,}",
            ),
            *_FILTERS,
            TABLE,
        ),
        notes="A bar up for what a commit added and one down for what it removed, by kind; the line is what that comes "
        "to. Tags are flags, dotted lines new schemas; versions on grey can be loaded no more. Where no figures are "
        "shown the table stands alone. p.figure is plotly's; rows are those in files, before any merge.",
    ),
    Command(
        name="explore",
        summary="A widget to travel through time by hand",
        run=actions.explore,
        python="snapshot_explorer.explore(orders)",
        examples=("%snapshot explore", "e = %snapshot explore -t orders"),
        options=(TABLE,),
        notes="A timeline with markers A and B, and views of the commit, manifests, what differs, rows, files and "
        "health, each with the line of Python that gives the same. Works by keyboard; e.state drives it from code, "
        "e.wait() waits for what is being read, e.close() ends it. Without widgets it is a table and a picture.",
    ),
    DIFF,
    HEALTH,
    Command(
        name="show",
        summary="One version: its commit, files and schema",
        run=actions.show,
        python="orders.at(17)",
        examples=("%snapshot show 17", "%snapshot show latest~2", "%snapshot show orders@tag:v1"),
        arguments=(REF,),
        options=(TABLE,),
    ),
    Command(
        name="schema",
        summary="Columns, types and keys at a version",
        run=actions.schema,
        python="orders.schema(17)",
        examples=("%snapshot schema 17", "%snapshot schema"),
        arguments=(REF,),
        options=(TABLE,),
    ),
    Command(
        name="manifests",
        summary="Manifests: base, delta, changelog, index",
        run=actions.manifests,
        python="orders.at(17).manifests()",
        examples=("%snapshot manifests 17", "m = %snapshot manifests latest^"),
        arguments=(REF,),
        options=(TABLE,),
        notes="Of Delta, base is the checkpoint that the version is made from, and delta the commits after it.",
    ),
    Command(
        name="entries",
        summary="Data files that one of the manifests adds and removes",
        run=actions.entries,
        python='orders.at(17).entries("manifest-5d3f-0")',
        examples=("%snapshot entries manifest-5d3f-0 17", "%snapshot entries 0017.json"),
        arguments=(
            Argument(
                name="MANIFEST",
                holds="text",
                required=True,
                meaning="its path, as manifests shows it, its name, or an end that no other one has",
            ),
            REF,
        ),
        options=(TABLE,),
        notes="Of Delta a manifest is a commit, a file of the checkpoint or a sidecar; a remove in a checkpoint is a "
        "tombstone, which says that the file was removed before.",
    ),
    Command(
        name="files",
        summary="Data files that are live at a version",
        run=actions.files,
        python='orders.at(17).files({"dt": "2026-01-01"})',
        examples=("%snapshot files 17", "%snapshot files --partition dt=2026-01-01 --partition hr=3"),
        arguments=(REF,),
        options=(
            Option(
                flags=("-p", "--partition"),
                value="COLUMN=VALUE",
                repeated=True,
                meaning="only files of this partition; several may be given, or joined by /. "
                "COLUMN=null is the null partition",
            ),
            TABLE,
        ),
    ),
    Command(
        name="plan",
        summary="What reading a version reads and skips",
        run=actions.plan,
        python='orders.at(17).plan(where="amount > 10")',
        examples=("%snapshot plan 17", '%snapshot plan 17 --where "amount > 10"'),
        arguments=(REF,),
        options=(
            _WHERE,
            TABLE,
        ),
        notes="A row per split that is read, and one for what is skipped of a partition and bucket for a reason: "
        "partition, bucket, key range or statistics of a column. Reads metadata alone.",
    ),
    Command(
        name="inspect",
        summary="A table of metadata, under the format's own name",
        run=actions.inspect,
        python='orders.inspect("files", 17)',
        examples=(
            "%snapshot inspect files 17",
            "%snapshot inspect history",
            "p = %snapshot inspect partitions",
            "%snapshot inspect audit_log 17",
        ),
        arguments=(
            Argument(
                name="NAME",
                holds="inspection",
                required=True,
                meaning="which: snapshots, schemas, options, manifests, files, file_key_ranges, partitions, buckets, "
                "tags, branches, consumers, statistics, aggregation_fields, table_indexes, file_indexes of Paimon, and "
                "with the table's own rows audit_log, binlog, ro, row_tracking; history, detail, properties, "
                "transactions, domains of Delta",
            ),
            Argument(name="REF", holds="ref", meaning="the version, where it tells of one; latest without it"),
        ),
        options=(
            Option(flags=("-y", "--yes"), meaning="read the table's rows however many there are"),
            TABLE,
        ),
        notes="Columns, types and texts are those of SELECT * FROM orders$files in Paimon, where times without zone "
        "are UTC, and of DESCRIBE HISTORY and DESCRIBE DETAIL in Delta. The tables of rows cost what load does, and "
        "have the same limits; the first rows are drawn, all are returned.",
    ),
    RETENTION,
    READABILITY,
    Command(
        name="tags",
        summary="Tags and the versions they name",
        run=actions.tags,
        python="orders.tags()",
        examples=("%snapshot tags",),
        options=(TABLE,),
        notes="Delta tables have none.",
    ),
    Command(
        name="branches",
        summary="Branches other than the main one, and where they begin",
        run=actions.branches,
        python="orders.branches()",
        examples=("%snapshot branches",),
        options=(TABLE,),
        notes="forked_version is the version here that a branch begins with, as the same commit; null where none is "
        "proven. Open one with %snapshot open PATH --branch B. Delta tables have none.",
    ),
    Command(
        name="load",
        summary="The rows of a version as a DataFrame",
        run=actions.load,
        python='orders.at(17).to_pandas(columns=["id"], where="amount > 10", limit=100)',
        examples=(
            "df = %snapshot load 17",
            'df = %snapshot load 17 --columns id,amount --where "amount > 10"',
            "df = %snapshot load @2026-11-01T12:00:00Z --limit 1000",
            "t = %snapshot load tag:v1 --engine arrow",
            "df = %snapshot load latest --engine spark",
        ),
        arguments=(REF,),
        options=(
            Option(
                flags=("--engine",),
                value="ENGINE",
                holds="engine",
                meaning="pandas (a DataFrame with Arrow types), arrow (a pyarrow Table) or spark (a lazy DataFrame)",
            ),
            Option(flags=("--columns",), value="A,B", holds="columns", meaning="only these columns, in this order"),
            _WHERE,
            Option(
                flags=("-n", "--limit"),
                value="N",
                holds="number",
                meaning="at most so many rows; which ones is not defined",
            ),
            Option(flags=("-y", "--yes"), meaning="read however much it is"),
            TABLE,
        ),
        notes="First says what it will read, from metadata. More than the settings load_row_limit or load_size_limit "
        "is read only with --limit or --yes. Sizes are decimal: 1 MB is 1,000,000 bytes. With --engine spark nothing "
        "is read until Spark is asked for rows; the active session is used, or a local one is started.",
    ),
    Command(
        name="sql",
        summary="A query over the open tables at any version",
        run=actions.sql,
        python='snapshot_explorer.sql("select * from orders version as of 17", {"orders": orders}, engine="duckdb")',
        examples=(
            '%snapshot sql "select * from orders@17"',
            "%%snapshot sql -o gone  (and the query below, in the same cell)",
            '%snapshot sql "select * from orders version as of 17 except select * from orders"',
            "%snapshot sql \"select count(*) from orders timestamp as of '2026-11-01'\" --engine spark",
        ),
        arguments=(
            Argument(name="QUERY", holds="text", meaning="the query in quotes, where it is not below the line"),
        ),
        options=(
            Option(
                flags=("--engine",),
                value="ENGINE",
                holds="sql engine",
                meaning="duckdb (gives a pandas DataFrame with Arrow types) or spark (a Spark DataFrame); "
                "duckdb without it",
            ),
            Option(flags=("-y", "--yes"), meaning="read however much it is"),
        ),
        notes="The query follows below %%snapshot sql in the same cell, where nothing is expanded. It names the open "
        "tables, each followed by version as of 17, version as of 'latest~2' (any REF, or a tag), timestamp as of "
        "'2026-11-01 12:00' (UTC without a zone) or '2h'; without, it is the newest version. DuckDB reads the "
        "columns and files that the query needs, into memory: more than the settings load_row_limit or "
        "load_size_limit only with --yes. Only statements that read are taken.",
        takes_body=True,
    ),
    Command(
        name="use",
        summary="Make a table the current one",
        run=actions.use,
        python="(names are the magic's own)",
        examples=("%snapshot use orders",),
        arguments=(Argument(name="NAME", holds="table", required=True, meaning="the table to act on from now"),),
    ),
    Command(
        name="close",
        summary="Forget a table and its variable",
        run=actions.close,
        python="del orders",
        examples=("%snapshot close orders",),
        arguments=(Argument(name="NAME", holds="table", meaning="the table; the current one without it"),),
    ),
    Command(
        name="help",
        summary="This list, or the help of a command",
        run=_help,
        python="help(snapshot_explorer.open_table)",
        examples=("%snapshot help load",),
        arguments=(Argument(name="COMMAND", holds="command", meaning="the command to tell about"),),
    ),
)
"""In the order of the help."""
