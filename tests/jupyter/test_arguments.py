import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.jupyter.commands import COMMANDS
from tests.inner.core import spell
from tests.inner.jupyter import Arguments, UsageError, find_command, parse, spelling, tokenize


def parsed(line: str) -> Arguments:
    command, *words = tokenize(line)
    return parse(
        find_command(COMMANDS, command.text),
        words,
        expand=lambda text: text.replace("{v}", "--value"),
        is_table=lambda name: name in ("orders", "items"),
    )


@contextlib.contextmanager
def spelled_as_lines():
    """Raise errors with their hints as lines of %snapshot, as the magic shows them."""
    try:
        yield
    except UsageError as error:
        raise UsageError(spell(error.message, spelling())) from None


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("load", {}),
        ("load 17 --limit 5", {"ref": "17", "limit": "5"}),
        ("load --limit 5 17", {"ref": "17", "limit": "5"}),
        ("load -n5 17", {"ref": "17", "limit": "5"}),
        ("load --limit=5 --yes 17", {"ref": "17", "limit": "5", "yes": ""}),
        ('load --where "-x > 3"', {"where": "-x > 3"}),
        ('load --where="-x > 3"', {"where": "-x > 3"}),
        ("load --where -x>3", {"where": "-x>3"}),
        ("log --grep {v}", {"grep": "--value"}),
        ("load {v}", {"ref": "--value"}),
        ('load "--yes"', {"ref": "--yes"}),
        ("log 1..5 -n all", {"a..b": "1..5", "limit": "all"}),
        ("open PATH as orders", {"path": "PATH", "as": "orders"}),
        ("open --as orders PATH", {"path": "PATH", "as": "orders"}),
        ("open as as as", {"path": "as", "as": "as"}),
        ("open PATH --options secret", {"path": "PATH", "options": "secret"}),
        ("open PATH --options {secret}", {"path": "PATH", "options": "secret"}),
        ("open PATH --options $secret", {"path": "PATH", "options": "secret"}),
        ("show orders", {"table": "orders"}),
        ("show orders 17", {"table": "orders", "ref": "17"}),
        ("show orders@17", {"table": "orders", "ref": "17"}),
        ("show orders@latest~2", {"table": "orders", "ref": "latest~2"}),
        ("show @2026-11-01", {"ref": "@2026-11-01"}),
        ("show orders@@2026-11-01", {"table": "orders", "ref": "@2026-11-01"}),
        ("log orders@3..orders@5", {"table": "orders", "a..b": "3..5"}),
        ("log orders@3..", {"table": "orders", "a..b": "3.."}),
        ("tags orders", {"table": "orders"}),
        ("show 17 -t orders", {"table": "orders", "ref": "17"}),
        ("show --help nonsense and more", {"help": ""}),
    ],
)
def test_words_become_arguments(line: str, values: dict[str, str]) -> None:
    assert parsed(line).values == values


def test_a_repeated_option_keeps_all_its_values() -> None:
    assert parsed("files -p dt=1 17 --partition hr=2").repeated == {"partition": ("dt=1", "hr=2")}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("load --colums a", "%snapshot load has no option --colums. Did you mean --columns?"),
        (
            "tags --zzz",
            "%snapshot tags has no option --zzz. Options: -t, --table, -o, --out, --debug, -h, --help.",
        ),
        ("load --where", '--where needs a value: --where "SQL".'),
        ("load --where --yes", '--where needs a value: --where "SQL".'),
        ("log -n", "-n needs a value: -n N."),
        ("open PATH as", "as needs a value: as NAME."),
        ("load --yes=no", "--yes takes no value. Leave out what follows the equals sign."),
        ("load -n 1 --limit 2", "--limit is repeated. Write it once."),
        (
            "lake",
            (
                "%snapshot lake needs PATH, a folder or URL; or a variable with the path or a lake; or with a catalog, "
                "such as shop.*. Example: %snapshot lake s3://lake/shop.db"
            ),
        ),
        ("load --where a > 3", 'A condition with blanks needs quotes: %snapshot load --where "a > 3"'),
        (
            "tags v1",
            (
                "%snapshot tags takes no argument but the name of an open table, and 'v1' is none. "
                "%snapshot open lists them."
            ),
        ),
        (
            "tags orders v1",
            (
                "%snapshot tags takes no argument; 'v1' is one too many. Put a value with blanks in quotes, in single "
                "ones if it contains double ones."
            ),
        ),
        (
            "tags --nope",
            "%snapshot tags has no option --nope. Options: -t, --table, -o, --out, --debug, -h, --help.",
        ),
        ("show orders@17 -t items", "Two tables are named, items and orders. A command acts on one."),
        ("log orders@3..items@5", "Two tables are named, orders and items. A command acts on one."),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(said)}$"), spelled_as_lines():
        parsed(line)


@pytest.mark.parametrize(
    "line",
    [
        "open s3://b/t --options {'key': 'HUSH', 'secret': 'HUSH'}",
        "open s3://b/t --options {'client': {'key': 'HUSH HUSH'}, 'secret': 'HUSH'}",
        "open s3://b/t --options=HUSH:HUSH",
        'open s3://b/t --options "key=HUSH"',
        "open s3://b/t {'key': 'HUSH'}",
        "open s3://b/t HUSH",
    ],
)
def test_an_inline_dict_of_options_is_refused_and_never_repeated(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(line)

    assert "HUSH" not in str(caught.value)


def test_the_reason_for_refusing_an_inline_dict_is_said() -> None:
    with pytest.raises(
        UsageError,
        match="^--options takes the name of a variable that holds a dict, not the dict itself: a line stays in the "
        r"notebook and in the history, and secrets must not\. Write the dict in a variable, then --options VARIABLE\.$",
    ):
        parsed("open PATH --options {'key': 1}")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("lgo", "There is no command lgo. Did you mean log? Commands: open, status,"),
        ("timelin", "There is no command timelin. Did you mean log --picture? Commands: open, status,"),
        ("zzzz", "There is no command zzzz. Commands: open, status,"),
        ("5-8", "There is no such command. To compare two versions: %snapshot diff 5..8. Commands: open,"),
        ("/data/orders", "There is no such command. To open a table: %snapshot open PATH. Commands: open,"),
    ],
)
def test_an_unknown_command_gets_the_nearest_one(word: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)), spelled_as_lines():
        find_command(COMMANDS, word)


@given(st.sampled_from(COMMANDS), st.text(max_size=60))
def test_a_line_gives_arguments_or_a_usage_error(command: object, line: str) -> None:
    with contextlib.suppress(UsageError):
        parsed(f"{command.name} {line}")


def test_every_option_of_a_command_has_its_own_flags() -> None:
    for command in COMMANDS:
        flags = [flag for option in command.all_options for flag in option.flags]
        assert len(flags) == len(set(flags)), command.name
