"""Hints in three surfaces: Python, `%snapshot` lines and a shell spell the same call, and each can be typed."""

import ast
import inspect
import json
import pickle
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import snapshot_explorer as sx
from snapshot_explorer import samples
from snapshot_explorer.errors import AccessDeniedError, InvalidArgumentError, StorageError, TableNotFoundError
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.terminal import commands as terminal
from tests.inner.core import VERBS, Hint, Message, join, python_call, spell, without_period
from tests.inner.jupyter import LineToken, as_command, escape, expand, find_command, magic_line, parse, quote_in_line

PACKAGE = Path(sx.__file__).parent
OWNERS = {"table": sx.Table, "snapshot": sx.Snapshot, "lake": sx.Lake}
VALUES = {"columns": ["order id"], "key": ["id"], "between": "3..4", "condition": "amount < 0", "where": "x = 'a b'"}
"""Values of parameters in place of expressions, by their names."""
NUMBERS = {"a", "b", "ref", "to", "undo", "good", "bad", "limit", "depth", "metadata_bytes", "value_bytes"}
OF_PYTHON_ALONE = {
    "",  # arguments that no command has, such as mode
    "Limits",
    "snapshot.changelog",
    "snapshot.file_changes",
    "table.changes_since",
    "table.lifetimes",
    "table.row_changes",
}
"""Verbs that no command makes."""
IN_NOTEBOOKS = {"explore"}
"""Verbs that a terminal does not have."""


@cache
def constructions():
    """Return the hints that the package constructs: file and line, verb, and the nodes of the arguments.

    Without those of `agents`, which no other surface spells: `tests/agents/test_tools.py` makes these calls.
    """
    return [
        (f"{file.relative_to(PACKAGE)}:{node.lineno}", node)
        for file in sorted(PACKAGE.rglob("*.py"))
        if "Hint(" in (content := file.read_text()) and file != PACKAGE / "core" / "hints.py"
        if file.parent.name != "agents"
        for node in ast.walk(ast.parse(content))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Hint"
    ]


