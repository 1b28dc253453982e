"""The mixin by which a record shows itself; `view` decides how."""

from importlib import import_module
from typing import Any


class Shown:
    """A record that shows itself as text in a terminal, and as HTML in a notebook.

    `view` has the drawing of each type of record. It is imported when something is shown: it lies above all records.
    """

    __slots__ = ()

    def __str__(self) -> str:
        text: str = import_module("snapshot_explorer.view").text_of(self)
        return text

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = import_module("snapshot_explorer.view").mimebundle_of(self)
        return bundle
