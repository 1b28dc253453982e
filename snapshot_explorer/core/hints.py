"""Hints: the calls that messages, notes and findings suggest, as data that each surface spells in its own way.

A call is a verb, the name of a public call, and its arguments. `str(message)` spells it in Python, and
`jupyter/spelling.py` as a `%snapshot` line and as a command of a shell, from the records of the commands. A surface
without a spelling of its own shows Python. No surface searches text for calls.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

VERBS: Mapping[str, tuple[str, ...]] = {
    "Limits": (),
    "check": ("target", "fail_on"),
    "diff": ("a", "b", "key"),
    "explore": ("table",),
    "find_tables": ("path",),
    "lake.overview": (),
    "open_lake": ("path",),
    "open_table": ("path",),
    "report": ("path",),
    "snapshot.changelog": (),
    "snapshot.count": (),
    "snapshot.duplicates": ("key",),
    "snapshot.entries": ("manifest",),
    "snapshot.file_changes": (),
    "snapshot.files": ("partition",),
    "snapshot.manifests": (),
    "snapshot.plan": (),
    "snapshot.to_arrow": (),
    "snapshot.to_pandas": (),
    "snapshot.to_spark": ("spark",),
    "sql": ("query",),
    "table.anomalies": ("columns",),
    "table.at": ("ref",),
    "table.bisect": ("condition",),
    "table.blame": ("where",),
    "table.branches": (),
    "table.changes_since": ("position",),
    "table.compare": ("a", "b"),
    "table.diff_rows": ("a", "b"),
    "table.health": ("ref",),
    "table.history": ("between",),
    "table.inspect": ("name", "ref"),
    "table.lifetimes": (),
    "table.orphans": ("older_than",),
    "table.profile_over": ("columns", "between"),
    "table.repair": ("to",),
    "table.retention": ("keep",),
    "table.row_changes": ("a", "b"),
    "table.row_history": ("where",),
    "table.tags": (),
    "table.trace": ("where",),
    "table.usage": ("by",),
    "table.verify": ("level",),
    "twins": ("path", "other"),
}
"""The verbs, and the parameters of each that Python spells without their names."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A call that is suggested, or arguments to add to the call that was made."""

    verb: str
    """The public call: `open_table`, or `table.verify`, `snapshot.to_arrow`; empty for arguments alone."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Its arguments by the names of the parameters; `ref` of a snapshot's method is its version. Texts, numbers, bools,
    None, lists and mappings of them, another hint such as `Limits(...)`, and `...` for a value that the user knows."""
    result: str = ""
    """The variable for what the call returns; empty without one."""

    def __post_init__(self) -> None:
        """Refuse a verb that is not listed."""
        if self.verb and self.verb not in VERBS:
            raise ValueError(f"There is no verb {self.verb!r}.")


class Message(str):
    """Text with hints in it. As a `str` it spells them in Python; `spell` spells them for another surface."""

    __slots__ = ("parts",)
    parts: tuple[str | Hint, ...]
    """Its texts and hints, in order."""

    def __new__(cls, *parts: object) -> Self:
        """Join texts, hints, other messages, and errors with their hints.

        Args:
            parts: In order. Anything but a hint, a message and an error becomes its `str`.
        """
        flat: list[str | Hint] = []
        for part in parts:
            content = getattr(part, "message", None) if isinstance(part, Exception) else part
            if isinstance(content, Message):
                flat += content.parts
            else:
                flat.append(part if isinstance(part, Hint) else str(part))
        self = super().__new__(cls, "".join(part if isinstance(part, str) else python_call(part) for part in flat))
        self.parts = tuple(flat)
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[str | Hint, ...]]:
        return type(self), self.parts

    @property
    def hints(self) -> tuple[Hint, ...]:
        """Its hints, in order."""
        return tuple(part for part in self.parts if isinstance(part, Hint))


def spell(text: str, call: Callable[[Hint], str]) -> str:
    """Return text with its hints spelled by a surface; text without hints as it is.

    Args:
        call: Spells a hint, such as `python_call`.
    """
    if not isinstance(text, Message):
        return text
    return "".join(part if isinstance(part, str) else call(part) for part in text.parts)


def map_texts(text: str, change: Callable[[str], str], change_argument: Callable[[str], str]) -> str:
    """Return text whose parts are changed; in a message, its texts and the texts in the arguments of its hints."""
    if not isinstance(text, Message):
        return change(text)
    parts = [change(part) if isinstance(part, str) else _map_arguments(part, change_argument) for part in text.parts]
    return Message(*parts)


def join(separator: str, texts: Sequence[object]) -> Message:
    """Return texts as one message, as `str.join` does, with the hints of all."""
    return Message(*[part for text in texts for part in (separator, text)][1:])


def without_period(text: str) -> str:
    """Return a sentence without the period at its end, to continue it."""
    if not isinstance(text, Message) or not text.parts:
        return text.rstrip(".")
    *parts, last = text.parts
    return Message(*parts, last.rstrip(".") if isinstance(last, str) else last)


def python_call(hint: Hint) -> str:
    """Return a hint in Python: `table.verify()`, `open_table('/data/orders')`, or `columns=[...]`.

    A snapshot's method with a `ref` is spelled as `table.at(17).to_arrow()`.
    """
    arguments = dict(hint.arguments)
    verb = hint.verb
    if verb.startswith("snapshot.") and "ref" in arguments:
        verb = f"table.at({_literal(arguments.pop('ref'))}).{verb.removeprefix('snapshot.')}"
    values = []
    for name in VERBS.get(hint.verb, ()):
        if name not in arguments:
            break
        value = arguments.pop(name)
        # The table that a hint is about has the name that the methods of tables have here.
        values.append("table" if name == "table" and value is ... else _literal(value))
    shown = ", ".join([*values, *(f"{name}={_literal(value)}" for name, value in arguments.items())])
    return f"{hint.result} = {verb}({shown})".removeprefix(" = ") if verb else shown


def _literal(value: object) -> str:
    match value:
        case Hint():
            return python_call(value)
        case Mapping():
            items = ", ".join(f"{_literal(name)}: {_literal(item)}" for name, item in value.items())
            return f"{{{items}}}"
        case list() | tuple():
            return f"[{', '.join(map(_literal, value))}]"
    return "..." if value is ... else repr(value)


def _map_arguments(hint: Hint, change: Callable[[str], str]) -> Hint:
    return replace(hint, arguments={name: _map_value(value, change) for name, value in hint.arguments.items()})


def _map_value(value: object, change: Callable[[str], str]) -> object:
    match value:
        case str():
            return change(value)
        case Hint():
            return _map_arguments(value, change)
        case Mapping():
            return {_map_value(name, change): _map_value(item, change) for name, item in value.items()}
        case list() | tuple():
            return [_map_value(item, change) for item in value]
    return value
