from datetime import UTC, datetime
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.jupyter import expand

VARIABLES = {
    "n": 17,
    "path": '/data/my table\'s "folder"',
    "place": PurePosixPath("/data/orders"),
    "columns": ["id", "amount"],
    "time": datetime(2026, 11, 1, 12, tzinfo=UTC),
    "d": {"k": "v", "a b": "w"},
    "o": SimpleNamespace(x=SimpleNamespace(y=3)),
    "braces": "{n}",
}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("{n}", "17"),
        ("$n", "17"),
        ("{n + 1}", "18"),
        ("{path}", '/data/my table\'s "folder"'),
        ("$path", '/data/my table\'s "folder"'),
        ("{place}", "/data/orders"),
        ("{columns}", "id,amount"),
        ("@{time}", "@2026-11-01T12:00:00+00:00"),
        ("{d['k']} {d['a b']}", "v w"),
        ("$o.x.y and $o.x.z", "3 and namespace(y=3).z"),
        ("{max(n, 3)}", "17"),
        ("{[i for i in columns][0]}", "id"),
        ("a > {n} and b < $n", "a > 17 and b < 17"),
        ("{braces}", "{n}"),
        ("{{n}} $$n", "{n} $n"),
    ],
)
def test_variables_are_put_in(text: str, expanded: str) -> None:
    assert expand(text, VARIABLES) == expanded


@pytest.mark.parametrize(
    "text",
    [
        "{unknown}",
        "{n + unknown}",
        "$unknown",
        "{}",
        "{",
        "}{",
        "{1}",
        "{1,3}",
        "{'a': 1}",
        "{min}",
        "{n",
        "name ~ '[a-z]{2}'",
        "json = '{\"a\": n}'",
        "price = '$n'",
        "$.path",
        "100$",
    ],
)
def test_what_is_not_a_variable_stays(text: str) -> None:
    assert expand(text, VARIABLES) == text


def test_an_error_in_an_expression_is_the_users_own() -> None:
    with pytest.raises(KeyError, match="missing"):
        expand("{d['missing']}", VARIABLES)


@given(st.text(max_size=60))
def test_text_without_variables_stays_but_for_its_escapes(text: str) -> None:
    expanded = expand(text, {})

    if "{{" not in text and "$$" not in text:
        assert expanded == text
