"""Rewrite a query for an engine, with generated table names, and restore the names in messages."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from snapshot_explorer.table.queries.references import Reference
from snapshot_explorer.table.queries.tokens import Token

Dialect = Literal["duckdb", "spark"]

_GENERATED = re.compile(r"`?\bsnapshot__(\d+)\b`?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenQuery:
    """A rewritten query."""

    query: str
    """The text of the user."""
    text: str
    starts: tuple[int, ...]
    """The starts of the parts of `text`, ascending."""
    origins: tuple[int, ...]
    """The start of each part in `query`."""

    def origin(self, at: int) -> int:
        """Return the position in the query for a position in the text."""
        part = max(bisect_right(self.starts, at) - 1, 0)
        within = at - self.starts[part]
        end = self.origins[part + 1] if part + 1 < len(self.origins) else len(self.query)
        return min(self.origins[part] + within, max(end - 1, self.origins[part]))


def generated_name(number: int) -> str:
    """Return the generated name of a table at a version."""
    return f"snapshot__{number}"


def restore_names(sentence: str, written: Mapping[int, str]) -> str:
    """Return an engine's message with the user's table names in place of generated ones."""
    return _GENERATED.sub(lambda match: written.get(int(match[1]), match[0]), sentence)


def restore_column(column: str, query: str, written: Mapping[int, str]) -> str:
    """Return the name of a result's column, which DuckDB derives from an expression, with the user's table names.

    Names that the user's tables or query contain are unchanged.
    """
    if _GENERATED.fullmatch(column) or _GENERATED.search(query):
        return column
    for number, table in written.items():
        column = column.replace(f"{generated_name(number)} AS {table}", table)
    return restore_names(column, written)


def rewrite(
    query: str, tokens: Sequence[Token], tables: Sequence[tuple[Reference, str]], dialect: Dialect = "duckdb"
) -> RewrittenQuery:
    """Return the query with the given texts in place of tables, without comments; all else is unchanged.

    For Spark, quoted names are converted to backquotes, and backslashes in strings are escaped.
    """
    parts: list[tuple[str, int]] = []
    waiting = list(tables)
    done = 0
    for position, token in enumerate(tokens):
        if waiting and waiting[0][0].start == token.start:
            reference, text = waiting.pop(0)
            parts.append((text + _qualifier(reference, dialect), token.start))
            done = reference.end
        if token.start >= done and token.text != ";":
            is_raw = position > 0 and tokens[position - 1].text in ("r", "R")
            parts.append((token.text if is_raw else _rewrite_token(token, dialect), token.start))
    starts, at = [], 0
    for text, _ in parts:
        starts.append(at)
        at += len(text)
    return RewrittenQuery(
        query=query,
        text="".join(text for text, _ in parts),
        starts=tuple(starts),
        origins=tuple(origin for _, origin in parts),
    )


def _qualifier(reference: Reference, dialect: Dialect) -> str:
    """Return the alias by which the rest of the query can use the table's name."""
    if reference.qualifier is None or (reference.sampled and dialect == "spark"):
        return ""
    return f" AS {quote_in_dialect(reference.qualifier, dialect)}"


def quote_in_dialect(text: str, dialect: Dialect = "duckdb") -> str:
    """Return a name in the quotes of a dialect."""
    quote = '"' if dialect == "duckdb" else "`"
    return quote + text.replace(quote, quote * 2) + quote


def _rewrite_token(token: Token, dialect: Dialect) -> str:
    if token.kind == "comment":
        # Keep line breaks, so that positions in an engine's messages are right, and hints, which are for the engine.
        return token.text if token.text.startswith("/*+") else " " + "\n" * token.text.count("\n")
    if token.kind == "name":
        return quote_in_dialect(token.value, dialect)
    if token.kind == "text" and dialect == "spark":
        if token.text[0] in "eE":
            inner = re.sub(r"\\.|''", lambda match: match[0].replace("''", "\\'"), token.text[2:-1], flags=re.DOTALL)
            return f"'{inner}'"
        return "'" + token.value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return token.text
