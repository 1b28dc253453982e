"""Rows in all tables of a lake: in versions, in files that no version names, in shared files; never absent unread."""

import io
import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem

from snapshot_explorer import errors, open_lake, report, samples, verify_certificate
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol, remove
from tests.support.iceberg.table_builder import IcebergTable

FIELDS = [("id", "long"), ("name", "string")]


def parquet(ids, names=("id", "name")):
    """Return a file with these values in its first column, and texts in its second."""
    sink = io.BytesIO()
    pq.write_table(pa.table({names[0]: pa.array(ids, pa.int64()), names[1]: [f"n{one}" for one in ids]}), sink)
    return sink.getvalue()


def table_of(root, *files, fields=FIELDS):
    """Return a table to which each commit adds a file with these ids."""
    table = DeltaTable(None, root, fields=fields)
    for number, ids in enumerate(files):
        content = parquet(ids, [name for name, *_ in fields])
        table.write(f"part-{number}.parquet", content)
        table.commit(add(f"part-{number}.parquet", size=len(content), rows=len(ids)))
    return table


def rows_of(trace):
    return {row["name"]: row for row in trace.tables.to_arrow().to_pylist()}


def outcomes(trace):
    return {name: row["outcome"] for name, row in rows_of(trace).items()}


def test_each_table_is_found_absent_without_the_column_or_unknown(tmp_path):
    table_of(tmp_path / "live", [1, 42], [3])
    deleted = table_of(tmp_path / "deleted", [42], [3])
    deleted.commit(remove("part-0.parquet"))
    table_of(tmp_path / "other", [1, 2])
    table_of(tmp_path / "plain", [42], fields=[("number", "long"), ("name", "string")])
    broken = table_of(tmp_path / "broken", [1], [2])
    broken.write("part-0.parquet", b"no parquet")

    trace = open_lake(tmp_path).trace("id = 42")

    assert outcomes(trace) == {
        "live": "found",
        "deleted": "found",
        "other": "absent",
        "plain": "no column",
        "broken": "unknown",
    }
    assert rows_of(trace)["deleted"]["versions"] == 2
    assert "part-0.parquet" in rows_of(trace)["broken"]["open_questions"]
    assert not trace.is_complete
    assert trace.verdict == (
        "2 of 5 tables have matching rows: deleted, live. Not all could be examined whole, so this proves no absence "
        "elsewhere."
    )
    assert trace.tables.to_arrow()["outcome"].to_pylist() == ["found", "found", "unknown", "absent", "no column"]


def test_rows_that_are_nowhere_are_absent_and_say_what_was_not_looked_at(tmp_path):
    table_of(tmp_path / "orders", [1, 2])
    table_of(tmp_path / "plain", [42], fields=[("number", "long"), ("name", "string")])

    trace = open_lake(tmp_path).trace("id = 42")

    assert trace.is_complete
    assert trace.verdict == "No version and no file of 1 table has a matching row; 1 table never had the columns."
    assert "copies outside of this lake" in repr(trace)
    assert "checksum files" in trace.notes[0]


def test_a_file_that_no_version_names_is_read(tmp_path):
    table = table_of(tmp_path / "orders", [1, 2])
    table.write("lost-1.parquet", parquet([5, 42, 42]))
    table.write("lost-2.parquet", parquet([7]))
    table.write("lost-3.parquet.crc", b"crc")
    table.write("empty", b"")

    trace = open_lake(tmp_path).trace("id = 42")

    assert trace.files.to_arrow().to_pylist() == [
        {"name": "orders", "path": "lost-1.parquet", "rows": 2, "reason": None},
        {"name": "orders", "path": "lost-2.parquet", "rows": 0, "reason": None},
    ]
    assert (
        rows_of(trace)["orders"] | {"outcome": "found", "versions": 0, "unnamed_files": 1} == rows_of(trace)["orders"]
    )
    assert trace.is_complete


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("lost.parquet", b"no parquet", "lost.parquet"),
        ("lost.bin", b"bytes", "is no file of"),
        ("lost.parquet", parquet([1], ("uuid-7", "name")), "Unknown column 'id'"),
    ],
    ids=["damaged", "another kind", "without the column"],
)
def test_a_file_that_cannot_be_searched_is_an_open_question(tmp_path, name, content, reason):
    table_of(tmp_path / "orders", [1, 2]).write(name, content)

    trace = open_lake(tmp_path).trace("id = 42")

    assert outcomes(trace) == {"orders": "unknown"}
    assert reason in trace.files.to_arrow()["reason"][0].as_py()
    assert f"1 file that no version names could not be searched: {name}" in rows_of(trace)["orders"]["open_questions"]
    assert trace.verdict == (
        "No matching row was found, but not everything could be examined: orders. This proves nothing."
    )


