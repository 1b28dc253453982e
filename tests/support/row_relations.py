"""The history of rows against brute force: the rows of each version, and the rows that differ between versions."""

from collections import Counter

import pyarrow as pa

from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.history import history_of
from snapshot_explorer.table import parts_of
from tests.inner.arrow import exact_keys


def assert_history_is_every_version(table, *, pairs=(), **arguments):
    """Assert that the row history of a table has the rows of each version, and the changes between pairs of them.

    Versions that cannot be read must be named in the notes, and must not be in the history.

    Returns:
        The row history.
    """
    history = table.row_history(**arguments)
    states = history.to_arrow()
    where = arguments.get("where")
    for version in history.plan.versions:
        expected = rows_at(table, version, history.plan.columns, where)
        if expected is not None:
            names, rows = expected
            assert relation_at(states, version, names) == rows, f"version {version}"
    assert_no_state_is_split(states, history.plan.versions)
    lost = set(table.versions()) - set(history.plan.versions)
    assert not lost or history.plan.notes
    if where is None and "columns" not in arguments:
        for a, b in (pair for pair in pairs if set(pair) <= set(history.plan.versions)):
            assert_changes_are_those_of_a_diff(table, states, a, b)
    return history


def assert_changes_are_those_of_a_diff(table, states, a, b):
    try:
        diff = table.diff_rows(a, b, key=[])
    except SnapshotExplorerError:
        return
    before, after = relation_at(states, a), relation_at(states, b)
    compared = [(field.name, field.type) for field in diff.plan.schema]
    if compared == [(field.name, field.type) for field in states.schema][:-4]:
        inserted, deleted = (after - before).total(), (before - after).total()
        assert (diff.counts["inserted"], diff.counts["deleted"]) == (inserted, deleted), f"{a} to {b}"


def assert_no_state_is_split(states, versions):
    """Assert that the states that end and begin at a version are the difference of the rows before and after it."""
    names = states.column_names[:-4]
    first, last = (states.column(states.num_columns - index).to_pylist() for index in (4, 3))
    after = None
    for version in versions:
        before, after = after, relation_at(states, version)
        begun, ended = (
            keys_of([states.filter(pa.array([value == version for value in ends], pa.bool_()))[name] for name in names])
            for ends in (first, last)
        )
        assert begun == (after if before is None else after - before), f"begun at version {version}"
        assert before is None or ended == before - after, f"ended at version {version}"


def relation_at(states, version, names=None):
    """Return the rows that a row history has at a version, in all or some columns, as a multiset of texts."""
    first, last = (states.column(states.num_columns - index).to_pylist() for index in (4, 3))
    is_there = [begin <= version and (end is None or version < end) for begin, end in zip(first, last, strict=True)]
    rows = states.filter(pa.array(is_there, pa.bool_())).combine_chunks()
    names = rows.column_names[:-4] if names is None else names
    return keys_of([rows.column(name) for name in names])


def keys_of(columns):
    return Counter(exact_keys([pa.concat_arrays([pa.array([], column.type), *column.chunks]) for column in columns]))


def rows_at(table, version, schema, where):
    """Return the columns of a version that are comparable with a later one's, and its rows in them as a multiset.

    Columns match by field id, or else by name. None for a version that cannot be read.
    """
    reference = parts_of(table.current).loaded.version
    try:
        rows = table.at(version).to_arrow(where=where)
        own = history_of(table).table_format.version(version)
    except SnapshotExplorerError:
        return None
    if own.schema.has_ids and not reference.schema.has_ids:
        return None  # column mapping was removed: neither ids nor names match
    ids = own.field_ids
    own_names = {item.id: name for name, item in ids.items()}
    columns = {}
    for field in schema:
        name = own_names.get(reference.field_ids[field.name].id)
        if name is None:
            columns[field.name] = pa.chunked_array([pa.nulls(len(rows), field.type)])
        elif rows[name].type == field.type:
            columns[field.name] = rows[name]
        elif all(map(_is_number, (rows[name].type, field.type))):
            columns[field.name] = rows[name].cast(field.type)
    return list(columns), keys_of(columns.values())


def _is_number(dtype):
    return pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)
