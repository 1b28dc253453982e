"""`%snapshot health`, in a real shell, against a real table."""

from IPython.core.completer import provisionalcompleter

from snapshot_explorer.analysis.health import Health
from snapshot_explorer.results import Frame


def test_health_tells_of_the_newest_version_or_of_the_one_named(orders):
    newest, older = (orders.ok(f"%snapshot health{ref}").result for ref in ("", " tag:v1"))

    assert isinstance(newest, Health)
    assert (newest.version, older.version) == (5, 2)


def test_health_is_drawn_with_what_went_wrong_first_and_then_its_verdict(orders):
    shown = orders.ok("%snapshot health").shown

    assert (
        shown["text/plain"]
        .splitlines()[1]
        .startswith("Not checked: whether rows are doubled, several with the same id")
    )
    assert "\nNo file is missing: 5 versions can be loaded." in shown["text/plain"]
    assert "\nIn good order: nothing to do." in shown["text/plain"]
    assert "small file threshold" in shown["text/html"]


def test_a_version_is_expected_for_the_session_or_by_a_file(orders, tmp_path):
    said = orders.ok('%snapshot health --expect "2: a backfill"').said
    (tmp_path / "checks.toml").write_text("\n".join(said), "utf-8")

    assert said[:2] == ["[[expected]]", "version = 2"]
    assert orders.ok(f"%snapshot health --config {tmp_path / 'checks.toml'}").result.version == 5
    assert orders.fails("%snapshot health --expect 2") == (
        """--expect needs a version and a reason, got '2'. Example: "11: a backfill"."""
    )
    assert orders.ok("%snapshot health --metadata-only").result.symptoms == ()


def test_health_over_a_range_is_a_frame_of_its_versions_newest_first(orders):
    part, whole = (orders.ok(f"%snapshot health --over {words}").result for words in ("2..4", ".."))

    assert isinstance(part, Frame)
    assert part["version"].to_pylist() == [4, 3, 2]
    assert part["files"].to_pylist() == [3, 3, 2]
    assert whole["version"].to_pylist() == [5, 4, 3, 2, 1]


def test_the_table_may_be_named_in_the_range(orders):
    assert orders.ok("%snapshot health --over orders@2..orders@3").result["version"].to_pylist() == [3, 2]
    assert "Two tables are named" in orders.fails("%snapshot health -t orders --over other@2..3")


def test_a_version_and_a_range_at_once_are_refused_in_a_line(orders):
    assert orders.fails("%snapshot health 3 --over ..") == (
        "REF and --over exclude each other. Use one version, or --over A..B for all of a range."
    )


def test_what_is_not_a_range_is_said_in_a_line(orders):
    assert "is not a valid ref" in orders.fails("%snapshot health nonsense")
    assert "is not a range of versions" in orders.fails("%snapshot health --over 3")


def test_the_flag_of_health_is_completed(orders):
    with provisionalcompleter():
        found = [item.text for item in orders.ip.Completer.completions("%snapshot health --ov", 21)]

    assert found == ["--over"]


def test_doubled_rows_are_looked_for_on_request(orders):
    health = orders.ok("%snapshot health --key id").result

    assert [symptom.sentence for symptom in health.symptoms if symptom.hint.verb == "snapshot.duplicates"] == [
        f"None of {health.partitions.to_dict()[0]['rows']} rows repeat the id of another one at version 5."
    ]
