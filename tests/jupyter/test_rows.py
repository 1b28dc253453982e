"""`%snapshot bisect`, `blame`, `profile` and `anomalies`, in a real shell, against a real table."""

import pytest
from IPython.core.completer import provisionalcompleter

from snapshot_explorer import samples
from snapshot_explorer.analysis.profile import Profile
from snapshot_explorer.analysis.rows import Bisection, Blame, Trace
from snapshot_explorer.results import Frame


@pytest.fixture
def payments(shell):
    shell.ok(f"%snapshot open {samples.path('payments')} as payments")
    return shell


def test_bisect_announces_what_it_reads_and_returns_the_first_version(payments):
    answer = payments.ok('%snapshot bisect "amount > 1000" --bad 12')

    assert isinstance(answer.result, Bisection)
    assert (answer.result.version, answer.result.last_good) == (11, 10)
    assert answer.result.call == f"open_table({answer.result.path!r}).bisect('amount > 1000', bad=12)"


def test_blame_returns_the_life_of_a_row(payments):
    found = payments.ok('%snapshot blame "payment_id = 42" --key payment_id --columns payment_id,amount').result

    assert isinstance(found, Blame)
    assert found.to_arrow()["version"].to_pylist() == [6, 11, 13]
    part = payments.ok('%snapshot blame "payment_id = 42" --key payment_id --between 7..11').result
    assert part.to_arrow()["change"].to_pylist() == ["present, since 7 or earlier", "update"]


def test_a_condition_may_begin_with_a_quoted_name_or_stand_in_the_cell(payments):
    said = payments.fails('%snapshot bisect "amount due" > 3 --bad 12')
    found = payments.ok(
        "%%snapshot blame payments --key payment_id --between 7..11\npayment_id = 42\n  and amount > 0"
    ).result

    assert "Unknown column 'amount due' in the condition '\"amount due\" > 3'." in said
    assert found.to_arrow()["change"].to_pylist() == ["present, since 7 or earlier", "update"]


def test_every_option_of_a_command_may_stand_before_its_condition(payments):
    line = "%snapshot blame --columns payment_id,amount --between 7..11 --key payment_id payment_id = 42"

    assert payments.ok(line).result.to_arrow()["change"].to_pylist() == ["present, since 7 or earlier", "update"]


def test_profile_and_anomalies_are_of_the_columns_named(payments):
    profile = payments.ok("%snapshot profile 9..12 --columns amount").result
    found = payments.ok("%snapshot profile 11..12 --anomalies --columns amount --window 5").result

    assert isinstance(profile, Profile)
    assert profile.versions == (9, 10, 11, 12)
    assert isinstance(found, Frame)
    assert found["version"].to_pylist() == [11]


def test_the_log_names_anomalies(payments):
    assert "max of amount" in payments.ok("%snapshot log --anomalies -n 12").shown["text/plain"]
    assert "anomalies" not in payments.ok("%snapshot log").shown["text/plain"]


def test_what_does_not_fit_is_said_in_a_line(payments):
    assert "Did you mean amount" in payments.fails('%snapshot bisect "amuont > 3"')
    assert "needs CONDITION" in payments.fails("%snapshot blame")
    assert "contains no column" in payments.fails("%snapshot profile --columns ,")
    assert "must be a whole number" in payments.fails("%snapshot profile --anomalies --window x")


def test_the_flags_are_completed(payments):
    with provisionalcompleter():
        found = [item.text for item in payments.ip.Completer.completions('%snapshot bisect "a" --go', 25)]

    assert found == ["--good"]


def test_a_trace_needs_no_quotes(payments):
    trace = payments.ok("%snapshot trace payment_id = 3").result

    assert isinstance(trace, Trace)
    assert trace.versions.to_arrow()["version"].to_pylist() == list(payments.ok("payments.versions()").result)
    assert "payment_id = 3" in repr(payments.ok("%snapshot trace -t payments payment_id = 3").result)
    assert "CONDITION" in payments.fails("%snapshot trace")