def test_names_in_a_file_that_no_version_names_count_only_if_columns_kept_theirs(tmp_path):
    mapped = {
        name: [{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}]
        for number, name in enumerate(("id", "name"), 1)
    }
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    first = [("id", "long", *mapped["id"]), ("name", "string", *mapped["name"])]
    table = DeltaTable(
        None,
        tmp_path / "orders",
        fields=first,
        first=[protocol(2, 5), metadata(first, configuration=configuration)],
    )
    table.write("lost.parquet", parquet([1]))
    assert outcomes(open_lake(tmp_path).trace("id = 42")) == {"orders": "absent"}

    renamed = [("number", "long", *mapped["id"]), ("name", "string", *mapped["name"])]
    table.commit(metadata(renamed, configuration=configuration))
    assert outcomes(open_lake(tmp_path).trace("id = 42")) == {"orders": "unknown"}
    assert outcomes(open_lake(tmp_path).trace("number = 42")) == {"orders": "unknown"}


def test_a_column_that_only_earlier_versions_have_is_an_open_question(tmp_path):
    table = table_of(tmp_path / "orders", [42])
    table.commit(metadata([("name", "string")]))

    row = rows_of(open_lake(tmp_path).trace("id = 42"))["orders"]

    assert row["outcome"] == "unknown"
    assert row["open_questions"] == (
        "Its newest version has no column id, but columns of the condition are in versions 0 and 1: their values were "
        "not examined."
    )


def test_a_table_with_some_of_the_columns_is_an_open_question(tmp_path):
    table_of(tmp_path / "orders", [42])

    row = rows_of(open_lake(tmp_path).trace("id = 42 or email = 'x'"))["orders"]

    assert row["outcome"] == "unknown"
    assert row["open_questions"].startswith("Its newest version has no column email, but columns of the condition are")


def test_a_table_that_shares_a_file_under_another_name_of_the_column_is_not_absent(tmp_path):
    source = table_of(tmp_path / "orders", [42], [1])
    clone = DeltaTable(None, tmp_path / "clone", fields=[("number", "long")])
    unrelated = DeltaTable(None, tmp_path / "unrelated", fields=[("number", "long")])
    for table, name in ((clone, "part-0.parquet"), (unrelated, "part-1.parquet")):
        path = tmp_path / "orders" / name
        table.commit(add(path.as_uri(), size=source.sizes[name], rows=1))

    trace = open_lake(tmp_path).trace("id = 42")

    assert outcomes(trace) == {"orders": "found", "clone": "unknown", "unrelated": "no column"}
    assert rows_of(trace)["clone"]["shares_with"] == ["orders"]


def test_columns_says_what_a_column_is_called_elsewhere(tmp_path):
    table_of(tmp_path / "orders", [42])
    table_of(tmp_path / "crm" / "people", [42, 42], fields=[("cust no", "long"), ("name", "string")])

    lake = open_lake(tmp_path)
    trace = lake.trace("ID = 42 and name <> 'x'", columns={"crm/*": {"ID": "cust no"}})

    assert outcomes(trace) == {"orders": "found", "crm/people": "found"}
    assert rows_of(trace)["orders"]["condition"] == "ID = 42 and name <> 'x'"
    assert '"cust no" = 42' in rows_of(trace)["crm/people"]["condition"]
    assert (
        trace.call
        == f"open_lake({lake.name!r}).trace(\"ID = 42 and name <> 'x'\", columns={{'crm/*': {{'ID': 'cust no'}}}})"
    )


def test_an_empty_table_is_absent_and_user_is_a_column(tmp_path):
    DeltaTable(None, tmp_path / "empty", fields=FIELDS)

    assert outcomes(open_lake(tmp_path).trace("id = 42")) == {"empty": "absent"}
    assert outcomes(open_lake(tmp_path).trace("user = 'bob'")) == {"empty": "no column"}


