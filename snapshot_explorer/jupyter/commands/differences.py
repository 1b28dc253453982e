"""What differs? `%snapshot diff` and `profile`."""

from decimal import Decimal, InvalidOperation

from snapshot_explorer.analysis.compare import Comparison
from snapshot_explorer.analysis.diff import RowDiff, RowDiffPlan, row_diff
from snapshot_explorer.analysis.given import is_rows
from snapshot_explorer.analysis.pairs import MergeStatement, ThreeWayDiff
from snapshot_explorer.analysis.profile import AnomalyRules, Profile
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.refs import Ref, parse_range, parse_ref
from snapshot_explorer.jupyter.command import TABLE, Argument, Arguments, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import (
    RANGE,
    STORAGE_OPTIONS,
    WHERE,
    check_options,
    columns_and_range,
    dict_of,
    names_of,
    path_of,
    split_pairs,
    whole_number,
)
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake.pair_diff import diff, diff3
from snapshot_explorer.lake.table_twins import Twins, twins
from snapshot_explorer.results import Frame
from snapshot_explorer.table import Snapshot, Table

DIFF_PARTS = {
    "stat": "summary",
    "commits": "commits",
    "schema": "schema",
    "properties": "properties",
    "partitions": "partitions",
    "files": "files",
    "manifests": "manifests",
}
"""The flags of `diff`, and the part of the comparison that each selects."""


_OF_TWO_TABLES = ("pair", "exclude", "tolerance", "relative-tolerance", "ignore-case", "trim")
"""The options that only two tables accept."""
_OF_ROWS = ("key", "columns", "where", "preview", "limit", *_OF_TWO_TABLES)
"""The options that only `--rows` accepts."""


def _diff(
    invocation: Invocation,
) -> Comparison | Frame | MergeStatement | RowDiff | RowDiffPlan | ThreeWayDiff | Twins:
    """Return the differences of two versions, one selected part, or the rows that differ; or another kind of answer."""
    arguments = invocation.arguments
    if not arguments.has("given"):
        check_options(arguments, "twins", only_with=("options",), never_with=("rows", *DIFF_PARTS, *_OF_ROWS))
    never = ("rows", "preview", "columns", *DIFF_PARTS)
    check_options(arguments, "three-way", only_with=("base", "sql"), never_with=never)
    check_options(arguments, "sql", only_with=("name",))
    if arguments.has("twins"):
        return _twins(invocation)
    if arguments.has("three-way"):
        return _three_way(invocation)
    return _rows_and_given(invocation) if arguments.has("given") else _compare(invocation)


def _compare(invocation: Invocation) -> Comparison | Frame | RowDiff | RowDiffPlan:
    """Return the differences of two versions, one selected part, or the rows that differ."""
    arguments = invocation.arguments
    a, b = parse_range(_range(arguments))
    name, table = invocation.named_table()
    if arguments.get("other") is not None:
        return _rows_of_two(invocation, table, a, b)
    alone = next((name for name in _OF_TWO_TABLES if arguments.has(name)), None)
    if alone is not None:
        raise UsageError(f"--{alone} needs two tables. Example: diff orders@7 copy@3 --rows --{alone} ...")
    if arguments.get("a..b") is None and len(versions := table.versions()) == 1:
        raise UsageError(
            Message(
                f"{name} has one version, {versions[0]}: there is none before it to compare with. ",
                Hint("table.at", {"ref": versions[0]}),
                " shows what it added.",
            )
        )
    if arguments.has("rows"):
        return _rows(invocation, table, a, b)
    alone = next((name for name in _OF_ROWS if arguments.has(name)), None)
    if alone is not None:
        raise UsageError(
            Message(f"--{alone} needs --rows. Example: ", Hint("table.diff_rows", {"a": 17, "b": 18}), ".")
        )
    comparison = table.compare(a, b)
    parts = [part for flag, part in DIFF_PARTS.items() if arguments.has(flag)]
    if len(parts) == 1:
        part: Frame = getattr(comparison, parts[0])
        return part
    return comparison.showing(*parts)


def _twins(invocation: Invocation) -> Twins:
    """Return whether the table and its twin name the same data files."""
    arguments = invocation.arguments
    table = invocation.table()
    name, text = arguments.get("other"), arguments.get("a..b")
    if name is None and text is None:
        return twins(table)
    if text not in (None, "latest..latest") and (name is not None or _is_range(text)):
        raise UsageError(
            f"--twins compares all versions, got {text!r}. Name two open tables, as in diff orders copy --twins, or "
            "another table's path, or nothing."
        )
    name = name or text or ""
    other = invocation.tables.all().get(name)
    if other is not None:
        return twins(table, other)
    return twins(table, path_of(invocation, name), storage_options=dict_of(invocation, "options"))


