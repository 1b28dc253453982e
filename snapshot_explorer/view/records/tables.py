"""What is drawn of a table and of a snapshot."""

from collections.abc import Sequence
from dataclasses import fields

from snapshot_explorer.arrow.value_text import WORDS
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.table import Snapshot, Table, card_of, parts_of
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Line, Pairs, Part
from snapshot_explorer.view.stored_details import stored_details

_COLUMNS = 50
"""The maximum number of columns on the card."""


@draw.register
def _table(table: Table) -> Drawing:
    """The facts that are known without a request, and the commands that come next."""
    card = card_of(table)
    known = Pairs(
        (
            ("path", Code(card.path)),
            *card.facts.items(),
            *([("next", tuple(Code(Message(call)) for call in card.next_calls))] if card.next_calls else []),
            *([("columns", _first_names(card.columns))] if card.columns else []),
        )
    )
    location = [] if card.location_note is None else [Line(card.location_note, is_faint=True)]
    return Drawing(title=card.name, parts=(known, *map(Line, card.notes), *location))


def _first_names(columns: Sequence[str]) -> str:
    """Return the first names as text, and how many more there are."""
    more = len(columns) - _COLUMNS
    return ", ".join(columns[:_COLUMNS]) + (f" and {more:,} more" if more > 0 else "")


@draw.register
def _snapshot(snapshot: Snapshot) -> Drawing:
    """The commit, files and schema, and what the writer stored of the commit."""
    if snapshot.version is None:
        nothing = Line("Nothing has been committed. The schema is:")
        return Drawing(
            title=f"{parts_of(snapshot).name} has no version yet", parts=(nothing, *drawing_of(snapshot.schema).parts)
        )
    try:
        stored = stored_details(snapshot.commit.details)
        parts: tuple[Part, ...] = (_facts(snapshot), *drawing_of(snapshot.schema).parts, *stored)
    except SnapshotExplorerError as error:
        parts = (Line(error.message),)
    return Drawing(title=f"{parts_of(snapshot).name} at {snapshot.label}", parts=parts)


def _facts(snapshot: Snapshot) -> Pairs:
    commit, live = snapshot.commit, parts_of(snapshot).loaded.live_files()
    hidden = {"version", "details", "removed_bytes", "added_bytes"}
    known = [(field.name, getattr(commit, field.name)) for field in fields(commit) if field.name not in hidden]
    known = [(name, WORDS["readable"].get(value, value) if name == "readable" else value) for name, value in known]
    return Pairs(
        (
            *((name, value) for name, value in known if value not in (None, ())),
            ("live_files", "unknown" if live is None else live),
        )
    )
