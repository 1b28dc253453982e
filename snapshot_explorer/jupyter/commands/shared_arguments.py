"""Arguments that several commands accept, and the parsing of their values."""

from collections.abc import Mapping, Sequence
from typing import Any

from snapshot_explorer.analysis.usage import Price
from snapshot_explorer.jupyter.command import Argument, Arguments, Invocation, Option
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.jupyter.variables import dict_variables
from snapshot_explorer.storage.hidden import hidden_options
from snapshot_explorer.table import Snapshot, Table

REF = Argument("REF", "the version; by default latest", value_type="ref")
WHERE = Option('--where "SQL"', "only rows for which the condition is true")
STORAGE_OPTIONS = Option(
    "--options VARIABLE",
    "a variable with a dict of storage options; the dict itself is refused, since notebooks store the line",
    is_secret=True,
)
PRICE = Option(
    "--price P",
    "add the cost of each row, at a price per GB and month; or gb_month=P,read=P,write=P, where "
    "read and write are per 1,000 requests",
)
RANGE = Argument("A..B", "from version A to version B, both included; either can be left out", value_type="range")
CONDITION = Argument(
    "CONDITION", "SQL on the rows, with the columns of the newest version", value_type="condition", required=True
)


def ref_of(invocation: Invocation) -> str:
    """Return the value of REF; by default latest."""
    return invocation.arguments.get("ref") or "latest"


def snapshot_of(invocation: Invocation) -> Snapshot:
    """Return the snapshot of REF; by default the latest."""
    return invocation.table().at(ref_of(invocation))


def where_of(invocation: Invocation, snapshot: Snapshot) -> str | None:
    """Return the condition; the bare name of a variable that is not a column means the variable's text."""
    where = invocation.arguments.get("where")
    value = None if where is None else invocation.variables.get(where)
    return value if isinstance(value, str) and where not in snapshot.arrow_schema.names else where


def condition_of(invocation: Invocation, table: Table) -> str:
    """Return the condition of the line; a single name that is not a column may be a variable with text."""
    text = invocation.arguments.get("condition") or ""
    value = invocation.variables.get(text) if text.isidentifier() else None
    return value if isinstance(value, str) and text not in table.current.arrow_schema.names else text


def columns_and_range(invocation: Invocation) -> tuple[list[str] | None, str | None]:
    """Return the columns and the range of versions; an argument that is no range names columns: `profile amount`."""
    text, between = invocation.arguments.get("columns"), invocation.arguments.get("a..b")
    if text is None and between is not None and ".." not in between:
        text, between = between, None
    return None if text is None else column_names(text), between


def path_of(invocation: Invocation, text: str) -> str:
    """Return a path; the name of a variable with text or a path means its value."""
    value = invocation.variables.get(text)
    return str(value) if isinstance(value, str) or hasattr(value, "__fspath__") else text


def check_options(
    arguments: Arguments, flag: str, *, only_with: Sequence[str] = (), never_with: Sequence[str] = ()
) -> None:
    """Check that options are used with the flag that they need, and without the flag that excludes them.

    Raises:
        UsageError: They are not. The message names both.
    """
    if arguments.has(flag):
        if (other := next((name for name in never_with if arguments.has(name)), None)) is not None:
            raise UsageError(f"--{flag} and --{other} exclude each other. Use one of them.")
    elif (alone := next((name for name in only_with if arguments.has(name)), None)) is not None:
        raise UsageError(f"--{alone} needs --{flag}. Add it, or leave out --{alone}.")


def whole_number(flag: str, text: str, *, minimum: int = 0, also: str = "") -> int | None:
    """Return the value of a flag as a number; None for the word that is also allowed.

    Raises:
        UsageError: It is neither.
    """
    if also and text == also:
        return None
    digits = text.replace("_", "").replace(",", "")
    if not (digits.isascii() and digits.isdigit()):
        other = f", or {also}" if also else ""
        raise UsageError(f"{flag} must be a whole number, {minimum} or more{other}, got {text!r}. Example: {flag} 20.")
    return int(digits)


def without_quotes(text: str) -> str:
    """Return the text without surrounding quotes, if any."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def column_names(text: str, flag: str = "--columns") -> list[str]:
    """Return the names in a list with commas.

    Raises:
        UsageError: It names none.
    """
    names = [without_quotes(name.strip()) for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"{flag} contains no column. Separate names with commas: {flag} id,amount.")
    return names


def names_of(arguments: Arguments, option: str) -> list[str] | None:
    """Return the columns that an option names; None without it."""
    text = arguments.get(option)
    return None if text is None else column_names(text, f"--{option}")


def split_pairs(texts: Sequence[str], option: str, meaning: str) -> dict[str, str]:
    """Return the two names in each value of an option, such as `--pair id=order_id`.

    Raises:
        UsageError: One is missing. The message has the meaning of the option.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        left, _, right = text.partition("=")
        if not (left and right):
            raise UsageError(f"--{option} is {meaning}, got {text!r}.")
        pairs[left] = right
    return pairs


def dict_of(invocation: Invocation, option: str) -> Mapping[str, Any] | None:
    """Return the dict in the variable of an option; None without it.

    Raises:
        UsageError: The variable does not exist or is not a dict. The message contains neither its value nor its name:
            either may be a secret.
    """
    name = invocation.arguments.get(option)
    if name is None:
        return None
    value = invocation.variables.get(name)
    if isinstance(value, Mapping):
        return hidden_options(value)
    dicts = dict_variables(invocation.variables)
    have = f"Variables with a dict: {', '.join(dicts)}." if dicts else "No variable contains a dict."
    example = option.replace("-", "_")
    raise UsageError(
        f"--{option} must be a variable that contains a dict. {have} Define it first: {example} = {{...}}."
    )


def price_of(arguments: Arguments) -> Price | None:
    """Return the value of --price as a number, or as numbers by their names; None without it."""
    text = arguments.get("price")
    if text is None:
        return None
    try:
        named = [part.split("=") for part in text.split(",")]
        return {name: float(price) for name, price in named} if "=" in text else float(text)
    except ValueError:
        raise UsageError(
            f"--price must be a number, got {text}. Pass the price per GB and month: --price 0.02; or more: --price "
            "gb_month=0.02,read=0.0004,write=0.005."
        ) from None