def _is_range(text: str) -> bool:
    try:
        parse_range(text if ".." in text else f"{text}..latest")
    except InvalidArgumentError:
        return False
    return True


def _range(arguments: Arguments) -> str:
    first, second = arguments.get("a..b"), arguments.get("b")
    if second is not None and first is not None:
        if ".." in first or ".." in second:
            raise UsageError(f"{first!r} and {second!r} are more than two versions. Write A..B, or A B.")
        return f"{first}..{second}"
    text = first or "latest^..latest"
    return text if ".." in text else f"{text}..latest"


def _rows(invocation: Invocation, table: Table, a: Ref, b: Ref) -> RowDiff | RowDiffPlan:
    """Return the rows that differ, after a line with the size of the read; with `--preview` only the plan."""
    arguments = invocation.arguments
    key, columns = names_of(arguments, "key"), names_of(arguments, "columns")
    return _read(invocation, table.diff_rows(a, b, key, columns, arguments.get("where"), preview=True))


def _rows_of_two(invocation: Invocation, table: Table, a: Ref, b: Ref) -> RowDiff | RowDiffPlan:
    """Return the rows that differ between versions of two tables, as `_rows`."""
    arguments = invocation.arguments
    if not arguments.has("rows"):
        raise UsageError("Two tables are compared by their rows. Add --rows; with --preview, no rows are read.")
    _, other = invocation.tables.find(arguments.get("other"), invocation.variables)
    return _diff_of(invocation, table.at(a), other.at(b))


def _rows_and_given(invocation: Invocation) -> RowDiff | RowDiffPlan:
    """Return the rows that differ between a version and a DataFrame or files, as `_rows`."""
    arguments = invocation.arguments
    return _diff_of(invocation, invocation.table().at(arguments.get("a..b") or "latest"), _given(invocation))


def _three_way(invocation: Invocation) -> MergeStatement | ThreeWayDiff:
    """Return the changes of two branches, or of two other sets of rows, since their base; or the statement for them."""
    arguments = invocation.arguments
    table = invocation.table()
    base = arguments.get("base")
    theirs: object
    if arguments.has("given"):
        ours, theirs = table.at(_branch_ref(table, arguments.get("a..b") or "latest")), _given(invocation)
    else:
        first, _, second = _range(arguments).partition("..")
        name = arguments.get("other")
        other = table if name is None else invocation.tables.find(name, invocation.variables)[1]
        ours, theirs = table.at(_branch_ref(table, first)), other.at(_branch_ref(other, second))
    result = diff3(
        None if base is None else table.at(base),
        ours,
        theirs,
        names_of(arguments, "key"),
        exclude=names_of(arguments, "exclude"),
        where=arguments.get("where"),
        storage_options=dict_of(invocation, "options"),
    )
    return result.merge_statement(arguments.get("name")) if arguments.has("sql") else result


def _branch_ref(table: Table, text: str) -> str:
    """Return a ref; the name of a branch means its newest version."""
    try:
        parse_ref(text)
    except InvalidArgumentError:
        if text in table.branches()["branch"].to_pylist():
            return f"branch:{text}"
    return text


def _given(invocation: Invocation) -> object:
    """Return the DataFrame or the path that the line names in place of a version."""
    text = invocation.arguments.get("given") or ""
    value = invocation.variables.get(text)
    return value if is_rows(value) else path_of(invocation, text)


def _diff_of(invocation: Invocation, a: Snapshot, b: object) -> RowDiff | RowDiffPlan:
    arguments = invocation.arguments
    if arguments.has("columns"):
        raise UsageError("--columns is for two versions of one table. Leave other columns out: --exclude A,B.")
    plan = diff(
        a,
        b,
        names_of(arguments, "key"),
        columns=split_pairs(
            arguments.repeated.get("pair", ()), "pair", "a name in A and one in B, as in --pair id=order_id"
        )
        or None,
        exclude=names_of(arguments, "exclude"),
        where=arguments.get("where"),
        tolerance=_tolerance(arguments, "tolerance"),
        relative_tolerance=_tolerance(arguments, "relative-tolerance"),
        ignore_case=arguments.has("ignore-case"),
        trim=arguments.has("trim"),
        preview=True,
        storage_options=dict_of(invocation, "options"),
    )
    return _read(invocation, plan)


