"""Files outside a table's folder that its metadata names: whether they are read, and how they are reported."""

import os
from itertools import takewhile
from typing import Literal, get_args

from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.storage.location import LOCAL, Location, is_outside, resolve_location, shorten
from snapshot_explorer.storage.same_files import RealPaths

ExternalFiles = Literal["allow", "refuse"]
"""Whether files outside of the table's folder are read."""
_MAX_COUNTED = 10_000
"""Up to this many files are counted exactly."""


def parse_external_files(text: object) -> ExternalFiles:
    """Return a valid value of `external_files`."""
    if text in get_args(ExternalFiles):
        return "allow" if text == "allow" else "refuse"
    raise InvalidArgumentError(f"external_files must be 'allow' or 'refuse', got {shorten(repr(text))}.")


class ExternalLocations:
    """Resolves a table's full locations, and records its files outside of its folder. Safe to use from several threads.

    A local file whose path leads through a symbolic link into the folder counts as inside it.
    """

    def __init__(self, root: Location, rule: ExternalFiles, account: object = None) -> None:
        """Start without files.

        Args:
            account: The account of Azure in the storage options.
        """
        self._root, self._rule, self._account = root, rule, account
        self._real_paths = RealPaths()
        self._found: set[str] = set()
        self._is_reported = False

    def resolve(self, path: str) -> Location:
        """Return the location of a full path in the metadata; record it if it is outside of the folder."""
        location = resolve_location(path, self._root, self._account)
        if not self._is_outside(location):
            return location
        if self._rule == "refuse":
            raise UnsupportedFeatureError(
                Message(
                    f"The table names the file {shorten(location.shown)}, which is outside of its folder, "
                    f"{self._root.shown}. It is not read, because the table was opened with ",
                    Hint("", {"external_files": "refuse"}),
                    ". If you trust the table, open it with ",
                    Hint("", {"external_files": "allow"}),
                    ".",
                )
            )
        if len(self._found) <= _MAX_COUNTED:
            self._found.add(location.shown)
        return location

    def _is_outside(self, location: Location) -> bool:
        if not is_outside(location, self._root) or self._root.protocol != LOCAL:
            return is_outside(location, self._root)
        folder = os.path.realpath(self._root.address)
        return not self._real_paths.of(location.address).startswith(folder.rstrip(os.sep) + os.sep)

    @property
    def note(self) -> str | None:
        """The number of files and their common folder; None if there are none."""
        paths = list(self._found.copy())
        if not paths:
            return None
        count = f"more than {_MAX_COUNTED:,} files" if len(paths) > _MAX_COUNTED else pluralize(len(paths), "file")
        return f"{count} outside of the table's folder, {_common_folder(paths)}"

    def first_note(self) -> str | None:
        """Return the note once, then None."""
        if self._is_reported or not self._found:
            return None
        self._is_reported = True
        return self.note


def _common_folder(locations: list[str]) -> str:
    """Return the deepest folder that contains all locations: the common prefix of the smallest and the largest."""
    first, last = (location.split("/")[:-1] for location in (min(locations), max(locations)))
    shared = [item for item, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))]
    scheme = 2 if "://" in locations[0] else 1
    return f"below {shorten('/'.join(shared))}" if len(shared) > scheme else "in several places"
