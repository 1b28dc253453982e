"""What went wrong with a table, in three sentences: each is true, and its command shows the evidence."""

import shutil
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import UnsupportedFeatureError
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

    readable, jumps = health.symptoms
    assert readable.sentence == "No file is missing: 18 versions can be loaded."
    assert jumps.sentence.startswith("Numbers jump at 6 versions, last at version 17: null rate of amount ")
    assert jumps.hint == Hint("table.anomalies")
    assert health.verdict in repr(health)
    assert [symptom.is_problem for symptom in health.symptoms] == [False, True]
    assert repr(health).startswith("Health of orders at version 18: 1 thing to look at\n")
    assert "Not checked: whether rows are doubled" in repr(health)


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
    assert str(lost[0]) in symptom.sentence
    assert symptom.hint == Hint("table.verify")


def test_a_single_jump_suggests_the_rows_that_differ_or_the_files_where_rows_are_gone(tmp_path):
    shutil.copytree(samples.path("payments"), tmp_path / "payments")
    for commit in (tmp_path / "payments" / "_delta_log").glob("*"):
        if not commit.name.startswith(tuple(f"{version:020}.json" for version in range(7))):
            commit.unlink()
    jumps = open_table(str(tmp_path / "payments")).health().symptoms[1]
    for file in (tmp_path / "payments").glob("**/*.parquet"):
        file.unlink()

    without_files = open_table(str(tmp_path / "payments")).health().symptoms[1]

    assert jumps.sentence.startswith("Numbers jump at 1 version, last at version 6: ")
    assert jumps.hint == Hint("table.diff_rows", {"a": 5, "b": 6})
    assert without_files.hint == Hint("table.compare", {"a": 5, "b": 6})


def test_a_damaged_file_is_a_problem_and_the_rest_is_still_answered(tmp_path):
    shutil.copytree(samples.path("orders"), tmp_path / "orders")
    manifest = min((tmp_path / "orders" / "manifest").glob("manifest-[!l]*"))
    manifest.write_bytes(b"not a manifest")

    health = open_table(str(tmp_path / "orders")).health()

    damaged = [symptom for symptom in health.symptoms if manifest.name in symptom.sentence]
    assert damaged
    assert all(symptom.is_problem for symptom in damaged)
    assert [symptom.hint.verb for symptom in health.symptoms] == ["table.verify", "table.anomalies"]


def test_what_is_not_supported_is_not_checked(monkeypatch):
    table = open_table(samples.path("orders"))

    def unsupported(*_: object, **__: object):
        raise UnsupportedFeatureError("The health of this table is not supported.")

    monkeypatch.setattr(type(parts_of(table.current).loaded.version), "health_facts", unsupported)
    monkeypatch.setattr("snapshot_explorer.analysis.diagnosis.anomaly_symptom", lambda *_, **__: NO_JUMP)
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
