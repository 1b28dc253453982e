"""The user's variables in a magic's words: `{expression}` and `$name`.

IPython can expand a whole line before it is split into words, but then values with blanks or quotes are split too, and
one brace in a condition that is not part of an expression prevents every expansion. So the words are expanded here,
one by one, after the split.
"""

import ast
import builtins
import operator
import re
from collections import ChainMap
from collections.abc import Mapping
from datetime import date, datetime
from typing import SupportsIndex

from snapshot_explorer.table import Snapshot, Table

_PATTERN = re.compile(
    r"\{\{(?P<kept>.*?)\}\}"
    r"|\{(?P<expression>[^{}]*)\}"
    r"|\$\$(?P<escaped>\w+)"
    # Like IPython: not inside single quotes, where SQL and shells mean the sign itself.
    r"|\$(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?=(?:[^']*'[^']*')*[^']*$)"
)


class UserVariables(ChainMap[str, object]):
    """The user's variables: the calling function's before the global ones. A traceback shows none of them."""

    def __repr__(self) -> str:
        return "<the user's variables>"


def expand(text: str, variables: Mapping[str, object]) -> str:
    """Return the text with `{expression}` and `$name` replaced by the values of the user's variables.

    Text that names no variable remains as it is: braces and dollars are common in conditions and paths.
    `{{x}}` and `$$x` stand for `{x}` and `$x`. A list of texts becomes `a,b`, a time ISO 8601, an open table
    its name. An error raised by an expression of known variables is the user's own, and is not caught.
    """
    return _PATTERN.sub(lambda match: _replacement(match, variables), text)


def escape(text: str) -> str | None:
    """Return text that `expand` turns into this text, whatever the user's variables are; None if there is none."""
    escaped = re.sub(r"\{([^{}]*)\}", r"{{\1}}", text)
    escaped = re.sub(r"\$(?=\w)", "$$", escaped)
    found = [match.lastgroup for match in _PATTERN.finditer(escaped)]
    if any(name not in ("kept", "escaped") for name in found) or expand(escaped, {}) != text:
        return None
    return escaped


def dict_variables(variables: Mapping[str, object]) -> list[str]:
    """Return the names of the user's variables that hold a dict, without IPython's own."""
    return [
        name
        for name, value in list(variables.items())
        if issubclass(type(value), dict) and name != "Out" and not name.startswith("_")
    ]


def value_of_name(text: str, variables: Mapping[str, object]) -> str | None:
    """Return the value of a bare variable's name where a ref, a number or a time is expected; None if it is not one.

    The variable may hold a whole number, text, a date or time, or a snapshot.
    """
    value = variables.get(text) if text.isidentifier() else None
    if isinstance(value, bool):
        return None
    if isinstance(value, SupportsIndex):
        return str(operator.index(value))
    if isinstance(value, str):
        return value
    if isinstance(value, date):
        return f"@{value.isoformat()}"
    return str(value.ref) if isinstance(value, Snapshot) and value.ref is not None else None


def _replacement(match: re.Match[str], variables: Mapping[str, object]) -> str:
    if match["kept"] is not None:
        return f"{{{match['kept']}}}"
    if match["escaped"] is not None:
        return f"${match['escaped']}"
    expression = match["expression"]
    if expression is not None:
        return _evaluate(expression, variables) if _is_of_variables(expression, variables) else match.group()
    return _attribute_value(match["name"], variables) or match.group()


def _is_of_variables(expression: str, variables: Mapping[str, object]) -> bool:
    """Return whether the text is a Python expression in which each name is known, and one is a variable."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - bound
    return any(name in variables for name in names) and all(
        name in variables or hasattr(builtins, name) for name in names
    )


def _evaluate(expression: str, variables: Mapping[str, object]) -> str:
    # The user typed the text in their own cell. IPython evaluates it in the same way in every other magic.
    value = eval(expression.strip(), dict(variables))  # noqa: S307
    return expression.strip() if isinstance(value, Table) else _as_text(value)


def _attribute_value(name: str, variables: Mapping[str, object]) -> str | None:
    """Return the value of `name.attribute`, followed by the text after the attributes; None without such a variable."""
    first, *attributes = name.split(".")
    if first not in variables:
        return None
    value = variables[first]
    for position, attribute in enumerate(attributes):
        if not hasattr(value, attribute):
            return ".".join([_as_text(value), *attributes[position:]])
        value = getattr(value, attribute)
    return name if isinstance(value, Table) else _as_text(value)


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return str(value)
