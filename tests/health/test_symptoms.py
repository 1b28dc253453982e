"""What went wrong with a table, in three sentences: each is true, and its command shows the evidence."""

import shutil
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer import Explorer
from snapshot_explorer.table import parts_of
from tests.inner.analysis import Symptom
from tests.inner.core import Hint
from tests.support.delta.table_builder import DeltaTable, remove

NO_JUMP = Symptom(is_problem=False, sentence="No number that metadata records jumps.", hint=Hint("table.anomalies"))


def sentences(table):
    return [symptom.sentence for symptom in table.health().symptoms]


def test_a_table_where_amounts_turned_negative_names_the_commit_and_how_to_see_its_rows():
    table = open_table(samples.path("orders"))

    health = table.health()

    *jumps, readable = health.symptoms
    assert readable.sentence == "No file is missing: 18 versions can be loaded."
    assert [jump.versions for jump in jumps] == [(17,), (13,), (8,)]
    assert jumps[2].sentence == (
        "At version 8 (append): min of amount fell by 297.07 (it usually does not change). "
        "As before again since version 12 (compact)."
    )
    assert (jumps[2].hint, jumps[2].repaired) == (Hint("table.diff_rows", {"a": 7, "b": 8}), 12)
    assert health.verdict in repr(health)
    assert [symptom.is_problem for symptom in health.symptoms] == [True, True, True, False]
    assert repr(health).startswith("orders: At version 17 (append): null rate of amount rose by 9.88 points")
    assert "\n3 things to look at.\n" in repr(health)
    assert "Not checked: whether rows are doubled" in repr(health)


def test_damage_is_named_and_not_its_repair():
    damage, *others = open_table(samples.path("payments")).health().symptoms

    assert damage.sentence == (
        "At version 11 (MERGE): max of amount rose by 7,126.93 (usual change: 1.12). "
        "As before again since version 13 (RESTORE)."
    )
    assert damage.hint == Hint("table.diff_rows", {"a": 10, "b": 11})
    assert not any(symptom.is_problem for symptom in others)


def test_a_repair_or_maintenance_alone_is_said_to_be_what_it_is():
    payments, orders = (open_table(samples.path(name)) for name in ("payments", "orders"))

    repair = payments.health(13).symptoms[0]
    compaction = orders.health(12).symptoms[1]

    assert (repair.versions, repair.is_problem) == ((13,), True)
    assert repair.sentence == "At version 13 (RESTORE): max of amount fell by 7,126.93 (it usually does not change)."
    assert compaction.sentence == (
        "No number that metadata records jumps at version 12, other than by maintenance at version 12."
    )


def test_what_is_expected_is_no_problem_in_the_session_and_by_its_toml(tmp_path):
    table, other = open_table(samples.path("payments")), open_table(samples.path("payments"))
    config = tmp_path / "checks.toml"

    table.health(expect={11: "a backfill"})
    config.write_text(f"{history_of(table).open_branch.expected[0].to_toml()}\n", "utf-8")

    for health in (table.health(), other.health(config=config), other.health(config=tomllib.loads(config.read_text()))):
        *_, expected = health.symptoms
        assert expected.sentence.startswith("Expected (a backfill): At version 11 (MERGE): max of amount rose ")
        assert (expected.is_problem, expected.expected, expected.versions) == (False, "a backfill", (11,))
        assert "nothing to look at" in repr(health)
    assert other.health().symptoms[0].is_problem
    another = {"expected": [{"version": 11, "reason": "x", "committed_at": datetime(2020, 1, 1, tzinfo=UTC)}]}
    assert other.health(config=another).symptoms[0].is_problem
    with pytest.raises(InvalidArgumentError, match="reason must be a few words, such as 'a backfill', got ''"):
        table.health(expect={11: ""})
    with pytest.raises(InvalidArgumentError, match="expected has version, reason and committed_at"):
        other.health(config={"expected": [{"version": 11}]})


