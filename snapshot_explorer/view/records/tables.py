"""What is drawn of a table and of a snapshot."""

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.text import list_names
from snapshot_explorer.table import Snapshot, Table, card_of, parts_of
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Line, Pairs, Part

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
            *([("columns", list_names(card.columns, _COLUMNS))] if card.columns else []),
        )
    )
    location = [] if card.location_note is None else [Line(card.location_note, is_faint=True)]
    return Drawing(title=card.name, parts=(known, *map(Line, card.notes), *location))


@draw.register
def _snapshot(snapshot: Snapshot) -> Drawing:
    """What its commit did, in a sentence and in facts, the live files, the schema, and what the writer stored."""
    if snapshot.version is None:
        nothing = Line("Nothing has been committed. The schema is:")
        return Drawing(
            title=f"{parts_of(snapshot).name} has no version yet", parts=(nothing, *drawing_of(snapshot.schema).parts)
        )
    try:
        answer, facts, *stored = drawing_of(snapshot.commit).parts
        live = parts_of(snapshot).loaded.live_files()
        files = Pairs((("live_files", "unknown" if live is None else live),))
        parts: tuple[Part, ...] = (answer, facts, files, *drawing_of(snapshot.schema).parts, *stored)
    except SnapshotExplorerError as error:
        parts = (Line(error.message),)
    return Drawing(title=f"{parts_of(snapshot).name} at {snapshot.label}", parts=parts)