@pytest.mark.parametrize(
    ("where", "columns", "message"),
    [
        ("1 = 1", {}, "names no column. Name one, such as customer_id = 42"),
        ("id = ", {}, "a value is missing after ="),
        ("id = 42", {"none.*": "x"}, "columns names 'none.\\*', and no table of .* is called so"),
        ("id = 42 and name = 'x'", {"orders": "x"}, "has 2 columns, so that columns\\['orders'\\] must say which"),
        ("id = 42", {"orders": {"ident": "x"}}, "names 'ident', which is not in the condition. Its columns: id"),
        ("id = 42", "orders", "columns is a dict such as"),
        ("id = 42", {"orders": 5}, "names of columns as text, got 'orders': 5"),
        ("id = 42", {"orders": {"id": 5}}, "names of columns as text, got 'orders': "),
        (5, {}, "A condition is SQL text, got 5"),
        ("id in (select 1)", {}, "contains a subquery"),
    ],
)
def test_a_wrong_request_says_what_to_do(tmp_path, where, columns, message):
    table_of(tmp_path / "orders", [1])

    with pytest.raises(errors.InvalidArgumentError, match=message):
        open_lake(tmp_path).trace(where, columns=columns)


def test_a_condition_that_does_not_fit_one_table_leaves_the_others(tmp_path):
    table_of(tmp_path / "orders", [42])
    table_of(tmp_path / "texts", fields=[("id", "string"), ("name", "string")])

    trace = open_lake(tmp_path).trace("id + 1 = 43")

    assert outcomes(trace) == {"orders": "found", "texts": "unknown"}
    assert "does not fit the table" in rows_of(trace)["texts"]["open_questions"]


def test_a_trace_is_of_now(tmp_path):
    table_of(tmp_path / "orders", [1])

    with pytest.raises(
        errors.InvalidArgumentError, match="a trace is of what exists now. Open the lake without a time"
    ):
        open_lake(tmp_path, at="2026-01-02").trace("id = 1")


def test_the_digest_depends_on_what_was_found_and_not_on_the_time(tmp_path):
    table = table_of(tmp_path / "orders", [1])
    first, second = (open_lake(tmp_path).trace("id = 42").digest for _ in range(2))
    table.write("lost.parquet", parquet([42]))

    assert first == second != open_lake(tmp_path).trace("id = 42").digest


def test_it_draws_itself(tmp_path):
    shutil.copytree(samples.path("orders"), tmp_path / "orders")
    table_of(tmp_path / "<b>plain", [42], fields=[("number", "long"), ("name", "string")])

    trace = open_lake(tmp_path).trace("order_id = 42")
    html = trace._repr_mimebundle_()["text/html"]

    assert "1 of 2 tables has matching rows: orders." in repr(trace)
    assert "What keeps the rows:" in repr(trace)
    assert "<b>plain" not in html
    assert "&lt;b&gt;plain" in html


REWRITE = (
    "CALL `lake`.system.rewrite_data_files(table => 'shop.shipments', options => map('delete-file-threshold', '1', "
    "'remove-dangling-deletes', 'true'))"
)