def test_files_that_are_missing_come_first(tmp_path):
    shutil.copytree(samples.path("payments"), tmp_path / "payments")
    table = open_table(str(tmp_path / "payments"))
    (tmp_path / "payments" / table.current.files()["path"][0].as_py()).unlink()

    symptom = table.health().symptoms[0]

    lost = [row["version"] for row in table.verify().versions.to_dict() if row["readable"] != "yes"]
    assert symptom.is_problem
    assert symptom.sentence.startswith(
        f"{len(lost)} of 22 versions cannot be loaded, because files are missing or damaged: "
    )
    assert symptom.versions == tuple(sorted(lost))
    assert str(lost[0]) in symptom.sentence
    assert symptom.hint == Hint("table.verify")


def test_a_single_jump_suggests_the_rows_that_differ_or_the_files_where_rows_are_gone(tmp_path):
    shutil.copytree(samples.path("payments"), tmp_path / "payments")
    for commit in (tmp_path / "payments" / "_delta_log").glob("*"):
        if not commit.name.startswith(tuple(f"{version:020}.json" for version in range(12))):
            commit.unlink()
    jumps = open_table(str(tmp_path / "payments")).health().symptoms[0]
    for file in (tmp_path / "payments").glob("**/*.parquet"):
        file.unlink()

    without_files = open_table(str(tmp_path / "payments")).health().symptoms[1]

    assert jumps.sentence == "At version 11 (MERGE): max of amount rose by 7,126.93 (usual change: 1.12)."
    assert jumps.hint == Hint("table.diff_rows", {"a": 10, "b": 11})
    assert without_files.hint == Hint("table.compare", {"a": 10, "b": 11})


def test_a_damaged_file_is_a_problem_and_the_rest_is_still_answered(tmp_path):
    shutil.copytree(samples.path("orders"), tmp_path / "orders")
    manifest = min((tmp_path / "orders" / "manifest").glob("manifest-[!l]*"))
    manifest.write_bytes(b"not a manifest")

    health = open_table(str(tmp_path / "orders")).health()

    damaged = [symptom for symptom in health.symptoms if manifest.name in symptom.sentence]
    assert damaged
    assert all(symptom.is_problem for symptom in damaged)
    assert "table.verify" in {symptom.hint.verb for symptom in health.symptoms}


def test_what_is_not_supported_is_not_checked(monkeypatch):
    table = open_table(samples.path("orders"))

    def unsupported(*_: object, **__: object):
        raise UnsupportedFeatureError("The health of this table is not supported.")

    monkeypatch.setattr(type(parts_of(table.current).loaded.version), "health_facts", unsupported)
    monkeypatch.setattr("snapshot_explorer.analysis.diagnosis.jump_symptoms", lambda *_, **__: (NO_JUMP,))
    health = table.health()

    assert health.verdict == "Not checked: The health of this table is not supported."
    assert repr(health).startswith(
        "Health of orders at version 18: nothing to look at in what was checked, 1 of 3 unknown\n"
    )
    with pytest.raises(UnsupportedFeatureError):
        table.health(metadata_only=True)


def test_the_explorer_answers_what_went_wrong():
    table = open_table(samples.path("orders"))
    explorer = Explorer(table, name="orders").wait()

    explorer.receive({"set": {"tab": "health", "health": "problems"}})
    explorer.wait()

    assert all(sentence in " ".join(explorer.views["health"].text.split()) for sentence in sentences(table))
    assert explorer.code == "orders.health()"
    explorer.close()


