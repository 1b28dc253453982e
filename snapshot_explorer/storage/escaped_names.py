"""Text for names that are not UTF-8, from which the original names can be restored."""

from collections.abc import Sequence
from operator import itemgetter
from typing import TypeVar, cast

from snapshot_explorer.core.safe_text import escape_unencodable
from snapshot_explorer.storage.listings import Entry, EntryFields

E = TypeVar("E", bound=EntryFields)
_NAME = itemgetter(0)


class EscapedNames:
    r"""The names in the folders of a storage that are not UTF-8, which no frame, report or JSON document can contain.

    A byte `0xff` of a name is shown as `\xff`. The names are learned from listings.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def escape(self, folder: str, entries: Sequence[E]) -> Sequence[E]:
        """Return the entries of a folder with escaped names."""
        if all(map(str.isascii, map(_NAME, entries))):
            return entries
        names = {entry[0] for entry in entries}
        used_names = set(names)
        escapes: dict[str, str] = {}
        for name in sorted(names):
            if (escaped := escape_unencodable(name)) != name:
                while escaped in used_names:
                    escaped += " (not UTF-8)"  # another file has the escape in its name
                used_names.add(escaped)
                escapes[name] = escaped
        self._names.update((f"{folder}/{escaped}" if folder else escaped, name) for name, escaped in escapes.items())
        result = (Entry(escapes.get(entry[0], entry[0]), *entry[1:]) for entry in entries)
        return cast("Sequence[E]", list(result)) if escapes else entries

    def original(self, path: str) -> str:
        """Return a path with the original names on the storage."""
        if not self._names or not path:
            return path
        folder, slash, name = path.rpartition("/")
        return f"{self.original(folder)}{slash}{self._names.get(path, name)}"

    def has(self, path: str) -> bool:
        """Return whether a name in a path is escaped."""
        return self.original(path) != path
