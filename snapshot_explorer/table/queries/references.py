"""Find the tables in a query, and the version of each.

A table can follow FROM, JOIN and commas between tables, at any depth. For each pair of brackets, the parser tracks
whether a list of tables is open and which WITH queries are in scope, so that a column or a WITH query with the name of
a table is never mistaken for the table. Anything else in place of a table is refused.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs import Latest, Ref, parse_ref
from snapshot_explorer.table.queries.periods import Period, parse_period
from snapshot_explorer.table.queries.tokens import Token, is_clause, parse_at_sign, parse_clause, position_of

_READ_STATEMENTS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "PIVOT", "UNPIVOT")
_DESCRIBE_STATEMENTS = ("DESCRIBE", "DESC", "SUMMARIZE")
_ENDS_FROM = frozenset(
    (
        *("WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH"),
        *("UNION", "EXCEPT", "INTERSECT", "MINUS", "SELECT", "SORT", "CLUSTER", "DISTRIBUTE", "VALUES"),
    )
)
_AFTER_A_TABLE = _ENDS_FROM | frozenset(
    (
        *("ON", "USING", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "NATURAL", "SEMI", "ANTI"),
        *("ASOF", "POSITIONAL", "TABLESAMPLE", "LATERAL", "PIVOT", "UNPIVOT", "FOR", "AT", "INSERT"),
    )
)
"""Keywords that can follow a table, so are not its alias."""
_BEFORE_A_TABLE = ("LATERAL", "PIVOT", "UNPIVOT", "ONLY")
_FUNCTIONS_WITH_FROM = ("EXTRACT", "TRIM", "SUBSTRING", "OVERLAY", "POSITION")
"""Functions with FROM between their arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference to a table in a query."""

    table: str
    """The table's name among the known tables."""
    ref: Ref
    """The requested version; the newest without a clause."""
    start: int
    """The start of the reference in the query's text."""
    end: int
    """The end of the reference, including its time-travel clause."""
    qualifier: str | None
    """The name that the rest of the query uses, if there is no alias and an alias is allowed."""
    sampled: bool = False
    """Whether TABLESAMPLE follows, which must precede an alias in Spark."""
    number_as_text: str | None = None
    """The version's number if it is in quotes, and so may also be the name of a tag."""
    period: Period | None = None
    """The period whose states of rows are read; None for the rows of one version."""


@dataclass(slots=True)
class _Level:
    """The state within one pair of brackets."""

    opener: str = ""
    scope: frozenset[str] = frozenset()
    is_first: bool = True
    is_query: bool = False
    in_from: bool = False
    expects: bool = False
    is_bare: bool = False
    """Whether the next table cannot have an alias."""
    with_part: Literal["", "name", "head", "body", "next"] = ""
    with_name: str = ""
    is_recursive: bool = False


def references(query: str, tokens: Sequence[Token], names: Iterable[str], now: datetime) -> tuple[Reference, ...]:
    """Return the references to tables in a query, in the order of the text."""
    walk = _Walk(query, [token for token in tokens if token.kind not in ("space", "comment")], tuple(names), now)
    return walk.run()