def _read(invocation: Invocation, plan: RowDiffPlan) -> RowDiff | RowDiffPlan:
    arguments = invocation.arguments
    part = next((flag for flag in DIFF_PARTS if arguments.has(flag)), None)
    if part is not None:
        raise UsageError(f"--rows and --{part} exclude each other. Use one of them.")
    text = arguments.get("limit")
    limit = invocation.settings.display_limit if text is None else whole_number("--limit", text)
    if arguments.has("preview"):
        return plan
    invocation.show_line(plan.announcement)
    return row_diff(plan).showing(limit or 0)


def _tolerance(arguments: Arguments, option: str) -> Decimal | dict[str, Decimal] | None:
    """Return the number in `--tolerance 0.01`, or numbers by column in `--tolerance amount=0.01 --tolerance tax=1`."""
    numbers: dict[str, Decimal] = {}
    for text in arguments.repeated.get(option, ()):
        column, _, number = text.rpartition("=")
        try:
            numbers[column] = Decimal(number)
        except InvalidOperation:
            raise UsageError(
                f"--{option} must be a number, got {number!r}. Example: --{option} 0.01, or --{option} amount=0.01."
            ) from None
    if "" in numbers and len(numbers) > 1:
        raise UsageError(f"--{option} is either one number for all columns, or a number for each: COLUMN=X.")
    return numbers.get("", numbers or None)


_SIDES = {"a": "A..B", "b": "A..B"}

DIFF = Command(
    name="diff",
    question="What differs?",
    summary="What differs between two versions, or two tables",
    run=_diff,
    python='orders.compare(17, "latest").files',
    calls=(
        Call(verb="table.compare", names=_SIDES, defaults={"a": "latest^"}),
        Call(verb="table.diff_rows", flag="--rows", names=_SIDES),
        Call(verb="diff", flag="--rows", names={**_SIDES, "columns": "--pair"}),
        Call(
            verb="twins",
            flag="--twins",
            names={"path": "", "other": "A..B", "storage_options": "--options"},
            placeholders={"A..B": "PATH"},
        ),
    ),
    examples=(
        "%snapshot diff 17..latest",
        "%snapshot diff",
        "%snapshot diff tag:v1..latest --files",
        "%snapshot diff main..branch:audit --rows",
        "%snapshot diff 17..18 --manifests",
        "c = %snapshot diff @2026-11-01..@2026-11-02",
        "%snapshot diff 17 18 --rows --key order_id",
        '%snapshot diff 17..18 --rows --where "amount > 10" --preview',
        "%snapshot diff orders@7 copy@3 --rows --key order_id",
        "%snapshot diff orders copy --rows --pair id=order_id --exclude loaded_at --tolerance 0.01",
        "%snapshot diff orders@7 df --key order_id",
        "%snapshot diff 7 export/orders.parquet --key order_id",
        "%snapshot diff3 main audit",
        "%snapshot diff3 main audit --sql",
        "%snapshot diff --twins",
        "%snapshot diff orders copy --twins",
        "t = %snapshot diff --twins s3://lake/shop.db/orders_iceberg --options minio",
    ),
    arguments=(
        Argument(
            "A..B",
            "from version A to version B; A alone means A..latest, nothing means latest^..latest; with --twins "
            "another open table, or a path; by default the metadata of another format in the table's folder",
            value_type="range",
        ),
        Argument(
            "B",
            "the other version, where the first argument is A alone; or a variable with a DataFrame, or the "
            "path of files, whose rows are compared",
            value_type="ref",
        ),
    ),
    options=(
        Option("--stat", "shared, removed and added files, rows and bytes"),
        Option("--commits", "the commits between the versions"),
        Option("--schema", "columns and keys: added, dropped, renamed, widened, ..."),
        Option("--properties", "properties that were set, changed or removed"),
        Option("--partitions", "differences by partition and bucket"),
        Option("--files", "data files that were added, removed, moved, or had rows deleted"),
        Option("--manifests", "each manifest: carried over, added, merged away or rewritten; removed if B is older"),
        Option("--rows", "the rows that were inserted, deleted and updated; reads data files"),
        Option("--key A,B", "with --rows: the columns that identify a row; by default the primary key"),
        Option("--columns A,B", "with --rows: compare only these"),
        WHERE,
        Option(
            "--pair A=B", "with two tables: a column of A and its name in B; others are paired by name", repeated=True
        ),
        Option("--exclude A,B", "with two tables: columns that are not compared"),
        Option(
            "--tolerance X",
            "with two tables: the maximum difference of equal numbers; COLUMN=X for one column",
            repeated=True,
        ),
        Option("--relative-tolerance X", "with two tables: the same, as a share of the number", repeated=True),
        Option("--ignore-case", "with two tables: compare text without regard to case"),
        Option("--trim", "with two tables: ignore white space around text"),
        Option("--preview", "with --rows: only show how much to read, and how many rows can differ"),
        Option("-n, --limit N", "with --rows: the number of rows to show"),
        Option(
            "--three-way", "what A and B, two branches, each changed since they parted, by key, and where they conflict"
        ),
        Option(
            "--base REF", "with --three-way: the version that both began with, where they are not branches of one table"
        ),
        Option("--sql", "with --three-way: the MERGE in Spark SQL that brings what B changed to A; runs nothing"),
        Option("--name TABLE", "with --sql: the name of A's table in the engine, such as lake.shop.orders"),
        Option("--twins", "whether the table and its twin name the same data files"),
        STORAGE_OPTIONS,
        TABLE,
    ),
    notes="Returns a Comparison that shows the selected parts; with one flag, returns that part, a frame. Reads "
    "metadata only. For the entries of a manifest: c.entries(NAME). With --rows, first shows how much it will "
    "read, then returns a RowDiff: d.inserted, d.deleted, d.updated, d.by_column, d.by_partition(), "
    "d.to_pandas(). Files in both versions are not read. Versions of two open tables, of any formats, are "
    "orders@7 copy@3, or orders copy for the latest of both; columns are paired by name, and have the names of B. B "
    "may also be a DataFrame or files of Parquet, ORC, Avro, CSV or Arrow: diff(orders.at(7), df) in Python. "
    "--three-way (diff3) compares each of two branches with the version at which they parted: r.rows has what each "
    "side did to each row, r.conflicts what a merge could not decide, r.incoming what it would do to A, and "
    "r.merge_statement(), or --sql, the MERGE for A's engine, whose text is its .statement. "
    "--twins shows which versions of two tables name the same data files, how far one is behind the other, and since "
    "when: Delta with UniForm, Paimon with Iceberg compatibility, XTable, or a copy. It opens no data file; "
    "t.diff(key=...) compares the rows of the newest versions, t.versions is a frame, and in Python "
    'snapshot_explorer.twins("PATH") is the same.',
    accepts_two_tables=True,
)


