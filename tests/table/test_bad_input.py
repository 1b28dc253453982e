"""What users get wrong, and what is wrong with their tables: one sentence each, never a traceback of ours."""

import pytest

from snapshot_explorer import check, explore, find_tables, open_table, sql
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def written(memory_root):
    table = PaimonTable(*memory_root)
    for number in range(1, 5):
        table.commit([(number, str(number))])
    return table


@pytest.fixture
def url(written):
    return f"memory://{written.root}"


def test_a_missing_path_is_refused(tmp_path):
    with pytest.raises(TableNotFoundError, match="missing or empty. Check the path"):
        open_table(tmp_path / "nowhere")


def test_a_folder_that_is_not_a_table_is_refused_with_what_it_contains(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")

    with pytest.raises(TableNotFoundError, match=r"Found: notes.txt. Use the path of the table's own folder"):
        open_table(tmp_path)


def test_a_path_that_is_a_file_is_refused_by_name(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")

    with pytest.raises(SnapshotExplorerError, match="notes.txt"):
        open_table(tmp_path / "notes.txt")


def test_an_unknown_format_is_refused(url):
    with pytest.raises(InvalidArgumentError, match="No format is called 'lance'. Formats: paimon"):
        open_table(url, format="lance")


@pytest.mark.parametrize("ref", [99, "99", "99~1", "latest~10", "tag:nope", "@2020-01-01", 0])
def test_an_unknown_version_is_refused(url, ref):
    with pytest.raises(SnapshotNotFoundError):
        open_table(url).at(ref)


def test_an_unknown_version_says_which_exist(url):
    with pytest.raises(SnapshotNotFoundError, match=r"99.* 1 to 4"):
        open_table(url).at(99)


@pytest.mark.parametrize("ref", ["", "seventeen", "17..18", "@someday", "latest~x", "--1", -1])
def test_text_that_is_not_a_ref_is_refused(url, ref):
    with pytest.raises(SnapshotExplorerError):
        open_table(url).at(ref)


def test_a_version_that_has_expired_is_refused_with_those_left(written, url):
    table = open_table(url)
    written.expire(3)

    with pytest.raises(SnapshotNotFoundError, match="3 to 4"):
        table.at(1)


def test_a_truncated_snapshot_file_is_named(written, url):
    content = written.filesystem.cat_file(f"{written.root}/snapshot/snapshot-4")
    written.write("snapshot/snapshot-4", content[: len(content) // 2])

    with pytest.raises(CorruptTableError, match="snapshot/snapshot-4"):
        open_table(url)


@pytest.mark.parametrize("path", ["manifest/manifest-2", "manifest/manifest-list-4-0", "manifest/manifest-list-4-1"])
def test_a_missing_manifest_is_named(written, url, path):
    table = open_table(url)
    written.remove(path)

    with pytest.raises(SnapshotExplorerError, match=path):
        table.current.files()


@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"garbage", b"ORC", b"PAR1PAR1"])
@pytest.mark.parametrize("path", ["manifest/manifest-2", "manifest/manifest-list-4-0"])
def test_a_manifest_that_is_garbage(written, url, path, content):
    table = open_table(url)
    written.write(path, content)

    with pytest.raises(CorruptTableError, match=path):
        table.current.files()


def test_a_schema_file_that_is_missing(written, url):
    written.commit([(5, "5")], schemaId=7)

    with pytest.raises(CorruptTableError, match="schema/schema-7"):
        _ = open_table(url).at(5).schema


def test_a_schema_file_that_is_garbage(written, url):
    written.write("schema/schema-0", b'{"id": 0, "fields": [')

    with pytest.raises(CorruptTableError, match="schema/schema-0"):
        _ = open_table(url).current.schema


def test_a_data_file_that_is_missing(written, url):
    written.remove("bucket-0/data-2.parquet")

    with pytest.raises(SnapshotExplorerError, match="bucket-0/data-2.parquet"):
        open_table(url).current.to_arrow()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"garbage garbage garbage", b"PAR1" + bytes(50) + b"PAR1"])
