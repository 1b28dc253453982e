"""Random queries mean with versions what they mean over tables that are registered by hand."""

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import snapshot_explorer
from snapshot_explorer.table.queries import to_arrow

VERSIONS = {"orders": (1, 5, 18), "events": (3, 15)}
"""Versions of the samples, the newest last."""
COLUMNS = {"orders": ("order_id", "status"), "events": ("event_id", "day")}
KEYWORDS = ("'from orders version as of 3'", "'it''s -- no comment'", "$$from 'orders' x$$", "'/* \"'")


@pytest.fixture(scope="module")
def tables():
    return {name: snapshot_explorer.open_table(snapshot_explorer.samples.path(name)) for name in VERSIONS}


@pytest.fixture(scope="module")
def by_hand(tables):
    """A connection of DuckDB with every version as a table of its own. Columns are called alike in all of them."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, versions in VERSIONS.items():
        for version in versions:
            connection.register(f"{name}_{version}", tables[name].at(version).to_arrow())
    return connection


@st.composite
def tables_named(draw, names):
    """Return a place of a table, as a user writes it and by hand, its qualifier and its columns."""
    name = draw(st.sampled_from(sorted(VERSIONS)))
    if name in names:  # a WITH query of that name hides the table
        alias = draw(st.sampled_from(["", "a1", "x"]))
        return f"{name} {alias}", f"{name} {alias}", alias or name, names[name]
    version = draw(st.sampled_from(VERSIONS[name]))
    written = draw(st.sampled_from([name, name.upper(), f'"{name}"', f"`{name}`"]))
    newest = VERSIONS[name][-1]
    forms = [f"{written} version as of {version}", f"{written} FOR VERSION AS OF '{version}'"]
    forms += [f"{written}\n /* as of 99 */ system_version as -- x\n of {version}", f"{name}@{version}"]
    forms += [f"{written} version as of 'latest~{newest - version}'"]
    forms += [written] * 2 if version == newest else []
    written = draw(st.sampled_from(forms))
    alias = draw(st.sampled_from(["", "a1", "AS x", 'as "from y"']))
    qualifier = alias.removeprefix("AS ").removeprefix("as ") or name
    return f"{written} {alias}", f"{name}_{version} AS {qualifier}", qualifier, COLUMNS[name]


@st.composite
def values(draw, qualifier, columns):
    """Return two values of a row: a whole number and a text."""
    number, text = (f"{qualifier}.{column}" for column in columns)
    numbers = [number, f"{number} + 1", f"extract(year FROM date '2026-01-01') + {number}", f"length({text})"]
    texts = [text, f"trim(both 'x' from {text})", f"{text} || {draw(st.sampled_from(KEYWORDS))}", f"upper({text})"]
    return draw(st.sampled_from(numbers)), draw(st.sampled_from(texts))


@st.composite
def conditions(draw, qualifier, columns):
    number, text = (f"{qualifier}.{column}" for column in columns)
    limit = draw(st.integers(0, 60))
    return draw(
        st.sampled_from(
            [
                f"{number} > {limit}",
                f"{number} = {limit}",
                f"{text} IN ('paid', 'placed', '2026-11-03')",
                f"{number} is not distinct from {limit}",
                f"{number} between 3 and {limit} and {text} <> {draw(st.sampled_from(KEYWORDS))}",
                "true",
            ]
        )
    )


@st.composite
def correlations(draw, qualifier, columns):
    """Return a condition on a row and a row of `inner_query`."""
    number, text = (f"{qualifier}.{column}" for column in columns)
    equal = f"inner_query.number = {number}"
    return draw(
        st.sampled_from(
            [
                equal,
                f"{equal} and inner_query.word <> {text}",
                f"{equal} and inner_query.word is not distinct from {text}",
                f"{equal} and {number} > {draw(st.integers(0, 60))}",
                f"inner_query.number > {number}",
            ]
        )
    )


@st.composite
def queries(draw, names, depth):
    """Return a query of two columns, a number and a text, as a user writes it and by hand."""
    kinds = ["plain", "plain", "join"]
    kinds += ["with", "union", "in", "from query", "comma", "scalar", "exists", "exists"] if depth else []
    kind = draw(st.sampled_from(kinds))
    if kind == "with":
        return draw(with_queries(names, depth))
    if kind == "union":
        word = draw(st.sampled_from(["union all", "UNION", "except", "intersect"]))
        left, right = draw(queries(names, depth - 1)), draw(queries(names, depth - 1))
        return tuple(f"({one}) {word} ({other})" for one, other in zip(left, right, strict=True))
    if kind == "from query":
        inner = draw(queries(names, depth - 1))
        return tuple(f"select q.* from ({one}) q(number, word)" for one in inner)
    written, plain, qualifier, columns = draw(tables_named(names))
    number, text = draw(values(qualifier, columns))
    where = draw(conditions(qualifier, columns))
    head = f"select {number} number, {text} word"
    if kind == "plain":
        return tuple(f"{head} from {one} where {where}" for one in (written, plain))
    if kind in ("join", "comma"):
        other, other_plain, other_qualifier, other_columns = draw(tables_named(names))
        if other_qualifier.strip('"').lower() == qualifier.strip('"').lower():
            other, other_plain = f"(select * from {other}) z", f"(select * from {other_plain}) z"
            other_qualifier = "z"
        on = f"{qualifier}.{columns[0]} = {other_qualifier}.{other_columns[0]}"
        if kind == "comma":
            return tuple(
                f"{head} from {a}, {b} where {on} and {where}" for a, b in ((written, other), (plain, other_plain))
            )
        side = draw(st.sampled_from(["join", "left join", "full outer join"]))
        return tuple(
            f"{head} from {a} {side} {b} on {on} where {where}" for a, b in ((written, other), (plain, other_plain))
        )
    inner = draw(queries(names, depth - 1))
    if kind in ("in", "exists"):
        condition = f"{qualifier}.{columns[0]} in (select number from ({{}}))"
        if kind == "exists":
            aggregate = draw(st.sampled_from(["", "count(*)", f"max({number})"]))
            head = f"select {aggregate} number, 'n' word" if aggregate else head
            word, matches = draw(st.sampled_from(["exists", "not exists"])), draw(correlations(qualifier, columns))
            condition = f"{word} (select 1 from ({{}}) as inner_query where {matches})"
        return tuple(
            f"{head} from {one} where {condition.replace('{}', query)}"
            for one, query in zip((written, plain), inner, strict=True)
        )
    return tuple(
        f"select (select max(number) from ({query})) number, {text} word from {one}"
        for one, query in zip((written, plain), inner, strict=True)
    )


@st.composite
def with_queries(draw, names, depth):
    known = dict(names)
    heads = []
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from([*sorted(VERSIONS), "other"]))
        body = draw(queries(known, depth - 1))
        if any(name in head[0].split(" as ")[0] for head in heads):
            continue
        form = draw(st.sampled_from(["{} as ({})", "{} AS MATERIALIZED ({})", "{}(number, word) as (\n{}\n)"]))
        heads.append(tuple(form.format(name, one) for one in body))
        known[name] = ("number", "word")
    main = draw(queries(known, depth - 1))
    return tuple(f"with {', '.join(head[side] for head in heads)} select * from ({main[side]})" for side in (0, 1))


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(queries({}, 3))
def test_a_query_means_what_it_means_over_tables_registered_by_hand(tables, by_hand, pair):
    written, plain = pair

    got = to_arrow(written, tables)

    expected = by_hand.sql(plain).to_arrow_table()
    assert got.schema.types == expected.schema.types, written
    assert sorted(map(str, got.to_pylist())) == sorted(map(str, expected.to_pylist())), written
