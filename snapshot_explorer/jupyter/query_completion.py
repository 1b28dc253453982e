"""Completion inside of a query: tables, columns, refs and keywords, from caches."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from snapshot_explorer.history import history_of
from snapshot_explorer.table import Table

KEYWORDS = (
    *("select", "from", "where", "group by", "order by", "having", "limit", "distinct", "as", "and", "or", "not", "in"),
    *("join", "left join", "full join", "anti join", "semi join", "on", "using", "union all", "except", "intersect"),
    *("version as of", "timestamp as of", "case", "when", "then", "else", "end", "is null", "is not null", "between"),
    *("like", "exists", "with", "count", "sum", "min", "max", "avg", "cast", "coalesce", "desc", "asc", "summarize"),
)
"""Words of a query that are offered after a name."""
_WORD = re.compile(r"\w*$")
_VERSION = re.compile(r"\bversion\s+as\s+of\s+(?P<quote>')?(?P<typed>[^'\s]*)$", re.IGNORECASE)
_TIME = re.compile(r"\btimestamp\s+as\s+of\s+(?P<quote>')?(?P<typed>[^']*)$", re.IGNORECASE)
_AT = re.compile(r"\b(?P<table>[^\W\d]\w*)@(?P<typed>[\w:~^-]*)$")
_MEMBER = re.compile(r"\b(?P<owner>[^\W\d]\w*)\.(?P<typed>\w*)$")
_TABLE_FOLLOWS = re.compile(r"\b(?:from|join)\s+(?:[^\W\d]\w*(?:@\S+)?(?:\s+[^\W\d]\w*)?\s*,\s*)*\w*$", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:\b(?:from|join)|,)\s*\"?(?P<table>[^\W\d]\w*)\"?"
    r"(?:@[\w:~^-]+|\s+(?:for\s+)?(?:version|timestamp)\s+as\s+of\s+(?:'[^']*'|\S+))?"
    r"(?:\s+(?:as\s+)?(?P<alias>[^\W\d]\w*))?",
    re.IGNORECASE,
)

Items = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that a query may use."""

    tables: Mapping[str, Table]
    refs: Callable[[Table | None], Items]
    times: Callable[[Table], Items]
    """Returns the commit times of a table, each with a description of the commit."""


def query_items(before: str, whole: str, names: Names) -> tuple[str, list[tuple[str, str]]]:
    """Return the start of the word before the cursor, and its completions.

    Args:
        before: The query before the cursor.
    """
    owners = _owners(whole, names.tables)
    last = next(iter(reversed(_owners(before, names.tables).values())), None)
    if match := _VERSION.search(before) or _TIME.search(before):
        is_version = match.re is _VERSION
        items = names.refs(last) if is_version else names.times(last) if last is not None else iter(())
        return match["typed"], [(_quote_ref(text, is_open=bool(match["quote"])), kind) for text, kind in items]
    if before.count("'") % 2:
        return "", []
    if (match := _AT.search(before)) and match["table"] in names.tables:
        return match["typed"], list(names.refs(names.tables[match["table"]]))
    if match := _MEMBER.search(before):
        owner = owners.get(match["owner"])
        return match["typed"], [] if owner is None else list(_columns(owner))
    word = _WORD.search(before)
    typed = word[0] if word else ""
    tables = [(name, f"{table.format} table") for name, table in names.tables.items()]
    if _TABLE_FOLLOWS.search(before):
        return typed, tables
    columns = dict(item for table in dict.fromkeys(owners.values()) for item in _columns(table))
    aliases = [(name, "alias") for name in owners if name not in names.tables and name != typed]
    is_upper = bool(typed) and typed.isupper()
    words = [(keyword.upper() if is_upper else keyword, "keyword") for keyword in KEYWORDS]
    return typed, [*columns.items(), *aliases, *tables, *words]


def _owners(query: str, tables: Mapping[str, Table]) -> dict[str, Table]:
    """Return the open tables that a query names, by name and alias, in its order."""
    result: dict[str, Table] = {}
    words = {word for keyword in KEYWORDS for word in keyword.split()} | {"version", "timestamp", "for", "left", "full"}
    for match in _NAMED.finditer(query):
        table = tables.get(match["table"])
        if table is not None:
            result[match["table"]] = table
            if match["alias"] and match["alias"].lower() not in words:
                result[match["alias"]] = table
    return result


def _columns(table: Table) -> Items:
    return ((name, "column") for name in history_of(table).cached.columns)


def _quote_ref(ref: str, *, is_open: bool) -> str:
    """Return a ref as it is written after `version as of`: a number plain, other text in quotes unless one is open."""
    if is_open:
        return ref
    return ref if ref.isdigit() else f"'{ref}'"
