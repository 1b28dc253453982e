"""Drawings as aligned text, by default at most 120 columns wide, and plain unless a terminal paints it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Literal

from snapshot_explorer.arrow.value_text import MINUS, NULL, format_cell, leading, pad, text_width, truncate, unit_of
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view.drawing import DRAWN_ROWS, Code, Drawing, Grid, Item, LaneDiagram, Line, Pairs, codes_of
from snapshot_explorer.view.grid import ShownColumn, columns_note, rows_note, shown_columns

WIDTH = 120
"""The widest line, in columns of a terminal."""
_GAP = 2
_NARROWEST_CELL = 12
_NARROWEST_PROSE = 24
"""The width below which sentences are below the table, after the first cell of their row."""
_MOST_COLUMNS = WIDTH // (1 + _GAP) + 1
"""The maximum number of columns that can fit side by side, plus one."""
_NAMED_COLUMNS = 20
"""The maximum number of names of columns that are not drawn."""
_LONGEST_TEXT = 1_000
_LONGEST_WORD = 24
_WORDS = re.compile(rf"(?:[+{MINUS}] )?[^_ ]+[_ ]*|[_ ]+")
"""The words of a heading; a sign stays with its noun."""

Role = Literal["title", "heading", "name", "code", "faint"]
"""The roles of text that a terminal may paint; `code` is a path or a call that fits its line."""
Paint = Callable[[str, Role], str]


def leave_plain(text: str, _role: Role) -> str:
    """Return text without marks."""
    return text


def render_text(drawing: Drawing, *, limit: int = DRAWN_ROWS, room: int = WIDTH, paint: Paint = leave_plain) -> str:
    """Return the drawing as aligned text.

    Text that does not fit a column is truncated with an ellipsis; numbers and times never are. If the columns still do
    not fit, the last ones are left out, with a note.

    Args:
        limit: Rows to draw of a grid that has no limit of its own.
        room: The maximum width of a line, in columns of a terminal. Only a wider number or time exceeds it.
        paint: Returns text of a role with the marks of a terminal, which take no space; by default none.
    """
    lines = [paint(line, "title") for line in _wrap(sanitize(drawing.title), room)]
    for above, part in zip((None, *drawing.parts), drawing.parts, strict=False):
        if isinstance(above, Pairs | Grid | LaneDiagram) and isinstance(part, Pairs | Grid | LaneDiagram):
            lines.append("")
        match part:
            case Line():
                wrapped = _wrap(sanitize(part.text), room)
                lines.extend(paint(line, "faint") if part.is_faint else line for line in wrapped)
            case Code():
                lines.extend(line for item in part.text.split("\n") for line in _code(sanitize(item), room, paint))
            case Pairs():
                lines.extend(_pairs(part, room, paint))
            case Grid():
                lines.extend(_grid(part, limit, room, paint))
            case LaneDiagram():
                lines.extend(_lanes(part, room, paint))
    return "\n".join(line.rstrip() for line in lines)


def _wrap(content: str, room: int) -> Iterator[str]:
    """Yield text in lines of at most `room` columns, broken at blanks where there are any."""
    content = truncate(content, _LONGEST_TEXT)
    while text_width(content) > room:
        head = leading(content, room)
        blank = head.rfind(" ")
        is_word = blank > 0 and text_width(content[blank + 1 :].partition(" ")[0]) <= min(room, _LONGEST_WORD)
        # A break before a path or a type that leaves most of the line empty would separate it from its context.
        at = blank if blank > len(head) // 2 or is_word else len(head)
        yield content[:at].rstrip()
        content = content[at:].lstrip()
    yield content


def _code(content: str, room: int, paint: Paint) -> Iterator[str]:
    """Yield a path or a call in lines; a part of one is not painted, since it leads nowhere."""
    first, *more = _wrap(content, room)
    yield first if more else paint(first, "code")
    yield from more


def _pairs(pairs: Pairs, room: int, paint: Paint) -> Iterator[str]:
    names = [truncate(sanitize(name), room // 3) for name, _ in pairs.rows]
    edge = max(map(text_width, names), default=0)
    for name, (unit_name, value) in zip(names, pairs.rows, strict=True):
        codes = [sanitize(code.text) for code in codes_of(value)]
        shown = ", ".join(codes) if codes else format_cell(value, unit_of(unit_name)).text
        # Code that is broken cannot be copied: if it does not fit in one line, each has its own.
        texts = codes if codes and text_width(shown) > room - edge - _GAP else [shown]
        width = room - edge - _GAP
        if codes:
            first, *more = (line for text in texts for line in _code(text, width, paint))
        else:
            first, *more = _wrap(shown, width)
        yield paint(pad(name, edge, right=False), "name") + " " * _GAP + first
        yield from (" " * (edge + _GAP) + line for line in more)


def _lanes(lanes: LaneDiagram, room: int, paint: Paint) -> Iterator[str]:
    """Yield two columns, with a line of dashes and its name above each lane."""
    half = (room - _GAP) // 2
    yield paint(_side_by_side(*lanes.heads, half).rstrip(), "heading")
    for lane in lanes.lanes:
        cut_off = f", {len(lane.rows):,} of {lane.total:,} {lanes.noun}" if len(lane.rows) < lane.total else ""
        yield paint(f"-- {sanitize(lane.name)}{cut_off} ".ljust(room, "-"), "faint")
        for left, right in lane.rows:
            yield _side_by_side(_item_text(left, half), _item_text(right, half), half)


def _side_by_side(left: str, right: str, room: int) -> str:
    return pad(truncate(sanitize(left), room), room, right=False) + " " * _GAP + truncate(sanitize(right), room)


def _item_text(item: Item | None, room: int) -> str:
    if item is None:
        return ""
    description = sanitize(item.description)
    name = truncate(sanitize(item.name), max(_NARROWEST_CELL, room - text_width(description) - 2 * _GAP), middle=True)
    return f"{item.sign} {name}  {description}"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column with its name in one line or, if space is short, in several."""

    shown: ShownColumn
    name: tuple[str, ...]

    @property
    def natural_width(self) -> int:
        """The preferred width: the width of the widest cell."""
        texts = [*self.name, *(shown.text for shown in self.shown.cells)]
        return max(min(max(map(text_width, texts)), WIDTH), self._uncut_width)

    @property
    def minimum_width(self) -> int:
        """The minimum width."""
        narrowest = _NARROWEST_PROSE if self.shown.is_prose else _NARROWEST_CELL
        return min(self.natural_width, max(narrowest, self._uncut_width))

    @property
    def _uncut_width(self) -> int:
        """The width of its numbers, times and text to be copied, which are never truncated."""
        uncut = (text_width(shown.text) for shown in self.shown.cells if shown.whole or self.is_copied)
        return max(uncut, default=0)

    @property
    def is_copied(self) -> bool:
        """Whether its text is meant to be copied, like paths."""
        return self.shown.is_whole or self.shown.is_path

    def padded(self, content: str, room: int) -> str:
        """Return a cell or a line of the name, cut or filled to the room."""
        return pad(truncate(content, room), room, right=self.shown.is_number)


