"""The rules of a check: names such as `late`, and conditions such as `rows < 0.5 * previous`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.core.text import did_you_mean
from snapshot_explorer.engines.conditions import Condition, parse_condition

RULES = ("late", "anomaly", "schema-change", "unreadable", "duplicates")
"""The names of rules. All but `duplicates` read metadata alone."""
DEFAULT_RULES = ("late", "anomaly", "unreadable")
MEASURES = ("rows", "files", "bytes")
PREVIOUS = "previous"
_NAMES = pa.schema(
    [
        *((name, pa.int64()) for name in MEASURES),
        (PREVIOUS, pa.int64()),
        *((f"{PREVIOUS}_{name}", pa.int64()) for name in MEASURES),
        *((name, pa.int64()) for name in ("commits", "added_rows", "removed_rows")),
        ("age_hours", pa.float64()),
    ]
)
"""The names in conditions: numbers of the newest version, of the last one before the window, and of its commits."""
_WORD = re.compile(r"[\w-]+")
_QUOTES = "\"'"


@dataclass(frozen=True)
class CheckCondition:
    """A condition on the numbers of a table, in SQL."""

    text: str

    @cached_property
    def compiled(self) -> Condition:
        """Return the condition, checked against the names that it may use."""
        try:
            result = parse_condition(self.text, _NAMES)
        except InvalidArgumentError as error:
            message = str(error).partition(" Write a WHERE")[0].replace("Unknown column", "Unknown name")
            raise InvalidArgumentError(message.replace("Columns:", "Names:")) from error
        if PREVIOUS in result.columns and len(self._measures(result)) != 1:
            raise InvalidArgumentError(
                f"In {self.text!r}, previous is ambiguous: it is that of rows, files or bytes, if the condition names "
                f"exactly one of them. Write previous_rows, previous_files or previous_bytes."
            )
        return result

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> Sequence[str]:
        """Return the names in the condition, in the order of the documentation; `previous` in full."""
        columns = {
            f"{PREVIOUS}_{self._measures(self.compiled)[0]}" if c == PREVIOUS else c for c in self.compiled.columns
        }
        return [name for name in _NAMES.names if name in columns]

    def holds(self, numbers: Mapping[str, float | None]) -> bool:
        """Return whether the condition holds. The numbers that it names must be known."""
        values = dict(numbers)
        if PREVIOUS in self.compiled.columns:
            values[PREVIOUS] = values[f"{PREVIOUS}_{self._measures(self.compiled)[0]}"]
        row = pa.table([pa.array([values.get(field.name)], field.type) for field in _NAMES], schema=_NAMES)
        return bool(self.compiled.mask(row)[0].as_py())

    @staticmethod
    def _measures(compiled: Condition) -> Sequence[str]:
        return [name for name in MEASURES if name in compiled.columns]


Rule = str | CheckCondition


def parse_rules(rules: object) -> tuple[Rule, ...]:
    """Return the rules of a text with commas, or of a list; each is a name or a condition.

    Raises:
        InvalidArgumentError: A name is unknown, a condition is not valid, or there is none.
    """
    if isinstance(rules, str):
        texts = [part.strip() for part in _parts(rules)]
    elif isinstance(rules, list | tuple) and all(isinstance(rule, str) for rule in rules):
        texts = [rule.strip() for rule in rules]
    else:
        raise InvalidArgumentError(
            f"Rules are text, such as 'late,unreadable', or a list of it, got {brief_repr(rules)}."
        )
    chosen = tuple(_rule(text) for text in dict.fromkeys(map(_unquoted, texts)) if text)
    if not chosen:
        raise InvalidArgumentError(f"fail_on contains no rule. {_choices()}")
    return chosen


def _parts(text: str) -> list[str]:
    """Return the parts of a text between commas that are neither quoted nor in parentheses."""
    commas: list[int] = []
    opened: list[int] = []  # the number of commas before each open parenthesis; those after it stay until it is closed
    end_of_quote = -1
    for index, letter in enumerate(text):
        if index <= end_of_quote:
            continue
        if letter in _QUOTES:
            end_of_quote = text.find(letter, index + 1)
        elif letter == "(":
            opened.append(len(commas))
        elif letter == ")" and opened:
            del commas[opened.pop() :]
        elif letter == ",":
            commas.append(index)
    begins = [0, *(comma + 1 for comma in commas)]
    return [text[begin:end] for begin, end in zip(begins, [*commas, len(text)], strict=True)]


def _rule(text: str) -> Rule:
    if text in RULES:
        return text
    if _WORD.fullmatch(text):
        near = did_you_mean(text.lower().replace("_", "-"), RULES)
        raise InvalidArgumentError(f"There is no rule {text!r}.{near} {_choices()}")
    result = CheckCondition(text)
    _ = result.compiled
    return result


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]
    return text[1:-1].strip() if is_quoted else text


def _choices() -> str:
    return f"Rules: {', '.join(RULES)}, and conditions such as rows < 0.5 * previous."