def test_a_data_file_that_is_garbage(written, url, content):
    written.write("bucket-0/data-2.parquet", content)

    with pytest.raises(CorruptTableError, match="bucket-0/data-2.parquet"):
        open_table(url).current.to_arrow()


def noted(answer, rows=None):
    """Return rows, and what an answer says is missing from them."""
    return answer.to_dict() if rows is None else rows, answer.notes


def retained(table):
    found = table.retention(keep="1d", keep_last=1)
    return noted(found, found.unloadable.to_dict())


CALLS = {
    "open": lambda table: table.current.version,
    "versions": lambda table: table.versions(),
    "history": lambda table: noted(table.history()),
    "tags": lambda table: table.tags().to_dict(),
    "lifetimes": lambda table: noted(table.lifetimes().frame),
    "retention": retained,
    "changes": lambda table: noted(table.at("latest").file_changes(since="earliest")),
    "compare": lambda table: noted(table.compare(2, 4).files),
    "compared manifests": lambda table: noted(table.compare(2, 4).manifests),
    "schema": lambda table: str(table.current.schema),
    "files": lambda table: table.at(4).files(statistics=True).to_dict(),
    "rows": lambda table: table.current.to_arrow().to_pylist(),
    "past rows": lambda table: table.at(2).to_arrow().to_pylist(),
    "row changes": lambda table: table.row_changes(1, 4).to_pylist(),
    "snapshots": lambda table: table.inspect("snapshots").to_dict(),
    "schemas": lambda table: table.inspect("schemas").to_dict(),
}
PAGE = b"<html><body><h1>503 Service Unavailable</h1></body></html>"


def answers(url):
    """Return what each call returns, with what it says is missing, or what it raises."""
    found = {}
    for name, call in CALLS.items():
        try:
            found[name] = call(open_table(url))
        except SnapshotExplorerError as error:
            found[name] = error
    return found


@pytest.mark.parametrize("content", [b"", PAGE], ids=["empty", "page"])
@pytest.mark.parametrize(
    "path",
    [
        "snapshot/snapshot-2",
        "snapshot/snapshot-4",
        "schema/schema-0",
        "manifest/manifest-list-4-0",
        "manifest/manifest-2",
        "bucket-0/data-2.parquet",
    ],
)
def test_what_stands_in_a_files_place_gives_the_whole_answer_or_an_error_that_names_it(written, url, path, content):
    whole = answers(url)
    assert not [name for name, answer in whole.items() if isinstance(answer, Exception)]
    written.write(path, content)

    found = answers(url)

    other = {name: answer for name, answer in found.items() if answer != whole[name]}
    assert {name for name, answer in other.items() if path not in str(answer)} == set()
    assert other


@pytest.mark.parametrize("content", [b"", PAGE, b"9" * 5_000, b"\xff\xfe"], ids=["empty", "page", "huge", "bytes"])
@pytest.mark.parametrize("hint", ["LATEST", "EARLIEST"])
def test_what_stands_in_a_hints_place_changes_nothing(written, url, hint, content):
    whole = answers(url)
    written.write(f"snapshot/{hint}", content)

    assert answers(url) == whole


def test_an_unknown_column_names_the_nearest(url):
    with pytest.raises(InvalidArgumentError, match="nmae.*name"):
        open_table(url).current.to_arrow(columns=["nmae"])