def _profile(invocation: Invocation) -> Profile | Frame:
    """Return rows, nulls and the range of columns at every version, or the versions at which a number jumps."""
    arguments = invocation.arguments
    check_options(arguments, "anomalies", only_with=("key", "window"), never_with=("exact",))
    columns, between = columns_and_range(invocation)
    table = invocation.table()
    if not arguments.has("anomalies"):
        return table.profile_over(columns, between, exact=arguments.has("exact"))
    rules = _rules(arguments.get("window"))
    return table.anomalies(columns, between, rules=rules, key=names_of(arguments, "key"))


def _rules(window: str | None) -> AnomalyRules:
    number = None if window is None else whole_number("--window", window, minimum=1)
    if number is None:
        return AnomalyRules()
    return AnomalyRules(window=number, min_changes=min(number, AnomalyRules().min_changes))


PROFILE = Command(
    name="profile",
    question="What differs?",
    summary="Rows, nulls and ranges over versions, and their jumps",
    run=_profile,
    python='orders.profile_over(["amount"], "10..latest"); orders.anomalies(["amount"])',
    calls=(
        Call(verb="table.profile_over", names={"between": "A..B"}),
        Call(verb="table.anomalies", flag="--anomalies", names={"between": "A..B"}),
    ),
    examples=(
        "%snapshot profile",
        "%snapshot profile 10..latest --columns amount,buyer",
        "p = %snapshot profile --columns amount --exact",
        "%snapshot profile --anomalies",
        "%snapshot profile --anomalies --key order_id",
        "a = %snapshot profile 10..latest --anomalies --window 20",
    ),
    arguments=(RANGE,),
    options=(
        Option("--columns A,B", "the columns, also without the flag; by default all"),
        Option("--exact", "read the rows, each file once, where statistics are bounds or missing"),
        Option("--anomalies", "the versions where a number jumps, each with its rule"),
        Option(
            "--key A,B",
            "with --anomalies: also versions where rows begin to have the same key; reads its columns at all versions",
        ),
        Option("--window N", "with --anomalies: the number of previous changes to compare with; by default 10"),
        TABLE,
    ),
    notes="Computed from the file statistics in the metadata; the column bounds shows which numbers are bounds, and "
    "why. p.frame is the table, p.picture() the lines, p.anomalies the versions where a number jumps. --anomalies "
    "lists a version if its change is more than 5 times the usual change of the versions before it, and at least 20 % "
    "of rows, files or bytes, 5 points of a null rate, or half of a column's range. Reads only metadata, except with "
    "--exact and --key. In Python table.anomalies(rules=AnomalyRules(...)) has all thresholds.",
)
