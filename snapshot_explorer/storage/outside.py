"""Files outside of a table's folder that its metadata names: whether they are read, and how they are spoken of."""

from itertools import takewhile
from typing import Literal, get_args

from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.storage.location import Location, is_outside, shortened

ExternalFiles = Literal["allow", "refuse"]
"""Whether files outside of the table's folder are read."""
_COUNTED = 10_000
"""Files that are told apart; of more, it is said that there are more."""


def rule_of(text: object) -> ExternalFiles:
    """Return the rule that a text names.

    Raises:
        InvalidArgumentError: There is no such rule.
    """
    if text in get_args(ExternalFiles):
        return "allow" if text == "allow" else "refuse"
    raise InvalidArgumentError(f"external_files must be 'allow' or 'refuse', got {shortened(repr(text))}.")


class Outside:
    """What is known of a table's files outside of its folder. Safe to use from several threads."""

    def __init__(self, root: Location, rule: ExternalFiles) -> None:
        """Know of none yet."""
        self._root = root
        self._rule = rule
        self._found: set[str] = set()
        self._is_said = False

    def checked(self, location: Location) -> Location:
        """Return a location that the metadata names, noted if it is outside of the folder.

        Raises:
            UnsupportedFeatureError: It is outside, and such files are refused.
        """
        if not is_outside(location, self._root):
            return location
        if self._rule == "refuse":
            raise UnsupportedFeatureError(
                f"The table names the file {shortened(location.shown)}, which is outside of its folder, "
                f"{self._root.shown}. It is not read, because the table was opened with external_files='refuse'. "
                "If you trust the table, open it with external_files='allow'."
            )
        if len(self._found) <= _COUNTED:
            self._found.add(location.shown)
        return location

    @property
    def note(self) -> str | None:
        """How many files there are and below which folder; None if there is none."""
        found = list(self._found.copy())
        if not found:
            return None
        count = (
            f"more than {_COUNTED:,} files"
            if len(found) > _COUNTED
            else f"{len(found):,} file" + "s" * (len(found) > 1)
        )
        return f"{count} outside of the table's folder, {_below(found)}"

    def unsaid(self) -> str | None:
        """Return the note the first time that there is one, and from then on None."""
        if self._is_said or not self._found:
            return None
        self._is_said = True
        return self.note


def _below(locations: list[str]) -> str:
    """Return the deepest folder that holds all of them. Those between the first and the last share what these share."""
    first, last = (location.split("/")[:-1] for location in (min(locations), max(locations)))
    shared = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))]
    scheme = 2 if "://" in locations[0] else 1
    return f"below {shortened('/'.join(shared))}" if len(shared) > scheme else "in several places"