@pytest.mark.parametrize("where", ["nmae = 'a'", "id ==", "", "id = (select 1)", "1; drop table x"])
def test_a_condition_that_does_not_fit(url, where):
    with pytest.raises(InvalidArgumentError):
        open_table(url).current.to_arrow(where=where)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda table: table.at(3).to_arrow(limit="3"), "limit must be 0 or more, got '3'. Leave it out for all rows."),
        (lambda table: table.history(limit=2**63), "limit must be below 2**63, got 9223372036854775808. Leave it out"),
        (lambda table: table.history(limit=0.5), "limit must be 0 or more, got 0.5. Leave it out for all commits."),
        (lambda table: table.history(5), "A value of type int is not a range of versions. Write two refs"),
        (
            lambda table: table.history(since="tomorow"),
            "since='tomorow' is not a time. Use a datetime, or text such as",
        ),
        (lambda table: table.history(kind="compct"), "'compct' is not a kind of commit. Did you mean compact?"),
        (lambda table: table.history(user=3), "user must be text, got 3. Write it in quotes."),
        (lambda table: table.at(3).to_arrow(3), "columns must be a list of names, got 3. Write ['3']."),
        (lambda table: table.at(3).to_arrow([0]), "Unknown column '0'. Columns: id, name."),
        (lambda table: table.at(3).to_arrow(limit=True), "limit must be 0 or more, got True. Leave it out for all"),
        (lambda table: table.at(3).to_arrow(where={"id": 1}), "A condition is SQL text, got {'id': 1}."),
        (lambda table: table.at(3).to_pandas(types={"id": "int"}), "types={'id': 'int'} is unknown. Types: arrow, "),
        (lambda table: table.row_changes(1, 3, 5), "columns must be a list of names, got 5. Write ['5']."),
        (lambda table: table.sql("from this", engine=table), "engine must be duckdb or spark, got Table. Give a Spark"),
        (lambda table: table.compare(2, 3).entries(5), "'5' is not a manifest of version 2 or 3."),
        (lambda table: table.diff_rows(2, 3).showing("3"), "limit must be 0 or more, got '3'."),
        (lambda table: open_table(table.path, format=["delta"]), "No format is called ['delta']. Formats: paimon"),
        (
            lambda table: open_table("shop.orders", catalog=3, format="paimon"),
            "With format='paimon', catalog must be the URI of a Paimon REST catalog, such as http://host:8080. Got",
        ),
        (lambda table: table.at(3).to_spark(table), "spark must be a Spark session, got Table."),
        (lambda table: open_table("shop.orders", spark=3), "spark must be a Spark session, got int."),
        (lambda table: open_table("shop.orders", catalog=3), "catalog must be the URI of an Iceberg REST catalog, or"),
        (lambda table: find_tables(table.path, depth="3"), "depth must be 0 or more, got '3'. find_tables(..., depth"),
        (lambda table: table.retention(keep_last="3"), "keep_last must be 1 to 2,147,483,647, got '3'. The newest"),
        (lambda table: table.at(None), "A value of type NoneType is not a valid ref. Use a number, a text or"),
        (lambda table: table.at(3).files("id=1"), "partition must be a dict such as {'dt': '2026-11-01'}, got str."),
        (lambda table: table.at(3).entries(5), "'5' is not a manifest of version 3."),
        (lambda table: table.inspect(3), "No system table is called '3'."),
        (
            lambda table: table.anomalies(rules=3),
            "rules must be AnomalyRules of snapshot_explorer.analysis.rows, such as",
        ),
        (lambda table: table.health(3, between="1..4"), "health takes a version or a range, got 3 and '1..4'."),
        (lambda table: table.inspect(ref=3), "A version, 3, needs the name of a metadata table. "),
        (lambda table: table.at(3).file_changes(since=4), "since='4' is version 4, after version 3."),
        (lambda table: check(table.path), "check takes an open table or lake, got '"),
        (lambda table: table.diff_rows(3, 4, memory_limit="1"), "memory_limit must be a number of bytes, 0 or more"),
        (lambda table: table.diff_rows(3, 4, memory_limit=-1), "memory_limit must be a number of bytes, 0 or more"),
        (lambda table: table.retention(keep=-1), "keep=-1 is not a duration. Use a whole number with a unit"),
        (lambda table: sql("from a", [table]), "tables must be a dict of names and open tables, got list."),
        (lambda table: sql("from a", {"a": table.path}), "a must be a table, got str. Open it with open_table(...)."),
        (
            lambda table: explore(table.path),
            "explore needs an open table, got str. Open it: open_table(...).",
        ),
        (lambda table: open_table(table.path, storage_options="key"), "storage_options must be a dict, got str."),
        (lambda table: table.at(3).to_arrow(b"id"), "columns must be a list of names, got b'id'."),
        (lambda table: table.at(3).files([]), "partition must be a dict such as {'dt': '2026-11-01'}, got list."),
        (lambda table: table.lifetimes(cache_dir=3), "cache_dir must be the path of a folder, got 3."),
        (
            lambda table: table.lifetimes().files_at(None),
            "A version must be a whole number, got None. For a ref, pass the version of table.at(",
        ),
        (lambda table: table.bisect("id < 0", announce=3), "announce must be a function of what will be read, got 3."),
        (lambda table: table.diff_rows(2, 3).showing(None), "rows must be a whole number, 0 or more, got None."),
        (lambda table: table.history()["kinds"], "Unknown column 'kinds'. History of"),
        (lambda table: table.history().to_csv(""), ". is a folder. Give the path of a file in it."),
        (lambda table: table.history().to_csv("a\0b"), "path must be the path of a file, got 'a\\x00b'"),
        (lambda table: explore(table).wait(float("nan")), "seconds must be a number, 0 or more, got nan."),
        (lambda table: open_table(table.path, limits=8), "limits must be Limits, such as"),
        (lambda table: open_table(table.path, staleness_limit=3), "staleness_limit must be a timedelta, got int."),
    ],
)
def test_an_argument_of_another_type_says_what_it_must_be(url, call, message):
    with pytest.raises(InvalidArgumentError) as caught:
        call(open_table(url))

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3:/lake/orders", "s3://lake/orders"),
        ("S3A:/lake/orders", "s3://lake/orders"),
        ("gs:lake/orders", "gs://lake/orders"),
        ("https:/me:secret@host/orders", "https://host/orders"),
    ],
)
@pytest.mark.parametrize("call", [open_table, find_tables])
def test_a_url_that_lacks_a_slash_is_suggested(call, path, url):
    with pytest.raises(TableNotFoundError, match=rf"Did you mean {url}\?$"):
        call(path)


