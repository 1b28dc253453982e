"""The outcome of something that a button starts: loading rows, bisecting a condition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(slots=True)
class Outcome:
    """What is shown of it: a sentence or an error, and the line of code that does the same."""

    busy: Callable[[str], None] = field(repr=False)
    """Receives what is being read; empty text once nothing is."""
    changed: Callable[[], None] = field(repr=False)
    """Called with each new outcome."""
    text: str = ""
    error: str = ""
    code: str = ""
    source: str = ""
    tracks: Mapping[str, Any] = field(default_factory=dict)
    """A picture of it, from `tracks_content`; empty if there is none."""

    def show(
        self, text: str, *, error: str = "", code: str = "", source: str = "", tracks: Mapping[str, Any] | None = None
    ) -> None:
        """Show the outcome: nothing is being read any more."""
        self.text, self.error, self.code, self.source = text, error, code, source
        self.tracks = tracks or {}
        self.busy("")
        self.changed()

    def fail(self, sentence: str) -> None:
        """Show an error message."""
        self.show("", error=sentence)

    @property
    def content(self) -> dict[str, Any]:
        """Return what is shown, as the page receives it."""
        texts = {name: visible(getattr(self, name)) for name in ("text", "error", "code", "source")}
        return {**texts, "tracks": dict(self.tracks)}
