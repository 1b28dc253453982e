"""An unknown column that another version has: what it was renamed to, and when."""

import json

import pytest

from snapshot_explorer import open_table, samples, sql
from snapshot_explorer.errors import InvalidArgumentError
from tests.support.paimon.table_builder import PaimonTable

RENAMED = {
    "orders": ("customer", "buyer"),
    "payments": ("method", "channel"),
    "shipments": ("weight", "weight_kg"),
    "events": ("kind", "event_type"),
}
"""Of each sample, a column that was renamed and its later name."""
BEFORE = 3
"""A version of each before that."""


def message(call):
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    return str(caught.value)


def renamed_in(table, new):
    """Return the first version whose schema has the new name, looking at every version."""
    return next(version for version in table.versions() if new in table.at(version).arrow_schema.names)


@pytest.mark.parametrize("name", RENAMED)
def test_every_call_names_what_a_column_was_renamed_to(name):
    table = open_table(samples.path(name))
    old, new = RENAMED[name]
    sentence = f"{old} was renamed to {new} in version {renamed_in(table, new)}."
    calls = (
        lambda: table.at("latest").to_arrow(columns=[old]),
        lambda: table.at("latest").to_pandas(where=f"{old} is null"),
        lambda: table.at("latest").count(f"{old} is null"),
        lambda: table.at("latest").plan(f"{old} is null"),
        lambda: table.blame(f"{old} is null"),
        lambda: table.bisect(f"{old} is null"),
        lambda: table.profile_over(old),
        lambda: table.anomalies(old),
        lambda: table.diff_rows(BEFORE, "latest", where=f"{old} is null"),
        lambda: table.at(BEFORE).to_arrow(columns=[new]),
        lambda: table.row_changes(BEFORE, "latest", mode="diff", columns=[old]),
        lambda: table.sql(f"select {old} from this"),
        lambda: table.sql(f"select t.{old} from this as t"),
        lambda: table.sql(f"select * exclude ({old}) from this"),
        lambda: table.sql(f"select 1 from this where {old} is null"),
        lambda: table.sql(f"select a.{old} from this a join this version as of {BEFORE} b on true"),
        lambda: sql(f"select {new} from t@{BEFORE}", {"t": table}),
    )

    for call in calls:
        said = message(call)
        assert sentence in said
        assert "Did you mean" not in said


def with_schema(table, number, names):
    fields = [{"id": field, "name": name, "type": "STRING"} for field, name in names.items()]
    schema = json.loads(table.filesystem.cat_file(f"{table.root}/schema/schema-0"))
    changed = schema | {"id": number, "fields": [schema["fields"][0], *fields]}
    table.write(f"schema/schema-{number}", json.dumps(changed).encode())
    table.commit([(1, "a")], schemaId=number)


def test_a_column_that_was_renamed_twice_and_one_that_was_dropped(memory_root):
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    with_schema(table, 1, {1: "title", 2: "note"})
    with_schema(table, 2, {1: "label", 2: "note"})
    with_schema(table, 3, {1: "label"})
    opened = open_table(f"memory://{table.root}")

    latest = opened.at("latest")
    assert "name was renamed to title in version 2, and is label in version 4." in message(
        lambda: latest.count("name = ''")
    )
    assert "note was dropped in version 4." in message(lambda: latest.to_arrow(columns=["note"]))
    assert "title was renamed to label in version 3." in message(lambda: latest.to_arrow(columns=["title"]))
    assert "Unknown column 'labels'. Did you mean label?" in message(lambda: latest.to_arrow(columns=["labels"]))


def test_a_lost_version_makes_the_rename_no_later_than_stated(memory_root):
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    table.commit([(1, "a")])
    with_schema(table, 1, {1: "title"})
    table.remove("snapshot/snapshot-2")
    opened = open_table(f"memory://{table.root}")

    assert "name was renamed to title by version 3." in message(lambda: opened.at("latest").count("name = ''"))
