"""The timeline of an explorer: commits, the markers A and B, and what a click on a commit does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anywidget
from traitlets import Dict, Unicode, default

from snapshot_explorer.jupyter.explorer.page.scripts import script
from snapshot_explorer.jupyter.explorer.page.widget_factory import Unsent
from snapshot_explorer.render.commits import with_totals
from snapshot_explorer.render.timeline import timeline
from snapshot_explorer.render.timeline_columns import timeline_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from snapshot_explorer.render.figures import Picture
    from snapshot_explorer.render.timeline_columns import TableFacts


class TimelinePane(Unsent, anywidget.AnyWidget):
    """Draws commits with markers, and reports clicks on them.

    Everything visible is in traits, which a page receives with the widget: a page that opens late, or again, draws the
    same. Nothing needs a click.
    """

    _esm = Unicode().tag(sync=True)
    commits = Dict(help="The commits, as `timeline_columns` returns them; empty before they are known.").tag(sync=True)
    facts = Dict(help="The line and the anomalies of the same commits, which are known later.").tag(sync=True)
    a = Unicode(help="The version of marker A, as text: browsers cannot hold each 64-bit number.").tag(sync=True)
    b = Unicode(help="The version of marker B.").tag(sync=True)

    zone = Unicode("UTC", help="The zone of the times below the versions; empty for that of the page.").tag(sync=True)

    def __init__(self, clicked: Callable[[int, bool], None], **traits: Any) -> None:
        """Draw nothing yet.

        Args:
            clicked: Receives the version whose commit was clicked, and whether it is for the other marker.
            traits: Traits of the widget.
        """
        super().__init__(**traits)
        self._clicked = clicked
        self._versions: dict[str, int] = {}
        self.picture: Picture | None = None
        self.on_msg(self._receive)

    @default("_esm")
    def _module(self) -> str:
        return script("timeline.js")

    def draw(
        self,
        commits: pa.Table,
        *,
        measure: str,
        title: str,
        total: int,
        facts: TableFacts,
        a: int | None,
        b: int | None,
    ) -> None:
        """Draw the commits in place of the previous ones."""
        known = with_totals(commits, facts.totals)
        self.picture = timeline(known, y=measure, title=title, total=total, branches=facts.branches, notes=facts.notes)
        self._versions = {str(version): version for version in commits["version"].to_pylist()}
        with self.hold_sync():
            columns = timeline_columns(commits, y=measure, facts=facts)
            self.facts = {name: columns.pop(name) for name in ("total", "line", "jumps")}
            self.commits = columns
            self.mark(a, b)

    def mark(self, a: int | None, b: int | None) -> None:
        """Move the markers; a marker at a version that is not drawn is invisible."""
        with self.hold_sync():
            self.a, self.b = (version if version in self._versions else "" for version in (str(a), str(b)))

    def close(self) -> None:
        """Free the widget and what it draws."""
        self.picture = None
        super().close()

    def _receive(self, _widget: object, content: Any, _buffers: object) -> None:
        """Pass on a click on a commit that is drawn; other messages are ignored."""
        version = content.get("click") if isinstance(content, dict) else None
        if isinstance(version, str) and version in self._versions:
            self._clicked(self._versions[version], content.get("other") is True)