def value_of(name, node):
    """Return the value of an argument: a literal as it is, for an expression one of its kind."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Hint":
        return hint_of(node)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return VALUES.get(name, 3 if name in NUMBERS else f"a {name}")


def arguments_of(node):
    match node:
        case ast.Dict():
            names = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            known = [(name, value) for name, value in zip(names, node.values, strict=True) if name is not None]
            computed = {"metadata_bytes": 3} if isinstance(node.keys[0], ast.Name) else {}
            return computed | {name: value_of(name, value) for name, value in known}
        case ast.IfExp():
            return arguments_of(node.orelse)
        case ast.Name(id="versions"):
            return {"a": 3, "b": 4}
    return {"undo": 3, "where": "x = 'a b'", "key": ["id"], "name": "db.t"}  # of `repairs.request`


def hint_of(node):
    verb = node.args[0].value
    result = "before" if node.keywords else ""
    return Hint(verb, arguments_of(node.args[1]) if len(node.args) > 1 else {}, result=result)


@cache
def all_hints():
    """Return each hint once, named for the first place that constructs it."""
    hints = {repr(hint_of(node)): pytest.param(hint_of(node), id=place) for place, node in constructions()[::-1]}
    return list(hints.values())[::-1]


@cache
def shell_commands():
    return terminal.commands_for("/data/my orders")


def callable_of(verb):
    owner, _, name = verb.rpartition(".")
    return getattr(OWNERS[owner] if owner else sx, name)


def parameters():
    """Return the names of the parameters of all public calls."""
    calls = [*(callable_of(verb) for verb in VERBS), sx.diff3]
    return {name for call in calls for name in inspect.signature(call).parameters}


def test_there_are_hints_in_every_part_of_the_package():
    assert len(constructions()) > 150
    assert {place.partition("/")[0] for place, _ in constructions()} >= {
        "analysis", "arrow", "core", "engines", "formats", "history", "jupyter", "lake", "results", "storage",
        "table", "view",
    }  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_a_public_call_with_these_parameters(verb):
    names = list(inspect.signature(callable_of(verb)).parameters)
    own = [name for name in names if name != "self"]

    assert own[: len(VERBS[verb])] == list(VERBS[verb])


@pytest.mark.parametrize("hint", all_hints())
def test_python_spells_a_public_call_that_parses(hint):
    text = python_call(hint)

    (statement,) = ast.parse(text if hint.verb else f"call({text})").body
    call = statement.value
    assert isinstance(call, ast.Call)
    known = parameters() if not hint.verb else set(inspect.signature(callable_of(hint.verb)).parameters) | {"ref"}
    assert {keyword.arg for keyword in call.keywords} <= known
    assert set(hint.arguments) <= known


def parse_line(words, commands):
    command = find_command(commands, words[0].text)
    return command, parse(command, words[1:], expand=lambda text: expand(text, {}), is_table=lambda _: False)


@pytest.mark.parametrize("hint", all_hints())
def test_a_line_of_the_magic_parses_with_its_command(hint):
    line = magic_line(hint, COMMANDS)

    if line == python_call(hint):
        assert hint.verb in OF_PYTHON_ALONE or is_not_typed(hint)
        return
    if not hint.verb:
        command = next(item for item in COMMANDS if magic_line(hint, COMMANDS, command=item) == line)
        needed = "17 " if command.begins_with_condition or any(item.required for item in command.arguments) else ""
        line = f"%snapshot {command.name} {needed}{line}"
    written = as_command(line.removeprefix("%snapshot "), None, commands=COMMANDS, is_table=lambda _: False)
    command, arguments = parse_line(written.words, COMMANDS)
    assert any(call.verb == hint.verb for call in command.calls) or not hint.verb
    assert_same_values(hint, arguments)


@pytest.mark.parametrize("hint", all_hints())
def test_a_line_of_a_shell_parses_with_its_command(hint):
    line = terminal.shell_line(hint, path="/data/my orders")

    if line is None:
        assert hint.verb in OF_PYTHON_ALONE | IN_NOTEBOOKS or is_not_typed(hint) or not hint.verb
        return
    commands = shell_commands()
    if not hint.verb:
        command = next(item for item in commands if terminal.shell_line(hint, command=item) == line)
        needed = "17 " if any(item.required for item in command.arguments) and not command.accepts_path else ""
        line = f"snapshot-explorer {command.name} '/data/my orders' {needed}{line}"
    head, *words = shlex.split(line)
    assert head == "snapshot-explorer"
    if words[0] not in terminal.names():  # a path, and the options of a card
        assert hint.verb == "open_table"
        return
    name, *others = words if words[0] == "lake" else [words[0], *words[2:]]
    tokens = [LineToken(name), *(LineToken(word, quote="'" if " " in word else "") for word in others)]
    _, arguments = parse_line(tokens, commands)
    assert_same_values(hint, arguments)


def is_not_typed(hint):
    """Return whether an argument is a dict for a variable, an empty list, or one that no command has."""
    return any(
        isinstance(value, dict) or value == [] or name in ("fo", "storage_options", "external_files", "limits")
        for name, value in hint.arguments.items()
    )


def assert_same_values(hint, arguments):
    """Assert that the texts and numbers of a hint are those that the command received."""
    received = " ".join(
        [*arguments.values.values(), *(text for texts in arguments.repeated.values() for text in texts)]
    )
    for name, value in hint.arguments.items():
        is_left_out = name in ("path", "table", "target", "level") or value == "latest^"
        if isinstance(value, str | int) and not isinstance(value, bool) and not is_left_out:
            assert str(value) in received


NASTY = st.text(st.sampled_from("ab/ .'\"{}$;|&`\\%-=,#\n\u202e"), min_size=1, max_size=12)


@given(NASTY)
def test_quotes_of_a_line_keep_every_value_and_expand_nothing(value):
    variables = dict.fromkeys("ab", "EXPANDED")
    word = quote_in_line(value)

    if word is not None:
        tokens = as_command(f"report {word} 1..2", None, commands=COMMANDS, is_table=lambda _: False).words
        assert [expand(token.text, variables) for token in tokens] == ["report", value, "1..2"]
    else:
        assert escape(value) is None or not value.isprintable() or re.search("['\"]", value)


@given(NASTY, NASTY)
def test_names_from_a_table_reach_the_command_as_they_are_or_not_at_all(path, branch):
    hint = Hint("open_table", {"path": path, "branch": branch})

    call = ast.parse(python_call(hint), mode="eval").body
    assert [call.args[0].value, call.keywords[0].value.value] == [path, branch]
    shell = terminal.shell_line(hint)
    assert shell is None or shlex.split(shell)[1:] == [path, "--branch", branch]
    line = magic_line(hint, COMMANDS)
    if line != python_call(hint):
        words = as_command(line.removeprefix("%snapshot "), None, commands=COMMANDS, is_table=lambda _: False).words
        _, arguments = parse_line(words, COMMANDS)
        assert (arguments.get("path"), arguments.get("branch")) == (path, branch)


IN_NOTEBOOKS_ALONE = ("jupyter/help_text.py", "jupyter/completion.py", "jupyter/extension.py", "jupyter/magics.py")
IN_NOTEBOOKS_ALONE += ("jupyter/tables.py",)
"""Modules whose text only a notebook shows."""
THAT_SPELL = ("core/hints.py", "jupyter/command.py", "jupyter/spelling.py", "terminal/commands.py")
THAT_SPELL += ("terminal/notebook.py",)
HELP = {"examples", "python", "notes", "notes_in_notebooks", "meaning"}
"""Fields of a command's record."""
THAT_CITE = ("analysis/checks/result.py", "analysis/pairs/pair_plan.py", "history/expressions.py", "lake/changes.py")
THAT_CITE += ("lake/lake.py", "lake/tracing.py", "view/records/lakes.py", "jupyter/explorer/")
"""Modules that cite the call that returned a result, or that a view is of, which is Python in every surface."""
LINE = re.compile(r"(?<!%)%snapshot ")
CALL = re.compile(rf"\b(?:table|snapshot|lake)\.\w+\(|\b(?:{'|'.join(name for name in VERBS if '.' not in name)})\(")