def test_a_finding_opens_its_evidence_in_the_explorer_and_may_be_expected():
    explorer = Explorer(open_table(samples.path("payments")), name="payments").wait()
    explorer.receive({"set": {"tab": "health", "health": "problems", "anomalies": True}})
    explorer.wait()
    marked = [jump["at"] for jump in explorer.facts["jumps"]]

    explorer.receive({"finding": 0})
    explorer.wait()

    assert (explorer.state.a, explorer.state.b, explorer.state.tab) == (10, 11, "rows")
    assert explorer.code == "payments.diff_rows(10, 11)"
    assert (explorer.page["counts"]["rows"], explorer.page["counts"]["health"]) == (32, 1)

    explorer.receive({"set": {"tab": "health"}})
    explorer.wait()
    explorer.receive({"expect": [0, "a backfill"]})
    explorer.wait()

    assert [finding["state"] for finding in explorer.view["findings"]] == ["unknown", "fine", "expected"]
    assert explorer.page["counts"]["health"] == 0
    assert (marked, [jump["at"] for jump in explorer.facts["jumps"]]) == ([11, 13], [13])
    assert 'reason = "a backfill"' in explorer.page["expected"]
    explorer.close()


def test_versions_of_which_it_is_unknown_whether_their_files_exist_are_named_with_the_reason(tmp_path):
    shutil.copytree(Path(__file__).parents[1] / "data" / "iceberg" / "v1_upgraded_to_v3", tmp_path / "t")
    (damaged,) = (tmp_path / "t" / "metadata").glob("edc02833-*-m0.avro")
    damaged.write_bytes(b"")

    symptom = open_table(str(tmp_path / "t")).health().symptoms[0]

    assert symptom.is_problem is None
    assert symptom.sentence == (
        f"Whether all files of versions 1 to 3 exist is unknown (version 3: its manifest metadata/{damaged.name} "
        "has another size than recorded, and was not read). No file is known to be missing."
    )


def doubled(health):
    return [symptom for symptom in health.symptoms if symptom.hint.verb == "snapshot.duplicates"]


def statistics(column, numbers):
    ends = {"minValues": {column: min(numbers)}, "maxValues": {column: max(numbers)}}
    return {"numRecords": len(numbers), "nullCount": {column: 0}, **ends}


def bookings(folder, *appends):
    table = DeltaTable(None, folder, fields=[("booking_id", "long"), ("name", "string")])
    for numbers in appends:
        table.append([(number, "Ada") for number in numbers], stats=statistics("booking_id", numbers))
    return open_table(folder)


def test_more_rows_than_values_of_an_obvious_key_are_doubled_rows_by_metadata_alone(tmp_path):
    table = bookings(tmp_path / "bookings", range(1, 11), range(11, 13), range(11, 13), range(13, 20))

    (symptom,) = doubled(table.health())
    (of_version,) = doubled(table.health(2))

    assert symptom.sentence == "At version 3 rows are doubled: 14 rows have at most 12 values of booking_id."
    assert (symptom.is_problem, symptom.versions) == (True, (3,))
    assert symptom.hint == Hint("snapshot.duplicates", {"ref": 3, "key": ["booking_id"]})
    assert table.at(3).duplicates("booking_id").num_rows == 2
    assert of_version.is_problem is None


def test_rows_are_not_said_to_be_single_before_they_were_read(tmp_path):
    table = bookings(tmp_path / "bookings", range(0, 20, 2), [4, 6])

    (unread,) = doubled(table.health())
    (read,) = doubled(table.health(key="booking_id"))
    (earlier,) = doubled(table.health(1, key=["booking_id"]))

    assert (unread.is_problem, unread.versions) == (None, ())
    assert unread.sentence.startswith("Not checked: whether rows are doubled, several with the same booking_id.")
    assert "nothing to look at in what was checked, 1 of 4 unknown" in repr(table.health())
    assert (read.is_problem, read.versions) == (True, (2,))
    assert read.sentence == (
        "2 of 12 rows repeat the booking_id of another one at version 2. "
        "Several rows begin to have the same booking_id at version 2."
    )
    assert earlier.sentence == "None of 10 rows repeat the booking_id of another one at version 1."
    for options in ({"between": ".."}, {"metadata_only": True}):
        with pytest.raises(InvalidArgumentError, match="leave out the range or the key"):
            table.health(key="booking_id", **options)


