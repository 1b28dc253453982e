"""`table.check` and `lake.check`: rules on what happened recently, with an exit status; nothing unchecked passes."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from snapshot_explorer import check, open_lake, open_table, samples
from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable, add, metadata, remove

NIGHT = datetime(2026, 11, 22, 3, tzinfo=UTC)


def hourly(folder, *, commits=12, jump=None):
    """Make a Delta table with a commit of 100 rows each hour, the last one at NIGHT; `jump` replaces the last one."""
    table = DeltaTable(None, folder, fields=(("id", "long"), ("name", "string")))
    for version in range(commits):
        time = NIGHT - timedelta(hours=commits - 1 - version)
        actions = [add(f"f{version}", rows=100)]
        if version == commits - 1 and jump is not None:
            actions = jump
        table.commit(*actions, millis=int(time.timestamp() * 1000))
    return folder


def states(result):
    return {(line.table, line.rule): line.state for line in result.lines}


def checked(folder, rules, **more):
    return check(open_table(str(folder)), rules, **({"at": NIGHT + timedelta(minutes=30), "since": "90m"} | more))


def test_a_quiet_table_passes_every_rule_on_metadata(tmp_path):
    result = checked(hourly(tmp_path), "late,anomaly,schema-change,rows < 0.5 * previous,age_hours > 26")

    assert set(states(result).values()) == {"passed"}
    assert (result.is_ok, result.exit_code) == (True, 0)
    assert repr(result).splitlines()[0].endswith(": 5 checks: 5 passed")


def test_a_table_without_a_new_commit_is_late(tmp_path):
    result = checked(hourly(tmp_path), "late", at=NIGHT + timedelta(hours=9))

    assert result.exit_code == 1
    assert result.failed[0].found.startswith("Newest commit 9 h ago, late: usually every 1 h")


def test_what_is_expected_fails_no_rule_and_is_named(tmp_path):
    fields = (("id", "long"), ("name", "string"), ("extra", "double"))
    gone = [metadata(fields), *(remove(f"f{version}") for version in range(10))]
    table = open_table(str(hourly(tmp_path, jump=gone)))
    settings = {"expected": [{"version": 12, "reason": "a backfill"}]}
    period = {"at": NIGHT + timedelta(minutes=30), "since": "90m"}

    before, by_config = (
        check(table, "anomaly,schema-change", config=config, **period) for config in (None, {"tables": {"*": settings}})
    )
    table.health(expect={12: "a backfill"})
    in_session = check(table, "anomaly,schema-change", **period)

    assert set(states(before).values()) == {"failed"}
    for result in (by_config, in_session):
        assert set(states(result).values()) == {"passed"}
        anomaly, schema = (line.found for line in result.lines)
        assert anomaly.startswith("No other number jumps in 2 commits. ")
        assert anomaly.endswith(" Expected: version 12 (a backfill).")
        assert schema == "Expected: version 12 (a backfill)."


def test_rows_that_vanish_fail_a_condition_and_are_an_anomaly(tmp_path):
    gone = [remove(f"f{version}") for version in range(10)]
    result = checked(hourly(tmp_path, jump=gone), ["anomaly", "rows < 0.5 * previous", "removed_rows > 10"])

    assert states(result)[result.name, "rows < 0.5 * previous"] == "failed"
    assert states(result)[result.name, "anomaly"] == "failed"
    assert result.failed[0].version == 12


def test_a_change_of_schema_fails_also_where_a_later_commit_takes_it_back(tmp_path):
    fields = (("id", "long"), ("name", "string"))
    table = DeltaTable(None, tmp_path, fields=fields)
    millis = int(NIGHT.timestamp() * 1000)
    table.commit(add("a", rows=1), millis=millis - 7_200_000)
    table.commit(metadata((*fields, ("extra", "double"))), millis=millis - 60_000)
    table.commit(metadata(fields), millis=millis)

    (line,) = checked(tmp_path, "schema-change").lines

    assert (line.state, line.version) == ("failed", 3)
    assert "Version 2: extra added, double" in line.found


def test_doubled_rows_and_missing_files_fail(tmp_path):
    payments = Path(shutil.copytree(samples.path("payments"), tmp_path / "payments"))
    table = open_table(str(payments))
    assert check(table, "unreadable", since="1d", at="2026-11-12").exit_code == 0
    assert check(table, "duplicates", key=["payment_id"], at="2026-11-12").lines[0].state is not None

    (payments / table.current.files()["path"][0].as_py()).unlink()
    result = check(open_table(str(payments)), "unreadable,duplicates", at="2026-11-12")

    assert [line.state for line in result.lines] == ["failed", None]
    assert result.exit_code == 1


def test_what_cannot_be_evaluated_does_not_pass(tmp_path):
    young = checked(hourly(tmp_path / "young", commits=3), "late,anomaly,rows < previous", since="400d")
    assert [line.state for line in young.lines] == [None, None, None]
    assert (young.exit_code, young.is_ok) == (2, False)
    assert "not checked: late" in repr(young)

    before = checked(hourly(tmp_path / "later"), "unreadable", at="2020-01-01", since="1d")
    assert (before.lines[0].state, before.lines[0].found) == (None, "Nothing had been committed by then.")


def test_a_lake_has_a_line_for_each_table_and_rule(tmp_path):
    hourly(tmp_path / "good")
    hourly(tmp_path / "dimension", commits=3)
    (tmp_path / "broken" / "_delta_log").mkdir(parents=True)
    (tmp_path / "broken" / "_delta_log" / f"{0:020}.json").write_text("{")
    config = tmp_path / "checks.toml"
    config.write_text(
        'fail-on = ["late", "unreadable"]\nsince = "2h"\n'
        '[tables.dimension]\nfail-on = ["rows < 100"]\n'
        '[tables."vanished*"]\nfail-on = ["late"]\n'
    )

    result = check(open_lake(str(tmp_path)), config=config, at=NIGHT)

    assert states(result) == {
        ("broken", "late"): None,
        ("broken", "unreadable"): "failed",
        ("dimension", "rows < 100"): "passed",
        ("good", "late"): "passed",
        ("good", "unreadable"): "failed",  # its files do not exist
        ("vanished*", "late"): None,
    }
    assert result.frame.to_dict()[0]["state"] == "failed"


def test_markdown_shows_hostile_names_as_they_are(tmp_path):
    folder = hourly(tmp_path / "a|b<script>@all`x`[l](http:)", commits=2)

    shown = checked(folder, "late").to_markdown()

    assert "a\\|b&lt;script&gt;&#64;all\\`x\\`\\[l\\]\\(http:\\)" in shown
    assert "<script>" not in shown


def test_junit_has_a_suite_for_each_table_and_errors_for_what_was_not_checked(tmp_path):
    hourly(tmp_path / "a")
    hourly(tmp_path / "b", commits=2)

    root = ET.fromstring(check(open_lake(str(tmp_path)), "late,commits > 0", at=NIGHT, since="30m").to_junit())

    counts = [(suite.get("name"), *(suite.get(n) for n in ("tests", "failures", "errors"))) for suite in root]
    assert counts == [("a", "2", "1", "0"), ("b", "2", "1", "1")]
    assert [child.tag for child in root[1]] == ["properties", "testcase", "testcase", "system-out", "system-err"]
    assert root[1][1][0].tag == "error"
    assert root[1][1][0].get("message").endswith("too few or all within a minute.")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("anomalies", "There is no rule 'anomalies'. Did you mean anomaly?"),
        ("rowz < 3", "Unknown name 'rowz' in the condition 'rowz < 3'. Did you mean rows?"),
        ("rows < previous + files", "previous is ambiguous"),
        ("", "fail_on contains no rule."),
        ("rows <", "The condition 'rows <' is not SQL"),
        (7, "Rules are text, such as 'late,unreadable'"),
    ],
)
def test_a_rule_that_does_not_exist_is_an_error(tmp_path, rules, message):
    with pytest.raises(InvalidArgumentError, match=message):
        checked(hourly(tmp_path, commits=1), rules)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("fail-on = late", "are not TOML"),
        ('fail_on = "late"', "There is no setting 'fail_on'. Did you mean fail-on?"),
        ("[anomaly]\nfactr = 3", "anomaly has no threshold 'factr'"),
        ('[tables."x"]\nfail-on = "lat"', "There is no rule 'lat'. Did you mean late?"),
        (
            'since = "2020-01-01T00:01"\n[tables."x"]\nsince = "2099-01-01"',
            "since, 2099-01-01 00:00 UTC, is after the time",
        ),
        ('since = "soon"', "since must be a time such as 1d, yesterday or 2026-11-01, got 'soon'."),
        ("key = 3", "key must be the names of columns"),
        ("since = 12:30:00", "since must be a time such as 1d"),
        ("[anomaly]\nfactor = true", "factor must be a number, got True."),
    ],
)
def test_a_mistake_in_the_settings_is_an_error(tmp_path, content, message):
    config = tmp_path / "checks.toml"
    config.write_text(content)

    with pytest.raises(InvalidArgumentError, match=message):
        checked(hourly(tmp_path / "t", commits=1), None, config=config, since=None)


def test_a_date_needs_no_quotes_in_the_settings(tmp_path):
    config = tmp_path / "checks.toml"
    config.write_text("since = 2020-01-01")

    result = checked(hourly(tmp_path / "t", commits=1), None, config=config, since=None)

    assert result.since == datetime(2020, 1, 1, tzinfo=UTC)


def test_the_terminal_has_the_exit_status_and_writes_files(tmp_path, capsys):
    folder = hourly(tmp_path / "lake" / "orders")
    words = ["check", str(folder.parent), "--at", "2026-11-22T03:30Z", "--since", "90m"]

    assert main([*words, "--fail-on", 'late,"rows < 0.5 * previous"']) == 0
    assert "2 checks: 2 passed" in " ".join(capsys.readouterr().out.split())

    assert main([*words, "--fail-on", "late,commits > 0", "--json", "--junit", str(tmp_path / "c.xml")]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["exit_code"], answer["failed"], answer["passed"], answer["not_checked"]) == (1, 1, 1, 0)
    assert ET.parse(tmp_path / "c.xml").getroot().tag == "testsuites"

    assert main([*words, "--fail-on", "lat"]) == 2
    assert capsys.readouterr().err.startswith("There is no rule 'lat'. Did you mean late?")
    for file, message in ((folder / "c.xml", "which is read-only"), (tmp_path / "gone" / "c.xml", "Create it first")):
        assert main([*words, "--junit", str(file)]) == 2
        assert message in capsys.readouterr().err
    assert main(["check", str(folder), "--at", "2099-01-01"]) == 2
    assert "is in the future" in capsys.readouterr().err

    assert main(["check", str(folder), "--format", "iceberg"]) == 2
    assert "iceberg table but a" in capsys.readouterr().err
    assert main(["check", str(folder), "--branch", "nope"]) == 2
    assert "nope" in capsys.readouterr().err


@pytest.mark.parametrize(
    "settings",
    [
        *(f"{key} = {'[' * 900}{']' * 900}" for key in ("fail-on", "since", "key", "anomaly")),
        f"key = {'[' * 3000}{']' * 3000}",
        "a." * 3000 + "b = 1",
        "since = 0001-01-01T00:00:00+14:00",
        "since = 9999-12-31T23:59:59-14:00",
        'since = "99999999999999999999d"',
        "since = 07:32:00",
        f"[anomaly]\nfactor = {'1' * 5000}",
        f"[anomaly]\nfactor = 1{'0' * 400}",
        "[anomaly]\nfactor = nan",
        f"[anomaly]\nwindow = 1{'0' * 400}",
        "tables = 5",
        "\0",
    ],
)  # fmt: skip
def test_extreme_times_numbers_and_levels_in_settings_are_refused(tmp_path, settings):
    (tmp_path / "check.toml").write_text(settings)
    table = open_table(str(hourly(tmp_path / "t", commits=1)))

    with pytest.raises(InvalidArgumentError) as caught:
        check(table, config=tmp_path / "check.toml")

    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "config", [{5: 1}, {"tables": {5: {}}}, {"anomaly": {5: 1}}, {"key": [5]}, 5, b"x", ["x"], "a\0b"]
)
def test_settings_of_another_type_are_refused(tmp_path, config):
    table = open_table(str(hourly(tmp_path / "t", commits=1)))

    with pytest.raises(InvalidArgumentError):
        check(table, config=config)


def test_the_first_day_of_the_calendar_is_a_time(tmp_path):
    (tmp_path / "check.toml").write_text("since = 0001-01-01\nfail-on = 'anomaly'")
    table = open_table(str(hourly(tmp_path / "t")))

    assert check(table, config=tmp_path / "check.toml").is_ok
    assert len(table.history(since="0001-01-01")) == len(table.versions())


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("late, anomaly", ["late", "anomaly"]),
        ("late,,anomaly,", ["late", "anomaly"]),
        ("rows in (1, 2), late", ["rows in (1, 2)", "late"]),
        ("rows in (1, (2)), late", ["rows in (1, (2))", "late"]),
        ("rows < abs(least(1, abs(-2))), late", ["rows < abs(least(1, abs(-2)))", "late"]),
        ("'late',\"anomaly\"", ["late", "anomaly"]),
    ],
)
def test_commas_in_parentheses_and_quotes_do_not_end_a_rule(tmp_path, text, rules):
    result = checked(hourly(tmp_path), text)

    assert [line.rule for line in result.lines] == rules


def test_a_version_that_cannot_be_read_does_not_pass_as_one_without_a_jump(tmp_path):
    shutil.copytree(samples.path("shipments"), tmp_path / "shipments")
    listed = next((tmp_path / "shipments" / "metadata").glob("snap-817975365425846871-*.avro"))
    listed.write_bytes(b"")
    rules = ("anomaly", "added_rows > 100000")

    result = check(open_table(tmp_path / "shipments"), rules, since="30d", at="2026-11-11T08:00")
    anomaly, condition = sorted(result.lines, key=lambda line: rules.index(line.rule))

    assert (result.not_checked, result.exit_code) == (result.lines, 2)
    assert anomaly.found.startswith("No number jumps in 11 commits. Version 15 cannot be read")
    assert condition.found.startswith("Unknown: added_rows. Version 15 cannot be read: ")