@dataclass(slots=True)
class _Walk:
    query: str
    tokens: Sequence[Token]
    names: tuple[str, ...]
    now: datetime
    at: int = 0
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    references: list[Reference] = field(default_factory=list)

    def run(self) -> tuple[Reference, ...]:
        self._head()
        while self.at < len(self.tokens):
            token, level = self.tokens[self.at], self.levels[-1]
            self.at += 1
            if token.kind == "sign":
                self._sign(token, level)
            elif token.kind in ("word", "name"):
                self._word(token, level)
            else:
                level.expects = level.is_first = False
        return tuple(self.references)

    def _before(self, back: int = 1) -> str:
        at = self.at - 1 - back
        return self.tokens[at].keyword if at >= 0 else ""

    def _next(self) -> str:
        following = self.tokens[self.at] if self.at < len(self.tokens) else None
        return "" if following is None else following.keyword or following.text

    def _head(self) -> None:
        """Check that the statement only reads, and skip EXPLAIN and DESCRIBE."""
        if not self.tokens or self.tokens[0].text == ";":
            raise InvalidArgumentError(
                "The query is empty. Write one, such as: select * from orders version as of 17 limit 10."
            )
        if self._next() == "EXPLAIN":
            self.at += 1
            if self._next() == "ANALYZE":
                self._refuse(self.tokens[self.at], "EXPLAIN ANALYZE")
            while self._next() in ("EXTENDED", "FORMATTED", "CODEGEN", "COST"):
                self.at += 1
            if self._next() == "(":
                self.at += next((n for n, token in enumerate(self.tokens[self.at :], 1) if token.text == ")"), 0)
        if self._next() in _DESCRIBE_STATEMENTS:
            self.at += 1
            while self._next() in ("TABLE", "QUERY", "EXTENDED", "FORMATTED"):
                self.at += 1
            self.levels[-1].expects = self.levels[-1].is_bare = self._next() not in (*_READ_STATEMENTS, "(")
        elif self._next() not in (*_READ_STATEMENTS, "("):
            first = self.tokens[min(self.at, len(self.tokens) - 1)]
            self._refuse(first, first.text[:40])

    def _refuse(self, token: Token, verb: str) -> None:
        raise InvalidArgumentError(
            f"{verb}{position_of(self.query, token.start)} is refused: queries are read-only. Begin with SELECT, WITH, "
            "VALUES, FROM, EXPLAIN or DESCRIBE."
        )

    def _sign(self, token: Token, level: _Level) -> None:
        if token.text in "([{":
            self._open(token, level)
        elif token.text in ")]}":
            self._close()
        elif token.text == ",":
            if level.with_part == "next":
                level.with_part = "name"
            level.expects = level.in_from
        elif token.text == ";":
            if self.at < len(self.tokens) and any(other.text != ";" for other in self.tokens[self.at :]):
                following = next(other for other in self.tokens[self.at :] if other.text != ";")
                raise InvalidArgumentError(
                    f"A second statement begins{position_of(self.query, following.start)}. Write one query at a time."
                )
        else:
            level.expects = level.is_first = False

    def _open(self, token: Token, level: _Level) -> None:
        before = self.tokens[self.at - 2] if self.at > 1 else None
        child = _Level(opener=before.keyword if before else "", scope=level.scope)
        if token.text != "(":
            child.is_first = False
        elif level.with_part == "head" and child.opener in ("AS", "MATERIALIZED"):
            level.with_part = "body"
            if level.is_recursive:
                child.scope |= {level.with_name}
        elif level.with_part == "next":
            level.with_part = ""
        child.expects = child.in_from = level.expects and token.text == "("
        level.expects = level.is_first = False
        self.levels.append(child)

    def _close(self) -> None:
        if len(self.levels) == 1:
            return  # the engine raises the error
        self.levels.pop()
        level = self.levels[-1]
        if level.with_part == "body":
            level.scope |= {level.with_name}
            level.with_part = "next"

    def _word(self, token: Token, level: _Level) -> None:
        is_field = self.at > 1 and self.tokens[self.at - 2].text == "."
        keyword = "" if is_field else token.keyword
        if level.with_part in ("name", "head"):
            self._in_with(token, level)
            return
        if level.with_part == "next":
            level.with_part = ""
            if keyword not in _READ_STATEMENTS and len(self.levels) == 1:
                self._refuse(token, token.text)
        if not self._structure(keyword, level):
            if level.expects:
                self._table(token, level)
            level.expects = False
        level.is_first = False

    def _in_with(self, token: Token, level: _Level) -> None:
        """Parse the words of `WITH RECURSIVE name (columns) AS NOT MATERIALIZED (`."""
        if level.with_part == "name":
            if token.keyword == "RECURSIVE" and self._next() not in ("AS", "("):
                level.is_recursive = True
            else:
                level.with_name, level.with_part = token.value.lower(), "head"
        level.is_first = False

    def _structure(self, keyword: str, level: _Level) -> bool:
        if keyword == "WITH" and level.is_first:
            level.is_query, level.with_part = True, "name"
            level.expects = level.in_from = False
        elif keyword == "FROM" and self._opens_from(level):
            level.is_query = level.in_from = level.expects = True
        elif keyword == "JOIN" and level.in_from:
            level.expects = True
        elif keyword == "LATERAL" and self._next() == "VIEW":
            level.in_from = level.expects = False
        elif keyword in _ENDS_FROM and (keyword != "VALUES" or level.expects or level.is_first):
            level.is_query |= keyword in ("SELECT", "VALUES")
            level.in_from = level.expects = False
        elif keyword in ("TABLE", "PIVOT", "UNPIVOT") and level.is_first and self._next() not in ("(", ".", ""):
            level.expects, level.is_bare = True, keyword == "TABLE"
        elif keyword == "INSERT" and self._next() in ("INTO", "OVERWRITE"):
            self._refuse(self.tokens[self.at - 1], "INSERT")
        else:
            return keyword in _BEFORE_A_TABLE and level.expects and self._next() not in (",", ")", ".", "", "AS")
        return True

    def _opens_from(self, level: _Level) -> bool:
        """Return whether a FROM begins a list of tables, unlike in `extract(year from x)` or `is distinct from x`."""
        if self._before() == "DISTINCT" and self._before(2) in ("IS", "NOT"):
            return False
        return level.is_query or (level.is_first and level.opener not in _FUNCTIONS_WITH_FROM)

    def _table(self, token: Token, level: _Level) -> None:
        """Record the table at this position; nothing for a function or a WITH query."""
        following = self.tokens[self.at : self.at + 8]
        if self._next() == "(" and token.kind == "word":
            return
        if self._next() == ".":
            parts = [token.text]
            while self._next() == "." and self.at + 1 < len(self.tokens):
                parts.append(self.tokens[self.at + 1].text)
                self.at += 2
            raise InvalidArgumentError(self._unknown(token, ".".join(parts), self.tokens[self.at - 1].value))
        if token.value.lower() in level.scope:
            if is_clause(following) or self.query[token.end : token.end + 1] == "@":
                raise InvalidArgumentError(
                    f"{token.text}{position_of(self.query, token.start)} is a WITH query, which has no versions. Write "
                    "the version after a table name, or rename that query."
                )
            return
        self._note(token, level, following)

    def _note(self, token: Token, level: _Level, following: Sequence[Token]) -> None:
        table = self._find_table(token.value)
        ref: Ref = Latest()
        end, number, period = token.end, None, None
        if table is None and token.kind == "name" and "@" in token.value:
            name, _, text = token.value.partition("@")
            table = self._find_table(name)
            ref = ref if table is None else parse_ref(text, now=self.now)
        elif table is not None and (sign := parse_at_sign(self.query, token, self.now)):
            ref, end = sign
            while self.at < len(self.tokens) and self.tokens[self.at].start < end:
                self.at += 1
        elif table is not None and (version_clause := parse_clause(self.query, following, self.now)):
            self.at += version_clause.size
            ref, end, number = version_clause.ref, self.tokens[self.at - 1].end, version_clause.number_as_text
        elif table is not None and (period := parse_period(self.query, following, self.now)):
            self.at += period.size
            end = self.tokens[self.at - 1].end
        if table is None:
            raise InvalidArgumentError(self._unknown(token, token.text, token.value))
        has_alias = self._has_alias()
        self.references.append(
            Reference(
                table=table,
                ref=ref,
                start=token.start,
                end=end,
                qualifier=None if has_alias or level.is_bare else token.value,
                sampled=self._next() == "TABLESAMPLE",
                number_as_text=number,
                period=period,
            )
        )
        level.is_bare = False

    def _has_alias(self) -> bool:
        """Return whether an alias follows, and check that no time-travel clause follows the alias."""
        following = self.tokens[self.at : self.at + 8]
        if not following or following[0].kind not in ("word", "name"):
            return False
        if following[0].keyword in _AFTER_A_TABLE:
            return False
        behind = following[2:] if following[0].keyword == "AS" else following[1:]
        if is_clause(behind):
            raise InvalidArgumentError(
                f"The version follows the alias{position_of(self.query, behind[0].start)}. Write it after the table's "
                "name: orders version as of 17 as o."
            )
        return True

    def _find_table(self, name: str) -> str | None:
        """Return the table with this name: the exact match, or the only match that differs in case."""
        if name in self.names:
            return name
        alike = [known for known in self.names if known.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None

    def _unknown(self, token: Token, written: str, last: str) -> str:
        near = difflib.get_close_matches(last.lower(), [name.lower() for name in self.names], 1, 0.5)
        meant = next((name for name in self.names if near and name.lower() == near[0]), None)
        hint = f"Did you mean {meant}? " if meant else ""
        tables = ", ".join(self.names) or "none"
        return f"Unknown table {written}{position_of(self.query, token.start)}. {hint}Tables: {tables}."