def test_rows_that_readers_merge_by_their_key_are_not_doubled_and_other_columns_are_no_key(tmp_path):
    table = DeltaTable(None, tmp_path / "visits", fields=[("customer_id", "long")])
    table.append([(1,), (1,)], stats=statistics("customer_id", [1, 1]))

    assert doubled(open_table(samples.path("orders")).health()) == []
    assert doubled(open_table(tmp_path / "visits").health()) == []


def test_a_finding_of_doubled_rows_opens_where_they_are_read(tmp_path):
    explorer = Explorer(bookings(tmp_path / "bookings", range(1, 3), range(1, 3)), name="bookings").wait()
    explorer.receive({"set": {"tab": "health", "health": "problems"}})
    explorer.wait()

    explorer.receive({"finding": 0})
    explorer.wait()

    state = explorer.state
    assert (state.tab, state.health, state.b, state.key) == ("health", "duplicates", 2, ["booking_id"])
    explorer.close()


def test_numbers_that_go_on_jumping_share_one_finding_which_names_who_began(tmp_path):
    table = DeltaTable(None, tmp_path / "contacts")
    for version in range(1, 11):
        nulls = 10 if version > 6 else version % 2
        stats = {"numRecords": 10, "nullCount": {"name": nulls}}
        add = table.data(f"{version}.parquet", [(at, None if at < nulls else "Ada") for at in range(10)], stats=stats)
        table.commit(add, info={"userName": "eve@corp.com"})

    health = open_table(tmp_path / "contacts").health()
    jump = health.symptoms[0]

    assert jump.sentence == (
        "At version 7 (WRITE by eve@corp.com): null rate of name rose by 13.6 points (usual change: 1.67 points). "
        "Again at version 8."
    )
    assert (jump.versions, jump.hint) == ((7, 8), Hint("table.diff_rows", {"a": 6, "b": 7}))
    assert repr(health).startswith(f"contacts: {jump.sentence}"[:100])


def test_a_sentence_names_values_and_leaves_their_storage_to_the_anomalies(tmp_path):
    table = DeltaTable(None, tmp_path / "visits")
    for version in range(1, 9):
        table.append([(at, "Ada") for at in range(10)], name=f"{version}.parquet")
    table.commit(*[remove(f"{version}.parquet") for version in range(1, 8)], operation="DELETE")

    opened = open_table(tmp_path / "visits")
    jump = opened.health().symptoms[0]

    assert jump.sentence == "At version 9 (DELETE): rows fell by 70 (usual change: 10)."
    assert {row["measure"] for row in opened.anomalies().to_dict()} >= {"rows", "files"}


def test_no_jump_is_claimed_of_versions_whose_files_are_not_known(tmp_path):
    expired = open_table(Path(__file__).parents[1] / "data" / "paimon" / "expired").health()
    whole = open_table(samples.path("shipments")).health()
    shutil.copytree(samples.path("shipments"), tmp_path / "shipments")
    third = next((tmp_path / "shipments" / "metadata").glob("snap-1281492217074071468-*.avro"))
    third.write_bytes(b"")
    damaged = open_table(tmp_path / "shipments")

    def sentences(health):
        return [(item.is_problem, item.sentence) for item in health.symptoms if "jump" in str(item.sentence)]

    assert sentences(whole) == [(False, "No number that metadata records jumps.")]
    elsewhere = "whose files are not known. No number that metadata records jumps elsewhere."
    assert sentences(expired) == [(None, f"Not checked: whether numbers jump at versions 2 to 7, {elsewhere}")]
    assert sentences(damaged.health()) == [(None, f"Not checked: whether numbers jump at version 3, {elsewhere}")]
    alone = (None, "Not checked: whether numbers jump at version 3, whose files are not known.")
    assert sentences(damaged.health(4)) == [(False, "No number that metadata records jumps at version 4.")]
    assert sentences(damaged.health(3)) == [alone]
