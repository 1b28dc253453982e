"""What went wrong with a table, in three sentences: each is true, and its command shows the evidence."""

import shutil
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.jupyter.explorer import Explorer
from snapshot_explorer.table import parts_of
from tests.inner.analysis import Symptom
from tests.inner.core import Hint

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
        "At version 8 (append): min of amount fell by 297.07, and usually does not change. "
        "As before again since version 12 (compact)."
    )
    assert (jumps[2].hint, jumps[2].repaired) == (Hint("table.diff_rows", {"a": 7, "b": 8}), 12)
    assert health.verdict in repr(health)
    assert [symptom.is_problem for symptom in health.symptoms] == [True, True, True, False]
    assert repr(health).startswith("Health of orders at version 18: 3 things to look at\n")
    assert "Not checked: whether rows are doubled" in repr(health)


def test_damage_is_named_and_not_its_repair():
    damage, *others = open_table(samples.path("payments")).health().symptoms

    assert damage.sentence == (
        "At version 11 (MERGE): max of amount rose by 7,126.93, usually by 1.12. "
        "As before again since version 13 (RESTORE)."
    )
    assert damage.hint == Hint("table.diff_rows", {"a": 10, "b": 11})
    assert not any(symptom.is_problem for symptom in others)


def test_a_repair_or_maintenance_alone_is_said_to_be_what_it_is():
    payments, orders = (open_table(samples.path(name)) for name in ("payments", "orders"))

    repair = payments.health(13).symptoms[0]
    compaction = orders.health(12).symptoms[1]

    assert (repair.versions, repair.is_problem) == ((13,), True)
    assert repair.sentence == "At version 13 (RESTORE): max of amount fell by 7,126.93, and usually does not change."
    assert compaction.sentence == (
        "No number that metadata records jumps at version 12, other than by maintenance at version 12."
    )


def test_what_is_acknowledged_is_no_problem_in_the_session_and_by_its_toml(tmp_path):
    table, other = open_table(samples.path("payments")), open_table(samples.path("payments"))
    config = tmp_path / "checks.toml"

    config.write_text(f"{table.acknowledge(11, 'a backfill')}\n", "utf-8")

    for health in (table.health(), other.health(config=config), other.health(config=tomllib.loads(config.read_text()))):
        *_, expected = health.symptoms
        assert expected.sentence.startswith("Expected (a backfill): At version 11 (MERGE): max of amount rose ")
        assert (expected.is_problem, expected.expected, expected.versions) == (False, "a backfill", (11,))
        assert "nothing to look at" in repr(health)
    assert other.health().symptoms[0].is_problem
    another = {"expected": [{"version": 11, "reason": "x", "committed_at": datetime(2020, 1, 1, tzinfo=UTC)}]}
    assert other.health(config=another).symptoms[0].is_problem
    with pytest.raises(InvalidArgumentError, match="reason must be a few words, such as 'a backfill', got ''"):
        table.acknowledge(11, "")
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

    assert jumps.sentence == "At version 11 (MERGE): max of amount rose by 7,126.93, usually by 1.12."
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

    assert [finding["state"] for finding in explorer.view["findings"]] == ["fine", "expected"]
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