def _grid(grid: Grid, limit: int, room: int, paint: Paint) -> Iterator[str]:
    shown = shown_columns(grid, limit, most=_MOST_COLUMNS)
    columns = [_Column(column, (sanitize(column.heading),)) for column in shown]
    if sum(column.natural_width + _GAP for column in columns) - _GAP > room:
        columns = [_Column(column, _break_heading(column)) for column in shown]
    prose = [column for column in columns[1:] if column.shown.is_prose] if _minimum_width(columns) > room else []
    columns = [column for column in columns if column not in prose]
    if any(column.shown.is_path for column in columns):
        room = max(room, _minimum_width(columns))
    fitting = _fitting_columns(columns, room)
    if fitting:
        yield from _align(fitting, room, paint)
    for name, *sentences in zip(*(column.shown.cells for column in (*fitting[:1], *prose)), strict=True):
        if any(said := [sanitize(cell.text) for cell in sentences if cell.text != NULL]):
            yield from _wrap("  ".join([sanitize(name.text), *said]), room)
    notes = [rows_note(grid, limit), _columns_note(grid, [column.shown.name for column in (*fitting, *prose)])]
    if any(notes):
        yield from (paint(line, "faint") for line in _wrap("; ".join(part for part in notes if part), room))


def _break_heading(column: ShownColumn) -> tuple[str, ...]:
    """Return a heading such as `total rows` in lines of its words, none wider than the cells need."""
    words = _WORDS.findall(sanitize(column.heading))
    room = max(
        text_width(content) for content in [*map(str.rstrip, words), *(shown.text for shown in column.cells), ""]
    )
    lines = [""]
    for word in words:
        if text_width((lines[-1] + word).rstrip()) > room:
            lines.append("")
        lines[-1] += word
    return tuple(map(str.rstrip, lines))


