"""Tables whose schema was changed after the newest commit: `latest` has the current one, a version that of its commit.

So do Iceberg's and Paimon's engines, for a query without a version and for time travel. In Delta and Hudi a change of
the schema is a commit.
"""

import json

import pytest

from snapshot_explorer import check, open_table
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.table import parts_of
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

NEWEST = ["latest", "HEAD", "-1", "latest~0", "main", "branch:main"]
VERSION = [2, "2", "v2", "tag:eom", "@2100-01-01", "branch:main@2"]
ROWS = [(1, "a"), (2, "b")]


class AlteredIceberg:
    """An Iceberg table (id, name) with a row in each of two versions."""

    def __init__(self, filesystem, root, *, version=2):
        self.table = IcebergTable(filesystem, root, version=version)
        self.url = f"memory://{root}"
        commits = [self.table.commit([row]) for row in ROWS]
        self.table.tag("eom", commits[-1])
        self.table.metadata["refs"]["dev"] = {"snapshot-id": commits[0], "type": "branch"}

    def alter(self, change):
        """Change a copy of the columns, and make them the current ones."""
        schemas = self.table.metadata["schemas"]
        fields = [dict(field) for field in schemas[-1]["fields"]]
        schemas.append({**schemas[-1], "schema-id": len(schemas), "fields": change(fields)})
        self.table.metadata["current-schema-id"] = len(schemas) - 1
        self.table.write_metadata()

    def commit(self):
        """Commit another row."""
        self.table.commit([(3, "c")])
        self.table.metadata["snapshots"][-1]["schema-id"] = self.table.metadata["current-schema-id"]
        self.table.write_metadata()

    @staticmethod
    def column(number, name):
        """Return a column that no file has."""
        return {"id": number, "name": name, "required": False, "type": "long"}


class AlteredPaimon:
    """A Paimon table of the same rows."""

    def __init__(self, filesystem, root):
        self.table = PaimonTable(filesystem, root)
        self.url = f"memory://{root}"
        for row in ROWS:
            self.table.commit([row])
        self.table.tag("eom", 2)
        self.schema = json.loads(filesystem.cat_file(f"{root}/schema/schema-0"))

    def alter(self, change):
        fields = [dict(field) for field in self.schema["fields"]]
        self.schema |= {"id": self.schema["id"] + 1, "fields": change(fields), "highestFieldId": 9}
        self.table.write(f"schema/schema-{self.schema['id']}", json.dumps(self.schema).encode())

    def commit(self):
        self.table.commit([(3, "c")], schemaId=self.schema["id"])

    @staticmethod
    def column(number, name):
        return {"id": number, "name": name, "type": "BIGINT"}


@pytest.fixture(params=[AlteredIceberg, AlteredPaimon])
def altered(request, memory_root):
    return request.param(*memory_root)


def rename(name):
    """Rename the column `name`."""
    return lambda fields: [fields[0], fields[1] | {"name": name}]


def names(snapshot):
    """Return the names of the columns, as each answer has them."""
    found = {
        tuple(snapshot.to_arrow().column_names),
        tuple(snapshot.arrow_schema.names),
        tuple(column.name for column in snapshot.schema.columns),
    }
    (result,) = found
    return list(result)


def changes(table):
    """Return changes of columns, by what the newest state has then, and its rows."""
    return {
        "add": (lambda fields: [*fields, table.column(7, "more")], [{"id": 1, "name": "a", "more": None}]),
        "rename": (rename("label"), [{"id": 1, "label": "a"}]),
        "drop": (lambda fields: fields[:1], [{"id": 1}]),
        "reorder": (lambda fields: fields[::-1], [{"name": "a", "id": 1}]),
        "replace": (lambda fields: [fields[0], table.column(7, "name")], [{"id": 1, "name": None}]),
    }


@pytest.mark.parametrize("change", ["add", "rename", "drop", "reorder", "replace"])
def test_the_newest_state_has_the_current_schema_and_every_version_its_own(altered, change):
    apply, expected = changes(altered)[change]
    altered.alter(apply)

    table = open_table(altered.url)

    assert table.current.to_arrow(where="id = 1").to_pylist() == expected
    assert table.current.to_arrow().num_rows == len(ROWS)
    assert names(table.current) == list(expected[0])
    for ref in NEWEST:
        assert table.at(ref) is table.current
    for ref in VERSION:
        assert names(table.at(ref)) == ["id", "name"]
        rows = sorted(table.at(ref).to_arrow().to_pylist(), key=lambda row: row["id"])
        assert rows == [{"id": number, "name": name} for number, name in ROWS]
    assert names(table.at("latest~1")) == names(table.at(1)) == ["id", "name"]


def test_a_table_whose_schema_did_not_change_has_one_newest_snapshot(altered):
    table = open_table(altered.url)

    assert all(table.at(ref) is table.current for ref in (*NEWEST, *VERSION))


def test_an_update_notices_a_change_of_the_schema_without_a_commit(altered):
    table = open_table(altered.url)
    before = table.current
    assert names(before) == ["id", "name"]

    altered.alter(rename("label"))

    assert table.update() is not before
    assert names(table.current) == ["id", "label"]
    altered.alter(rename("text"))
    altered.commit()
    assert names(table.update()) == names(table.at(3)) == ["id", "text"]
    assert names(table.at(2)) == ["id", "name"]


def test_a_number_shares_the_metadata_that_the_newest_state_has_read(altered, register):
    altered.alter(rename("label"))
    table = open_table(altered.url)

    files = table.current.files().to_arrow()

    assert parts_of(table.at(2)).loaded.cached_files() is not None
    assert table.at(2).files().to_arrow().equals(files)
    assert parts_of(table.at(2)).loaded is parts_of(table.at(2)).loaded
    assert table.at(2).files(statistics=True)["lower"].type.names == ["id", "name"]
    assert table.current.files(statistics=True)["lower"].type.names == ["id", "label"]