def test_the_statements_of_each_format_erase_what_holds_the_rows():
    wheres = {
        "payments": "payment_id = 17",
        "shipments": "shipment_id = 17",
        "rides": "fare < 0",
        "orders": "order_id = 1",
    }
    texts = {}
    for name, where in wheres.items():
        erasure = open_lake(samples.path(name)).trace(where).statements({name: f"lake.shop.{name}"})
        assert erasure.notes == []
        texts[name] = [text.rpartition("--")[2].partition("\n")[2] for text in erasure.statements[name]]
        assert texts[name][-1] in repr(erasure)

    assert [" ".join(text.split()) for text in texts["shipments"]] == [
        "DELETE FROM `lake`.`shop`.`shipments` WHERE `shipment_id` = 17L",
        REWRITE,
        "CALL `lake`.system.rewrite_manifests('shop.shipments')",
        "ALTER TABLE `lake`.`shop`.`shipments` DROP TAG `first-days`",
        "ALTER TABLE `lake`.`shop`.`shipments` DROP BRANCH `reweigh`",
        "CALL `lake`.system.expire_snapshots('shop.shipments', older_than => TIMESTAMP '9999-01-01', retain_last => 1)",
        "CALL `lake`.system.remove_orphan_files('shop.shipments')",
    ]
    assert [text.split("(")[0] for text in texts["orders"][1:4]] == [
        "CALL `lake`.sys.compact",
        "CALL `lake`.sys.compact_manifest",
        "CALL `lake`.sys.delete_tag",
    ]
    assert "delete_savepoint(table => 'shop.rides', instant_time => '20261104090001681')" in texts["rides"][2]
    set_first, *_, set_again, unset = texts["payments"]
    assert "'delta.logRetentionDuration' = 'interval 0 hours'" in set_first
    assert "'delta.logRetentionDuration' = 'interval 3650 days'" in set_again
    assert unset.endswith("UNSET TBLPROPERTIES (\n    'delta.checkpointInterval')")


def test_statements_are_of_the_tables_with_rows_and_name_those_without_any(tmp_path):
    table_of(tmp_path / "orders", [42])
    table_of(tmp_path / "clean", [1])
    none = open_lake(tmp_path).trace("hash(id) <> 1").statements()
    assert none.statements == {}
    assert "Nothing to do" not in repr(none)
    lacking, *_ = none.notes
    assert lacking == "No statements for clean: The condition 'hash(id) <> 1' cannot be written exactly in Spark SQL."

    erasure = open_lake(tmp_path).trace("id = 42").statements()
    assert list(erasure.statements) == ["orders"]
    assert erasure.notes == []
    assert f"delta`.`{tmp_path}/orders`" in erasure.statements["orders"][0]
    assert "no table is known to have such rows" in repr(open_lake(tmp_path).trace("id = 43").statements())


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ("orders", errors.InvalidArgumentError, "names is a dict such as {'orders': 'shop.orders'}, got 'orders'"),
        ({"orders": 5}, errors.InvalidArgumentError, "names is a dict such as"),
        ({"order": "shop.orders"}, errors.TableNotFoundError, "no table 'order'. Did you mean orders?"),
    ],
)
def test_names_of_statements_are_those_of_traced_tables(tmp_path, names, error, message):
    table_of(tmp_path / "orders", [42])

    with pytest.raises(error) as caught:
        open_lake(tmp_path).trace("id = 42").statements(names)
    assert message in str(caught.value)


def test_statements_name_tables_that_may_have_rows(tmp_path):
    table_of(tmp_path / "orders", [42])
    (tmp_path / "orders" / "part-0.parquet").write_bytes(b"something else")

    erasure = open_lake(tmp_path).trace("id = 42").statements()

    assert erasure.notes == ["orders may have such rows: not everything of it could be examined."]
    assert "Nothing to do" not in repr(erasure)


def test_properties_that_forbid_deletes_are_changed_and_set_again_whatever_they_are(tmp_path):
    properties = {"delta.appendOnly": "true", "delta.logRetentionDuration": "{name}'); DROP TABLE x; --"}
    properties["delta.enableExpiredLogCleanup"] = "false"
    table = DeltaTable(None, tmp_path / "or`ders", fields=FIELDS, configuration=properties)
    table.write("part-0.parquet", parquet([42]))
    table.commit(add("part-0.parquet", size=table.sizes["part-0.parquet"]))

    (statements,) = open_lake(tmp_path).trace("id = 42").statements().statements.values()

    assert f"ALTER TABLE `delta`.`{tmp_path}/or``ders`\n" in statements[0]
    assert "'delta.appendOnly' = 'false'" in statements[0]
    assert "'delta.enableExpiredLogCleanup' = 'true'" in statements[0]
    assert "'delta.appendOnly' = 'true'" in statements[-2]
    assert not any("DROP" in text for text in statements)
    assert b"{name}'); DROP TABLE x; --".hex().upper() in statements[-2]