def _align(columns: Sequence[_Column], room: int, paint: Paint) -> Iterator[str]:
    rooms = _rooms(columns, room)
    names = _rows([column.name for column in columns], columns, rooms)
    yield from (paint(line.rstrip(), "heading") for line in names)
    yield paint((" " * _GAP).join("-" * room for room in rooms), "faint")
    cells = [column.shown.cells for column in columns]
    prose = [column.shown.wraps for column in columns]
    for row in zip(*cells, strict=True):
        texts = [
            [*_wrap(shown.text, room)] if wraps else [shown.text]
            for shown, wraps, room in zip(row, prose, rooms, strict=True)
        ]
        yield from _rows(texts, columns, rooms)


def _rows(texts: Sequence[Sequence[str]], columns: Sequence[_Column], rooms: Sequence[int]) -> Iterator[str]:
    """Yield lines of cells side by side, from the texts of each column."""
    for line in zip_longest(*texts, fillvalue=""):
        cells = [column.padded(content, room) for column, content, room in zip(columns, line, rooms, strict=True)]
        yield (" " * _GAP).join(cells)


def _minimum_width(columns: Sequence[_Column]) -> int:
    return sum(column.minimum_width for column in columns) + _GAP * (len(columns) - 1)


def _fitting_columns(columns: Sequence[_Column], room: int) -> Sequence[_Column]:
    """Return the columns that fit side by side at their minimum widths, at least one: the last ones go first.

    Those whose text is meant to be copied stay, if others are left to go.
    """
    chosen = list(columns)
    while len(chosen) > 1 and _minimum_width(chosen) > room:
        others = [column for column in chosen[1:] if not column.is_copied]
        chosen.remove((others or chosen)[-1])
    return chosen


def _rooms(columns: Sequence[_Column], room: int) -> list[int]:
    """Return a width for each column. While they do not fit, the widest shrinkable one shrinks, wrapped text least."""
    rooms = [column.natural_width for column in columns]
    minimum_width = [column.minimum_width for column in columns]
    over = min(sum(rooms) + _GAP * (len(rooms) - 1) - room, sum(rooms) - sum(minimum_width))
    while over > 0:
        _, position = max(
            (item / (3 if columns[position].shown.wraps else 1), position)
            for position, item in enumerate(rooms)
            if item > minimum_width[position]
        )
        rooms[position] -= 1
        over -= 1
    return rooms


def _columns_note(grid: Grid, shown: Sequence[str]) -> str | None:
    notes = columns_note(grid, len(shown))
    if notes is None:
        return None
    others = (field.name for field in grid.rows.schema if field.name not in shown)
    names = [sanitize(name) for name in islice(others, _NAMED_COLUMNS)]
    more = grid.rows.num_columns - len(shown) - len(names)
    return f"{notes}; not shown: {', '.join(names)}" + (f" and {more:,} more" if more else "")