def test_differences_and_comparisons_have_the_schema_that_each_side_names(altered):
    altered.alter(rename("label"))
    table = open_table(altered.url)

    assert table.diff_rows(1).after.to_pylist() == [{"id": 2, "label": "b"}]
    assert table.diff_rows(1, 2).after.to_pylist() == [{"id": 2, "name": "b"}]
    assert table.diff_rows(2, "latest").after.num_rows == 0
    assert table.diff_rows(1, where="label = 'b'").after.num_rows == 1
    with pytest.raises(InvalidArgumentError, match="label"):
        table.diff_rows(1, 2, where="label = 'b'")
    assert table.compare(2, "latest").schema.to_arrow()["change"].to_pylist() == ["renamed"]
    assert table.compare(1, 2).schema.to_arrow().num_rows == 0


def test_questions_about_all_versions_have_the_current_schema_and_those_up_to_a_number_its_own(altered):
    altered.alter(rename("label"))
    table = open_table(altered.url)

    for between, name in ((None, "label"), ("1..", "label"), ("1..latest", "label"), ("1..2", "name")):
        assert table.blame(f"{name} = 'b'", between=between).lines["version"].to_pylist() == [2]
        assert list(table.profile_over(between=between).columns) == ["id", name]
        assert list(table.profile_over(between=between, exact=True).columns) == ["id", name]
        assert table.anomalies(name, between=between).num_rows == 0
    assert table.bisect("label = 'b'").version == table.bisect("label = 'b'", bad="latest").version == 2
    assert table.bisect("name = 'b'", bad=2, good=1).version == 2
    assert "label" in str(table.bisect("null_count.label = 0").call)
    traced = table.trace("label = 'b'").versions.to_arrow().select(["version", "rows"]).to_pylist()
    assert {"version": 2, "rows": 1} in traced
    with pytest.raises(InvalidArgumentError, match="name"):
        table.blame("name = 'b'")


def test_queries_have_the_current_schema_unless_they_name_a_version(altered):
    altered.alter(rename("label"))
    table = open_table(altered.url)

    assert table.sql("select label from this order by 1")["label"].tolist() == ["a", "b"]
    assert table.sql("select name from this version as of 2 order by 1")["name"].tolist() == ["a", "b"]
    both = "select label = name as same from this a join this version as of 2 b using (id)"
    assert table.sql(both)["same"].tolist() == [True, True]
    assert table.sql("select count(*) n from this a join this b using (id, label)")["n"].item() == 2


def test_the_history_does_not_attribute_the_change_to_a_commit(altered):
    before = open_table(altered.url).history().to_arrow()

    altered.alter(rename("label"))

    assert open_table(altered.url).history().to_arrow().equals(before)
    (line,) = check(open_table(altered.url), "schema-change", since="9000d").lines
    assert line.found == "The schema is the same at 2 versions."


def test_the_head_of_a_branch_has_the_current_schema_and_the_history_of_a_snapshot_its_own(memory_root):
    altered = AlteredIceberg(*memory_root)
    altered.alter(rename("label"))
    first = altered.table.metadata["snapshots"][0]["snapshot-id"]

    assert names(open_table(altered.url).at("branch:dev")) == ["id", "label"]
    assert names(open_table(altered.url, branch="dev").current) == ["id", "label"]
    assert names(open_table(altered.url, branch="dev").at(1)) == ["id", "name"]
    assert names(open_table(altered.url, branch=str(first)).current) == ["id", "name"]


@pytest.mark.parametrize(
    ("change", "version"), [("add", 2), ("rename", 2), ("drop", 2), ("reorder", 2), ("replace", 2), ("rename", 1)]
)
def test_a_branch_that_main_contains_is_compared_in_the_current_schema(memory_root, change, version):
    """Its newest version is one of main too, and has the schema of its commit there."""
    altered = AlteredIceberg(*memory_root, version=version)
    apply, (row,) = changes(altered)[change]
    altered.alter(apply)
    late = [{name: {1: 2, "a": "b"}.get(value) for name, value in row.items()}]
    table = open_table(altered.url)

    ahead, behind = (
        table.diff_rows(*sides, key=[]) for sides in (("branch:dev", "main"), ("branch:main", "branch:dev"))
    )

    assert (ahead.inserted.to_pylist(), len(ahead.deleted)) == (late, 0)
    assert (behind.deleted.to_pylist(), len(behind.inserted)) == (late, 0)
    assert not len(table.compare("branch:dev", "main").schema)
    assert "version 1 of branch dev, of " in repr(table.compare("main", "branch:dev"))
    assert len(table.compare(1, "branch:dev").schema) > 0
    assert table.history(between="branch:dev..main").to_arrow()["version"].to_pylist() == [2, 1]


def test_a_default_of_a_column_that_was_added_is_in_the_newest_state_alone(memory_root):
    altered = AlteredIceberg(*memory_root, version=3)
    altered.alter(lambda fields: [*fields, altered.column(7, "more") | {"initial-default": 5}])

    table = open_table(altered.url)

    assert table.current.to_arrow()["more"].to_pylist() == [5, 5]
    assert table.current.count("more = 5") == 2
    assert table.at(2).to_arrow().column_names == ["id", "name"]
    assert table.diff_rows(2, "latest").after.to_pylist()[0]["more"] == 5


def test_a_table_before_its_first_commit_has_the_current_schema(memory_root):
    filesystem, root = memory_root
    IcebergTable(filesystem, root).write_metadata()
    assert names(open_table(f"memory://{root}").current) == ["id", "name"]