def test_tags_are_identifiers_and_names_that_a_procedure_cannot_have_are_refused(tmp_path):
    table = IcebergTable(LocalFileSystem(auto_mkdir=True), str(tmp_path / "orders"), location=str(tmp_path / "orders"))
    table.tag("a`b; DROP", table.commit([(42, "a")]))

    trace = open_lake(tmp_path).trace("id = 42")
    (statements,) = trace.statements({"orders": "shop.orders"}).statements.values()
    (note,) = trace.statements({"orders": "shop.`or ders`"}).notes
    (assumed,) = trace.statements().notes

    assert any(text.endswith("ALTER TABLE `shop`.`orders` DROP TAG `a``b; DROP`") for text in statements)
    assert assumed == (
        "Names in your catalog are unknown, and assumed for orders: write yours in their place, or call "
        "statements(names={'orders': 'shop.orders'})."
    )
    assert note.startswith(
        "No statements for orders: A procedure reads the name of its table as text, and 'shop.or ders'"
    )


def test_a_table_that_shares_files_is_to_be_erased_first(tmp_path):
    source = table_of(tmp_path / "orders", [42])
    clone = DeltaTable(None, tmp_path / "clone", fields=[("number", "long")])
    clone.commit(add((tmp_path / "orders" / "part-0.parquet").as_uri(), size=source.sizes["part-0.parquet"], rows=1))

    assert open_lake(tmp_path).trace("id = 42").statements().notes == [
        "clone was not traced, and needs files of orders: erase its rows before those."
    ]


@pytest.fixture
def lake_of_three(tmp_path):
    root = tmp_path / "lake"
    table_of(root / "orders", [42])
    table_of(root / "clean", [1])
    table_of(root / "plain", [42], fields=[("number", "long"), ("name", "string")])
    return root


def checked(frame):
    return {row.pop("name"): row for row in frame.to_arrow().to_pylist()}


def test_a_certificate_holds_until_a_table_changes_what_it_says(lake_of_three, tmp_path):
    path = open_lake(lake_of_three).trace("id = 42").certificate(tmp_path / "erasure.json")

    before = verify_certificate(path)
    assert {name: row["holds"] for name, row in checked(before).items()} == dict.fromkeys(
        ("orders", "clean", "plain"), True
    )
    assert {row["change"] for row in checked(before).values()} == {"no new version"}
    assert before.notes[0] == "3 of 3 results still hold, 0 do not, 0 are unknown."
    assert "It is not signed." in before.notes[1]

    clean = lake_of_three / "clean"
    (clean / "lost.parquet").write_bytes(parquet([42]))
    table_of(lake_of_three / "new", [1])
    shutil.rmtree(lake_of_three / "plain")
    DeltaTable(None, lake_of_three / "orders", first=None).version = 1
    content = parquet([42])
    orders = DeltaTable(None, lake_of_three / "orders", first=None)
    orders.version = 1
    orders.write("part-9.parquet", content)
    orders.commit(add("part-9.parquet", size=len(content)))

    after = checked(verify_certificate(path))
    assert after["clean"] == {
        "outcome": "absent",
        "outcome_now": "found",
        "holds": False,
        "change": "no new version",
        "version": 1,
        "version_now": 1,
    }
    assert after["orders"]["holds"] is True
    assert after["orders"]["change"] == "1 new version"
    assert (after["plain"]["holds"], after["plain"]["change"]) == (None, "the table is gone")
    assert (after["new"]["holds"], after["new"]["change"]) == (None, "not in the certificate")


def test_a_table_created_again_is_named(lake_of_three, tmp_path):
    path = open_lake(lake_of_three).trace("id = 42").certificate(tmp_path / "erasure.json")
    shutil.rmtree(lake_of_three / "clean")
    table_of(lake_of_three / "clean", [1, 2])

    assert checked(verify_certificate(path))["clean"]["change"] == "its history was replaced"


def test_a_hidden_condition_is_in_no_text_and_verified_by_its_hash(lake_of_three, tmp_path):
    (lake_of_three / "clean" / "lost.parquet").write_bytes(b"no parquet")
    path = open_lake(lake_of_three).trace("name = 'n424242'").certificate(tmp_path / "c.json", hide_condition=True)

    assert "n424242" not in path.read_text()
    assert checked(verify_certificate(path, where="name = 'n424242'"))["orders"]["holds"] is True
    for where, message in ((None, "has only a hash of its condition"), ("name = 'x'", "their hashes differ")):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            verify_certificate(path, where=where)