def messages(pattern):
    """Yield the literals that match and are neither docstrings nor help: file, line, text without what is inserted."""
    for file in sorted(PACKAGE.rglob("*.py")):
        content = file.read_text()
        if not pattern.search(content):
            continue
        tree = ast.parse(content)
        nodes = list(ast.walk(tree))
        left_out = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        left_out |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        of_help = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg in HELP]
        calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        of_help += [value for node in calls if node.func.id in ("Option", "Argument") for value in node.args]
        left_out |= {id(part) for value in of_help for part in ast.walk(value)}
        for node in nodes:
            if id(node) not in left_out and isinstance(node, ast.JoinedStr | ast.Constant):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                text = "\0".join(
                    part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )
                if pattern.search(text):
                    yield str(file.relative_to(PACKAGE)), node.lineno, text


def test_no_message_spells_a_line_of_the_magic():
    found = [item for item in messages(LINE) if not item[0].startswith((*IN_NOTEBOOKS_ALONE, *THAT_SPELL))]

    assert found == []


def test_no_message_spells_a_call():
    without = (*IN_NOTEBOOKS_ALONE, *THAT_SPELL, *THAT_CITE, "core/old_libraries.py")
    found = [item for item in messages(CALL) if not item[0].startswith(without)]

    assert [item for item in found if "`snapshot." not in item[2]] == []  # a feature's condition, for the guide


def test_an_error_keeps_its_hints_through_a_pickle_and_hides_secrets_in_them():
    hint = Hint("open_table", {"path": "https://user:word@host/t?sig=SECRET", "branch": "dev"})

    for error_class in (InvalidArgumentError, TableNotFoundError, StorageError, AccessDeniedError):
        error = pickle.loads(pickle.dumps(error_class(Message("Open it: ", hint, "."))))
        assert str(error).startswith("Open it: open_table('https://")
        assert error.message.hints[0].arguments["branch"] == "dev"
        for shown in (str(error), spell(error.message, lambda item: magic_line(item, COMMANDS)), repr(error)):
            assert "SECRET" not in shown
            assert "word" not in shown


def test_messages_are_composed_with_their_hints():
    cause = InvalidArgumentError(Message("Use ", Hint("table.verify"), "."))
    whole = Message("Not checked: ", without_period(cause.message), "; ", join(" and ", [cause.message, "more"]))

    assert whole == "Not checked: Use table.verify(); Use table.verify(). and more"
    assert [hint.verb for hint in whole.hints] == ["table.verify"] * 2
    assert spell(whole, lambda hint: magic_line(hint, COMMANDS)).startswith("Not checked: Use %snapshot verify; ")
    assert Message(ValueError("plain"), 3) == "plain3"
    foreign = ValueError("its text")
    foreign.message = "another"
    assert Message("Not read: ", foreign) == "Not read: its text"


def test_arguments_alone_are_options_of_the_command_that_runs():
    hint = Hint("", {"key": ["order id", "x"]})
    commands = {command.name: command for command in COMMANDS}

    assert magic_line(hint, COMMANDS, command=commands["diff"]) == '--key "order id,x"'
    assert magic_line(hint, COMMANDS, command=commands["log"]) == "key=['order id', 'x']"
    assert magic_line(Hint("", {"maintenance": False}), COMMANDS) == "--no-maintenance"
    assert magic_line(Hint("", {"maintenance": True}), COMMANDS) == "maintenance=True"


def test_the_same_error_in_three_surfaces(shell, capsys, tmp_path):
    table = samples.path("orders")
    inside = f"{table}/snapshot"

    with pytest.raises(TableNotFoundError, match=re.escape(f"Open the table: open_table('{table}').")):
        sx.open_table(inside)
    assert shell.fails(f"%snapshot open {inside}").endswith(f"Open the table: %snapshot open {table}.")
    assert terminal.run(["log", inside], room=80).text.endswith(f"Open the table: snapshot-explorer {table}.")
    assert f"snapshot-explorer {table}." in terminal.run(["log", inside, "--json"], room=80).text


def test_the_same_result_in_three_surfaces(shell):
    path = samples.path("orders")
    table = sx.open_table(path)

    assert "next            table.history(), table.compare('latest^'), explore(table)" in shown(table)
    opened = shell.ok(f"%snapshot open {path} as orders").shown
    assert "next            %snapshot log, %snapshot diff, %snapshot explore" in opened["text/plain"]
    assert "%snapshot diff" in opened["text/html"]
    text = terminal.run(["health", path], room=120).text
    assert f"snapshot-explorer verify {path}\n" in text
    facts = json.loads(terminal.run(["health", path, "--json"], room=120).text)["symptoms"][-1]
    sentence = "No file is missing: 18 versions can be loaded."
    assert (facts["hint"], facts["is_problem"]) == (f"snapshot-explorer verify {path}", False)
    assert facts["sentence"] == sentence
    assert "\n%snapshot verify\n" in shell.ok("%snapshot health").shown["text/plain"]
    assert "\ntable.verify()\n" in repr(table.health())


def shown(table):
    return table._repr_mimebundle_()["text/plain"]
