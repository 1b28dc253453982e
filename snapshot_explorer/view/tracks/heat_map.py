"""A map of numbers: a row for each label, a column for each version or run of versions; as data."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.view.tracks.tracks import run_text

_FAINTEST = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Numbers of labels over versions."""

    title: str
    labels: tuple[str, ...]
    """A label for each row."""
    versions: tuple[int, ...]
    """The first and the last version of each column, one after the other."""
    numbers: npt.NDArray[np.int64]
    """A number for each row and column; nothing is drawn for 0."""
    unit: str
    """The measure of the files that were added or removed: rows, files or bytes."""
    note: str = ""
    """A note on labels that are not drawn; empty if all are."""

    def column(self, index: int) -> str:
        """Return the versions of a column as text."""
        return run_text(*self.versions[2 * index : 2 * index + 2])

    @property
    def what(self) -> str:
        """Return the measure in words."""
        return "files added or removed" if self.unit == "files" else f"{self.unit} in files added or removed"

    @property
    def caption(self) -> str:
        """Return the title, the measure, the range that is drawn, and the note."""
        span = f"versions {self.versions[0]} to {self.versions[-1]}" if self.versions else ""
        return " \N{MIDDLE DOT} ".join(text for text in (self.title, self.what, span, self.note) if text)

    def number(self, value: int) -> str:
        """Return a number with its unit."""
        amount = format_size(value) if self.unit == "bytes" else pluralize(value, self.unit.removesuffix("s"))
        return f"{amount} added or removed" if self.unit == "files" else f"{amount} in files added or removed"

    def shades(self) -> npt.NDArray[np.float64]:
        """Return how strongly each number is drawn, up to 1: by its root, so that one rewrite does not fade others."""
        roots = np.sqrt(self.numbers)
        return np.where(self.numbers > 0, _FAINTEST + (1 - _FAINTEST) * roots / max(1.0, roots.max(initial=0)), 0)