def test_a_changed_certificate_is_refused(lake_of_three, tmp_path):
    trace = open_lake(lake_of_three).trace("id = 42")
    path = trace.certificate(tmp_path / "c.json")
    with pytest.raises(errors.InvalidArgumentError, match="exists"):
        trace.certificate(path)
    with pytest.raises(errors.InvalidArgumentError, match="is not signed"):
        verify_certificate(path, public_key=tmp_path / "none.pem")
    path.write_text(path.read_text().replace('"found"', '"absent"'))
    with pytest.raises(errors.InvalidArgumentError, match="was changed after it was written"):
        verify_certificate(path)
    for content, message in (("{}", "is not a certificate. The trace of a lake writes one"), ("x", "it is not JSON")):
        path.write_text(content)
        with pytest.raises(errors.InvalidArgumentError, match=message):
            verify_certificate(path)
    with pytest.raises(errors.InvalidArgumentError, match="A path was expected, got 5"):
        verify_certificate(5)
    with pytest.raises(errors.InvalidArgumentError, match="cannot be read: No such file"):
        verify_certificate(tmp_path / "nothing.json")


def test_a_signature_is_that_of_the_key_and_of_the_content(lake_of_three, tmp_path):
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    pem, files = serialization.Encoding.PEM, {}
    for name in ("ours", "theirs"):
        key = ed25519.Ed25519PrivateKey.generate()
        files[name] = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        files[name][0].write_bytes(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        files[name][1].write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))

    path = open_lake(lake_of_three).trace("id = 42").certificate(tmp_path / "c.json", key=files["ours"][0])

    assert "It is signed with" in verify_certificate(path, public_key=files["ours"][1]).notes[1]
    assert "whose that is was not checked" in verify_certificate(path).notes[1]
    with pytest.raises(errors.InvalidArgumentError, match="is signed with another key"):
        verify_certificate(path, public_key=files["theirs"][1])
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa").generate_private_key(65537, 2048)
    other = tmp_path / "rsa.pub"
    other.write_bytes(rsa.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(errors.InvalidArgumentError, match=r"rsa\.pub is not a public key of Ed25519 in PEM"):
        verify_certificate(path, public_key=other)
    document = json.loads(path.read_text())
    document["signature"]["value"] = document["signature"]["public_key"]
    path.write_text(json.dumps(document))
    with pytest.raises(errors.InvalidArgumentError, match="does not match its content"):
        verify_certificate(path)
    with pytest.raises(errors.InvalidArgumentError, match="is not a private key in PEM"):
        open_lake(lake_of_three).trace("id = 42").certificate(tmp_path / "d.json", key=files["ours"][1])


def test_a_report_of_it_is_a_page_to_print(lake_of_three, tmp_path):
    trace = open_lake(lake_of_three).trace("id = 42")

    page = report(tmp_path / "erasure.html", trace, trace.statements()).read_text()

    assert ".sx code{white-space:pre-wrap}" in page  # a comment ends where its line does
    assert "DELETE FROM `delta`" in page
    assert "1 of 3 tables has matching rows: orders." in page
    assert trace.digest in page


@pytest.mark.parametrize("damage", ["removed", "cut off", "exchanged"])
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("payments", "payment_id = 17"),
        ("shipments", "shipment_id = 17"),
        ("rides", "fare < 0"),
        ("orders", "order_id = 42"),
    ],
    ids=["delta", "iceberg", "hudi", "paimon"],
)
def test_no_damage_to_one_file_makes_rows_absent(tmp_path, name, where, damage):
    source = Path(samples.path(name))
    assert outcomes(open_lake(source).trace(where)) == {name_of(source): "found"}
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    for number, file in enumerate(random.Random(f"{name} {damage}").sample(files, 4)):
        table = tmp_path / f"{number}" / name
        shutil.copytree(source, table)
        if damage == "removed":
            (table / file).unlink()
        else:
            (table / file).write_bytes((table / file).read_bytes()[:20] if damage == "cut off" else b"something else")

        assert set(outcomes(open_lake(table.parent).trace(where)).values()) <= {"found", "unknown"}, file


def name_of(source):
    (entry,) = open_lake(source)
    return entry.name
