import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.jupyter import LineToken, tokenize, without_semicolon


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  log   -n 20 ", ["log", "-n", "20"]),
        ('open "a b" as x', ["open", "a b", "as", "x"]),
        ("open 'a b'", ["open", "a b"]),
        (r"open C:\data\orders", ["open", r"C:\data\orders"]),
        (r'open "C:\my data\orders\"', ["open", r"C:\my data\orders" + "\\"]),
        ("log --grep don't", ["log", "--grep", "don't"]),
        ("log --grep 'tis", ["log", "--grep", "'tis"]),
        ("log --grep don't --kind 'compact'", ["log", "--grep", "don't", "--kind", "compact"]),
        ("""load --where "name = 'x'" """, ["load", "--where", "name = 'x'"]),
        ("load --where 'name = 'x'' -n 1", ["load", "--where", "name = 'x'", "-n", "1"]),
        ("load --where 'it''s = 1'", ["load", "--where", "it''s = 1"]),
        ('load --where="a = 1" 17', ["load", "a = 1", "17"]),
        ("load --where name='x y'", ["load", "--where", "name='x y'"]),
        ('files --partition dt="2026 01"', ["files", "--partition", 'dt="2026 01"']),
        ('load --columns "order id",amount', ["load", "--columns", '"order id",amount']),
        ("show {orders.current.version - 1}", ["show", "{orders.current.version - 1}"]),
        ("open {d['a b']}/x as x", ["open", "{d['a b']}/x", "as", "x"]),
        ("log --grep { and more", ["log", "--grep", "{", "and", "more"]),
        ("a\tb\u00a0c", ["a", "b", "c"]),
    ],
)
def test_a_line_is_cut_into_words(line: str, words: list[str]) -> None:
    assert [word.text for word in tokenize(line)] == words


def test_a_word_knows_its_quote_and_the_flag_before_it() -> None:
    assert tokenize("""--where='a b' "--yes" x""") == (
        LineToken("a b", quote="'", flag="--where"),
        LineToken("--yes", quote='"'),
        LineToken("x"),
    )


@given(st.text(max_size=60))
def test_every_line_can_be_cut_and_no_letter_but_quotes_and_blanks_is_lost(line: str) -> None:
    words = tokenize(line)

    kept = "".join(word.flag + "=" * bool(word.flag) + word.text for word in words)
    assert [letter for letter in kept if letter not in "\"'" and not letter.isspace()] == [
        letter for letter in line if letter not in "\"'" and not letter.isspace()
    ]


@given(st.text(max_size=30).filter(lambda text: '"' not in text))
def test_anything_in_quotes_is_one_word(value: str) -> None:
    assert tokenize(f'load --where "{value}" -n 1') == (
        LineToken("load"),
        LineToken("--where"),
        LineToken(value, quote='"'),
        LineToken("-n"),
        LineToken("1"),
    )


def test_the_semicolon_that_ends_a_line_is_not_part_of_it() -> None:
    assert without_semicolon("log ; ") == ("log ", True)
    assert without_semicolon('load --where "a;"') == ('load --where "a;"', False)