def test_a_path_that_is_encoded_or_has_a_variable_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("LAKE", str(tmp_path))

    for path in (f"{tmp_path}/my%20orders", f"file://{tmp_path}/my%20orders"):
        with pytest.raises(TableNotFoundError, match="taken as they are, not percent-encoded: write a space for %20"):
            open_table(path)
    with pytest.raises(TableNotFoundError, match=r"not replaced: os\.path\.expandvars\(path\) does that"):
        open_table("$LAKE/orders")


def test_a_name_of_a_catalog_says_what_else_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.order" / "_delta_log").mkdir(parents=True)
    (tmp_path / "shop.order" / "_delta_log" / f"{0:020}.json").write_text("{}")

    with pytest.raises(TableNotFoundError, match=r"If sales\.returns is a name in a catalog, give spark= or catalog="):
        open_table("sales.returns")
    with pytest.raises(TableNotFoundError, match=r"Did you mean shop\.order\?"):
        open_table("shop.orders")


def test_a_folder_of_metadata_leads_to_its_table(written, url):
    with pytest.raises(TableNotFoundError, match=rf"is inside of the table {url}\. Open the table"):
        open_table(f"{url}/snapshot")


def test_a_folder_that_is_empty_is_not_suggested_itself(tmp_path):
    (tmp_path / "orders").mkdir()

    with pytest.raises(TableNotFoundError, match=r"Check the path and the options\.$"):
        open_table(tmp_path / "orders")


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/../../b", "/etc/passwd"])
def test_a_file_name_that_leaves_the_table_is_not_followed(written, url, name):
    entry = written.file_entry(0, name, 1)
    written.base = [written.manifest_record("manifest-evil", [entry])]
    written.commit([])

    with pytest.raises(CorruptTableError, match="manifest"):
        open_table(url).current.files()
