"""The diff of two tables by brute force: DuckDB makes texts of all rows, which are equal for equal values."""

import re
from collections import Counter
from decimal import Decimal
from functools import cache

import duckdb
import pyarrow as pa

import snapshot_explorer as sx
from tests.inner.arrow import format_cell


def _text(column, kind):
    """Return the SQL for a value as text, equal for values that are equal, whichever type they are stored in."""
    if pa.types.is_floating(kind):
        return f"CAST({column} AS DOUBLE)::VARCHAR"
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return f"CAST({column} AS DECIMAL(38, 10))::VARCHAR"
    if pa.types.is_timestamp(kind):
        return f"epoch_us({column})::VARCHAR"
    if pa.types.is_string(kind):
        return f"hex(encode({column}))"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return f"hex({column})"
    if pa.types.is_struct(kind):
        parts = ", ".join(
            f"'{part.name}', {_text(f'{column}.{part.name}', part.type)}"
            for part in sorted(kind, key=lambda part: part.name)
        )
        return f"CASE WHEN {column} IS NOT NULL THEN [{parts}]::VARCHAR END"
    if pa.types.is_map(kind):
        return f"list_sort(map_entries({column}))::VARCHAR"
    return f"{column}::VARCHAR"


def _rows(rows, names, where):
    """Return rows that match a condition, each as a tuple of texts."""
    connection = _session()
    connection.register("rows_", rows)
    columns = ", ".join(_text(f'"{name}"', rows.schema.field(name).type) for name in names)
    return connection.sql(f"SELECT {columns} FROM rows_ WHERE {where or 'true'}").fetchall() if len(rows) else []


def as_texts(rows, names):
    """Return how often each row occurs, as a tuple of the texts of these columns."""
    return Counter(_rows(rows, names, None))


@cache
def _session():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
    return connection


def assert_diff_is_brute_force(a, b, key, renames, *, exclude=(), where=None, memory_limit=None, **rules):
    """Assert that the diff of two snapshots has the rows and the numbers that brute force finds; return the diff.

    Args:
        renames: Names in A, with those in B.
        rules: The arguments of `diff` for values that count as equal.
    """
    rules_and_columns = {"columns": renames, "exclude": exclude, "where": where, **rules}
    diff = sx.diff(a, b, key, memory_limit=memory_limit, **rules_and_columns)
    _assert_proven(sx.diff(a, b, key, preview=True, **rules_and_columns), diff)
    names, schema = list(diff.plan.columns), diff.plan.schema
    rows_a = a.to_arrow()
    rows_a = rows_a.rename_columns([renames.get(name, name) for name in rows_a.schema.names])
    folded = [_folding(schema.field(name).type, rules) for name in names]

    def texts(rows, where=None):
        return [tuple(map(_apply, folded, row)) for row in _rows(rows, names, where)]

    before, after = texts(rows_a, where), texts(b.to_arrow(), where)
    if key:
        _assert_keyed(diff, texts, before, after, [_closeness(schema.field(name), key, rules) for name in names])
    else:
        old, new = Counter(before), Counter(after)
        assert Counter(texts(diff.before)) == old - new
        assert Counter(texts(diff.after)) == new - old
        assert diff.is_empty == (old == new)
    return diff


def _assert_proven(plan, diff):
    """Assert that all that a preview calls proven is so."""
    proof, sides = plan.proof or "", {"A": len(diff.before), "B": len(diff.after)}
    if "are equal: both have" in proof or "Neither has rows" in proof:
        assert diff.is_empty
    if "differ" in proof:
        assert not diff.is_empty, proof
    for count, side in re.findall(r"At least ([\d,]+) rows? of ([AB]) differs?", proof):
        assert int(count.replace(",", "")) <= sides[side], proof
    for row in [] if plan.by_partition is None else plan.by_partition.to_arrow().to_pylist():
        counts = [_rows_in(side, row["partition"]) for side in (diff.before, diff.after)]
        if row["proof"] is not None:
            assert any(counts) == (row["proof"] == "different"), row
        if None not in (row["rows_a"], row["rows_b"]):
            assert row["rows_b"] - row["rows_a"] == counts[1] - counts[0], row


def _rows_in(rows, partition):
    texts = [[format_cell(value).text if value.is_valid else None for value in rows[name]] for name, _ in partition]
    return sum(row == tuple(text for _, text in partition) for row in zip(*texts, strict=True))


def _assert_keyed(diff, texts, before, after, close):
    places = [list(diff.plan.columns).index(name) for name in diff.plan.key]
    old, new = ({tuple(row[place] for place in places): row for row in rows} for rows in (before, after))
    changed = {
        one: [place for place, is_close in enumerate(close) if not is_close(old[one][place], new[one][place])]
        for one in old.keys() & new.keys()
    }
    changed = {one: cells for one, cells in changed.items() if cells}

    assert (len(old), len(new)) == (len(before), len(after)), "the key is not unique"
    assert Counter(texts(diff.inserted)) == Counter(new[one] for one in new.keys() - old.keys())
    assert Counter(texts(diff.deleted)) == Counter(old[one] for one in old.keys() - new.keys())
    assert Counter(texts(diff.before)) - Counter(texts(diff.deleted)) == Counter(old[one] for one in changed)
    assert Counter(texts(diff.after)) - Counter(texts(diff.inserted)) == Counter(new[one] for one in changed)
    by_column = {row["column"]: row["updated_rows"] for row in diff.by_column.to_arrow().to_pylist()}
    counts = Counter(diff.plan.columns[place] for cells in changed.values() for place in cells)
    assert {name: count for name, count in by_column.items() if count} == counts


def _apply(folding, text):
    return text if text is None else folding(text)


def _folding(dtype, rules):
    """Return how a text of `_text` is changed so that texts that count as equal are equal."""

    def folded(text):
        value = bytes.fromhex(text).decode()
        value = value.strip() if rules.get("trim") else value
        return (value.lower() if rules.get("ignore_case") else value).encode().hex().upper()

    return folded if pa.types.is_string(dtype) and (rules.get("trim") or rules.get("ignore_case")) else str


def _closeness(field, key, rules):
    """Return whether two texts of a column count as equal."""
    absolute, relative = (
        limit.get(field.name, 0) if isinstance(limit := rules.get(name) or 0, dict) else limit
        for name in ("tolerance", "relative_tolerance")
    )
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
    number = float if pa.types.is_floating(field.type) else lambda text: Decimal(str(text))

    def is_close(old, new):
        if old == new or not (is_number and (absolute or relative)) or field.name in key or None in (old, new):
            return old == new
        old, new = number(old), number(new)
        return abs(old - new) <= max(number(absolute), number(relative) * max(abs(old), abs(new))) < float("inf")

    return is_close
