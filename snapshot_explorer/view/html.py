"""Drawings as HTML: one scoped class, every value escaped, the page's own colors in light and dark.

No external resources or random ids: equal drawings have equal HTML. The only script is constant: it adds buttons that
copy paths, commands and code. Where no script runs, as in a notebook that is not trusted, there are no such buttons.
"""

import re
from collections.abc import Iterator
from html import escape

from snapshot_explorer.arrow.value_text import NULL, Cell, format_cell, truncate, unit_of
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view.drawing import DRAWN_ROWS, Code, Drawing, Grid, Item, LaneDiagram, Line, Pairs, codes_of
from snapshot_explorer.view.grid import ShownColumn, columns_note, rows_note, shown_columns
from snapshot_explorer.view.palette import KIND_COLORS, STATE_COLORS, page_color

_WIDEST_NAME = 300
"""The maximum width of text in a column whose text is meant to be copied."""
_WIDEST_CELL = 80
_WIDEST_VALUE = 1_000
_MOST_LETTERS = 165
"""The letters of a row, with three between cells, from which a report does not draw it in columns."""
_LONGEST_CELL = 400
"""The maximum length of text in a cell, which fades after `_WIDEST_CELL` until it has the focus."""
_LONGEST_TOOLTIP = 500

# JupyterLab, Notebook 7 and nbconvert set --jp-*, VS Code --vscode-*; other pages declare dark or light.
_DARK = (
    "html[theme=dark] .sx,body[data-theme=dark] .sx,.vscode-dark .sx,.vscode-high-contrast .sx,"
    "[data-jp-theme-light=false] .sx"
)
DARK_PICTURE = "filter:invert(1) hue-rotate(180deg);mix-blend-mode:screen"
"""Shows a PNG picture on dark paper in its own hues."""
_STYLE = (
    "<style>"
    ".sx{--sx-ink:var(--jp-content-font-color1,var(--vscode-editor-foreground,#212121));"
    "--sx-faint:var(--jp-content-font-color2,var(--vscode-descriptionForeground,#616161));"
    "--sx-paper:var(--jp-layout-color0,var(--vscode-editor-background,#fff));"
    "--sx-stripe:var(--jp-rendermime-table-row-background,#f5f5f5);"
    "--sx-line:var(--jp-border-color1,#bdbdbd);"
    "color:var(--sx-ink);background:var(--sx-paper);font:13px/1.5 var(--jp-content-font-family,system-ui,sans-serif);"
    "padding:4px 8px;max-width:100%;box-sizing:border-box;white-space:normal}"
    f"{_DARK}{{--sx-ink:var(--jp-content-font-color1,var(--vscode-editor-foreground,#e0e0e0));"
    "--sx-faint:var(--jp-content-font-color2,var(--vscode-descriptionForeground,#b0b0b0));"
    "--sx-paper:var(--jp-layout-color0,var(--vscode-editor-background,#1e1e1e));"
    "--sx-stripe:var(--jp-rendermime-table-row-background,#2a2a2a);--sx-line:var(--jp-border-color1,#555)}"
    ".sx .sx-title{font-weight:600}.sx span,.sx code{unicode-bidi:isolate}"
    ".sx > div:not(.sx-box){overflow-wrap:anywhere}"
    ".sx .sx-said{color:var(--sx-faint)}"
    ".sx .sx-box{overflow-x:auto;margin:4px 0}"
    ".sx table.sx-table{border-collapse:collapse;border:0;margin:0;font-size:12px;color:inherit;"
    "background:none;table-layout:auto;width:auto}"
    ".sx .sx-table tr,.sx .sx-table tbody tr:nth-child(n){background:none}"
    ".sx .sx-table tbody tr:nth-child(even){background:var(--sx-stripe)}"
    ".sx .sx-table th,.sx .sx-table td{padding:2px 8px;border:0;text-align:left;vertical-align:top;"
    "white-space:pre;color:inherit;max-width:none}"
    ".sx .sx-table thead th{border-bottom:1px solid var(--sx-line);font-weight:600;white-space:normal;"
    "vertical-align:bottom}"
    ".sx .sx-table tbody th{font-weight:400;color:var(--sx-faint)}"
    ".sx .sx-table .sx-n{text-align:right;font-variant-numeric:tabular-nums}"
    ".sx .sx-table .sx-0{color:var(--sx-faint)}"
    ".sx .sx-pairs td{white-space:pre-wrap;overflow-wrap:anywhere}"
    ".sx .sx-table td.sx-prose{white-space:normal;min-width:20em;max-width:44em}"
    ".sx .sx-table td.sx-wraps{white-space:normal;overflow-wrap:break-word;max-width:14em}"
    ".sx .sx-fade{display:block;max-width:34em;overflow:hidden;white-space:pre;cursor:zoom-in;"
    "-webkit-mask:linear-gradient(to right,#000 85%,transparent);mask:linear-gradient(to right,#000 85%,transparent)}"
    ".sx .sx-fade:focus{white-space:pre-wrap;overflow-wrap:anywhere;cursor:auto;-webkit-mask:none;mask:none}"
    "</style>"
)
_STYLE_OF_COMMITS = (
    "<style>"
    ".sx .sx-kind::before{content:'';display:inline-block;width:.7em;height:.7em;margin-right:.5em;border-radius:2px;"
    "color:var(--sx-faint);background:var(--sx-kind,currentColor)}"
    ".sx .sx-table td.sx-plus{color:#00664b}.sx .sx-table td.sx-minus{color:#8f3e00}"
    f"{_DARK.replace('.sx', '.sx .sx-table td.sx-plus')}{{color:#4fd1a5}}"
    f"{_DARK.replace('.sx', '.sx .sx-table td.sx-minus')}{{color:#ff9d5c}}"
    ".sx .sx-plus[style],.sx .sx-minus[style]{background:linear-gradient(to left,"
    "color-mix(in srgb,currentColor 22%,transparent) var(--sx-part),transparent var(--sx-part))}"
    "</style>"
)
"""Kinds of commits have the colors of the timeline. Additions are green, removals are red, with bars."""
_STYLE_OF_PICTURES = (
    "<style>.sx .sx-picture{display:block;max-width:100%;height:auto}"
    f"{_DARK.replace('.sx', '.sx .sx-picture')}{{{DARK_PICTURE}}}</style>"
)
_STYLE_OF_MARKS = (
    "<style>"
    ".sx .sx-table td.sx-changed{font-weight:600;box-shadow:inset 0 0 0 99px rgba(0,98,155,.18);"
    "text-decoration:underline dotted}"
    "</style>"
)
_STYLE_OF_LANES = (
    "<style>"
    ".sx .sx-table.sx-lanes tbody tr:nth-child(n){background:none}"
    ".sx .sx-lanes .sx-lane th{font-weight:600;color:var(--sx-ink);border-bottom:1px solid var(--sx-line)}"
    ".sx .sx-lanes td{min-width:14em;border-left:1px solid var(--sx-line);white-space:normal;overflow-wrap:anywhere}"
    ".sx .sx-sign{display:inline-block;width:1.4em;margin-right:.5em;text-align:center;border-radius:3px;"
    "font-weight:700;color:#fff;background:#6b6b6b}"
    ".sx .sx-added{background:#007a59}.sx .sx-gone{background:#b34e00}.sx .sx-made{background:#00629b}"
    ".sx .sx-kept{color:inherit;background:none;box-shadow:inset 0 0 0 1px var(--sx-line)}"
    "</style>"
)


_STYLE_OF_COPIES = (
    "<style>"
    ".sx code{font:12px/1.5 var(--jp-code-font-family,monospace);color:inherit;"
    "background:none!important;padding:0!important;border:0;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".sx code.sx-copy.sx-cell{font:inherit;white-space:pre}"
    ".sx button.sx-button{font:11px/1.4 var(--jp-ui-font-family,system-ui,sans-serif);color:inherit;background:none;"
    "border:1px solid #767676;border-radius:3px;padding:0 5px;margin:0 6px;cursor:pointer}"
    ".sx button.sx-button:focus-visible{outline:2px solid #0072B2;outline-offset:1px}"
    ".sx code.sx-cell + button.sx-button{opacity:0}"
    ".sx td:hover > button.sx-button,.sx td > button.sx-button:focus{opacity:1!important}"
    "</style>"
)
COPY_SCRIPT = (
    "<script>"
    + re.sub(
        r"\n\s*",
        "",
        """
    for (const code of document.querySelectorAll(".sx-copy:not(.sx-can)")) {
      code.classList.add("sx-can");
      const text = code.title || code.textContent, button = document.createElement("button");
      const say = (word) => {
        button.textContent = word;
        button.setAttribute("aria-label", word + " " + text.slice(0, 80));
      };
      button.type = "button";
      button.className = "sx-button";
      say("Copy");
      button.onclick = async () => {
        let word = "Copied";
        try {
          await navigator.clipboard.writeText(text);
        } catch {
          code.textContent = text;
          getSelection().selectAllChildren(code);
          if (!document.execCommand("copy")) word = "Selected";
        }
        say(word);
        setTimeout(say, 1500, "Copy");
      };
      code.after(button);
    }
    """,
    )
    + "</script>"
)
"""Adds a button after each text that can be copied. On a page without a clipboard the button selects the text."""


def render_html(
    drawing: Drawing, *, limit: int = DRAWN_ROWS, can_copy: bool = False, picture: str = "", names_cells: bool = False
) -> str:
    """Return the drawing as HTML for a notebook's output.

    Args:
        limit: Rows to draw of a grid that has no limit of its own.
        can_copy: Whether to add `COPY_SCRIPT` where there is something to copy.
        picture: A picture as HTML, which is shown below the title; its texts are escaped.
        names_cells: Whether cells have the name of their column, for pages that draw rows without their table.
    """
    drawn = "".join(_fragments(drawing, limit, can_copy=can_copy, picture=picture, names_cells=names_cells))
    if _COPYABLE not in drawn:
        return drawn
    return drawn.removesuffix("</div>") + f"{_STYLE_OF_COPIES}{COPY_SCRIPT}</div>"


def _fragments(drawing: Drawing, limit: int, *, can_copy: bool, picture: str, names_cells: bool) -> Iterator[str]:
    title = _isolate(truncate(drawing.title, _WIDEST_VALUE))
    style = _STYLE
    style += _STYLE_OF_PICTURES if picture else ""
    style += _STYLE_OF_LANES if any(isinstance(part, LaneDiagram) for part in drawing.parts) else ""
    grids = [part for part in drawing.parts if isinstance(part, Grid)]
    style += _STYLE_OF_COMMITS if any(_is_of_commits(part) for part in grids) else ""
    style += _STYLE_OF_MARKS if any(isinstance(part, Grid) and part.marked for part in drawing.parts) else ""
    yield f'<div class="sx">{style}<div class="sx-title" role="heading" aria-level="3">{title}</div>{picture}'
    for part in drawing.parts:
        match part:
            case Line():
                css = ' class="sx-said"' if part.is_faint else ""
                yield f"<div{css}>{_isolate(truncate(part.text, _WIDEST_VALUE))}</div>"
            case Code():
                yield f"<div>{_code(part, can_copy=can_copy)}</div>"
            case Pairs():
                yield from _box(_pairs(part, can_copy=can_copy), "sx-table sx-pairs", title)
            case Grid():
                yield from _grid(part, title, limit, can_copy=can_copy, names_cells=names_cells)
            case LaneDiagram():
                yield from _box(_lanes(part), "sx-table sx-lanes", title)
    yield "</div>"


def _box(rows: Iterator[str], css: str, title: str) -> Iterator[str]:
    """Yield a table in a box that scrolls separately, also by keyboard. No landmark: a page has many."""
    yield f'<div class="sx-box" role="group" tabindex="0" aria-label="{title}">'
    yield f'<table class="{css}" aria-label="{title}">'
    yield from rows
    yield "</table></div>"


def _pairs(pairs: Pairs, *, can_copy: bool) -> Iterator[str]:
    yield "<tbody>"
    for name, value in pairs.rows:
        if codes := codes_of(value):
            # Without the style of text that can be copied, two commands in a line would look like one.
            shown_codes = (" " if can_copy else "<br>").join(_code(code, can_copy=can_copy) for code in codes)
            yield f'<tr><th scope="row" align="left">{_escape(name)}</th><td>{shown_codes}</td></tr>'
            continue
        shown = format_cell(value, unit_of(name))
        tooltip = _tooltip(shown.exact)
        css = ' class="sx-0"' if shown.text == NULL else ""
        shown_text = escape(truncate(shown.text, _WIDEST_VALUE))
        yield f'<tr><th scope="row" align="left">{_escape(name)}</th><td{css}{tooltip}>{shown_text}</td></tr>'
    yield "</tbody>"


def _grid(grid: Grid, title: str, limit: int, *, can_copy: bool, names_cells: bool) -> Iterator[str]:
    columns = shown_columns(grid, limit)
    if columns:
        rows = _rows(columns, grid, can_copy=can_copy, names_cells=names_cells)
        widths = (max(min(len(cell.text), _WIDEST_CELL) for cell in column.cells) for column in columns if column.cells)
        yield from _box(
            rows, "sx-table sx-many" if sum(widths, 3 * len(columns)) > _MOST_LETTERS else "sx-table", title
        )
    shown_text = [part for part in (rows_note(grid, limit), columns_note(grid, len(columns))) if part]
    if shown_text:
        yield f'<div class="sx-said">{_isolate("; ".join(shown_text))}</div>'


_SIGNS = {"=": "sx-kept", "+": "sx-added", "-": "sx-gone", "~": "sx-made"}
"""CSS classes for the sign of an item's change: colors of the palette by Okabe and Ito, darkened for white text."""


def _lanes(lanes: LaneDiagram) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{_escape(truncate(head, _WIDEST_CELL))}</th>' for head in lanes.heads)
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for lane in lanes.lanes:
        shown_text = f", {len(lane.rows):,} of {lane.total:,} {lanes.noun}" if len(lane.rows) < lane.total else ""
        yield f'<tr class="sx-lane"><th scope="rowgroup" colspan="2">{_isolate(lane.name + shown_text)}</th></tr>'
        for left, right in lane.rows:
            yield f"<tr>{_item(left)}{_item(right)}</tr>"
    yield "</tbody>"


def _item(item: Item | None) -> str:
    if item is None:
        return "<td></td>"
    sign = f'<span class="sx-sign {_SIGNS.get(item.sign, "")}">{_escape(item.sign)}</span>'
    name = truncate(sanitize(item.name), _WIDEST_CELL, middle=True)
    tooltip = _tooltip(item.name if name != item.name else None)
    description = _isolate(truncate(item.description, _WIDEST_CELL))
    return f'<td{tooltip}>{sign}{_isolate(name)} <span class="sx-0">{description}</span></td>'


def _rows(columns: tuple[ShownColumn, ...], grid: Grid, *, can_copy: bool, names_cells: bool) -> Iterator[str]:
    yield "<thead><tr>"
    for column in columns:
        css = f' class="sx-n"{_ALIGNED}' if column.is_number else ' align="left"'
        # Where space is short, headings break between their words, never inside a name.
        name = _escape(truncate(column.heading, _WIDEST_CELL))
        name = name.replace(" ", "&nbsp;") if column.name in _SIDES else name
        meaning = column.meaning if column.heading == column.name else f"{column.name}: {column.meaning}"
        yield f'<th scope="col"{css}{_tooltip(meaning)}>{name}</th>'
    yield "</tr></thead><tbody>"
    parts = [_parts(column) for column in columns]
    for position in range(len(columns[0].cells) if columns else 0):
        yield "<tr>"
        for index, column in enumerate(columns):
            part = parts[index][position] if parts[index] else None
            shown = column.cells[position]
            copies = can_copy and column.is_path and shown.text != NULL and len(shown.text) <= _LONGEST_TOOLTIP
            cell = _cell(shown, column, is_marked=(position, index) in grid.marked, part=part, copies=copies)
            cell = f">{grid.pictures[column.name][position]}</td>" if column.name in grid.pictures else cell
            name = f' data-name="{_escape(truncate(column.heading, _WIDEST_CELL))}"' if names_cells else ""
            yield f"<td{name}{cell}"
        yield "</tr>"
    yield "</tbody>"


def _is_of_commits(grid: Grid) -> bool:
    return any(name in ("kind", "state") or name in _SIDES for name in grid.rows.column_names)


_SIDES = {
    f"{side}_{counted}": css
    for side, css in (("added", "sx-plus"), ("removed", "sx-minus"))
    for counted in ("files", "rows", "bytes")
}
"""CSS classes of columns that count additions or removals."""


def _parts(column: ShownColumn) -> list[int]:
    """Return the length of the bar of each cell, in percent of the longest; empty for a column without bars."""
    is_constant = len({*column.values}) < 2  # noqa: PLR2004 - equal bars compare nothing
    if not column.is_number or column.name not in _SIDES or is_constant:
        return []
    most = max((value for value in column.values if value is not None), default=0)
    return [round(100 * (value or 0) / most) if most > 0 else 0 for value in column.values]


def _cell(shown: Cell, column: ShownColumn, *, is_marked: bool, part: int | None, copies: bool) -> str:
    is_cut_in_the_middle = column.is_path or column.is_whole
    widest = _WIDEST_NAME if column.is_whole else _WIDEST_CELL if is_cut_in_the_middle else _LONGEST_CELL
    shown_text = shown.text if shown.whole else truncate(shown.text, widest, middle=is_cut_in_the_middle)
    fades = not (shown.whole or is_cut_in_the_middle or column.wraps) and len(shown.text) > _WIDEST_CELL
    full = shown.exact or (shown.text if shown_text != shown.text or fades else None)
    names = ["sx-n"] * column.is_number + ["sx-0"] * (shown.text == NULL) + ["sx-changed"] * is_marked
    names += ["sx-prose" if column.is_prose else "sx-wraps"] * (column.wraps or column.name == "operation")
    style = ""
    if part:
        names.append(_SIDES[column.name])
        style = f' style="--sx-part:{part}%"'
    colors = {"kind": KIND_COLORS, "state": STATE_COLORS}.get(column.name, {})
    if (column.name == "kind" and shown.text != NULL) or shown.text in colors:
        names.append("sx-kind")
        style = f' style="--sx-kind:{page_color(colors[shown.text])}"' if shown.text in colors else ""
    css = (f' class="{" ".join(names)}"' if names else "") + style + _ALIGNED * column.is_number
    if copies:
        return f'{css}>{_COPYABLE} sx-cell"{_tooltip(full)}>{escape(shown_text)}</code></td>'
    if fades:
        return f'{css}><span class="sx-fade" tabindex="0"{_tooltip(full)}>{escape(shown_text)}</span></td>'
    return f"{css}{_tooltip(full)}>{escape(shown_text)}</td>"


_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RIGHT_TO_LEFT = re.compile(f"[{_RTL}]+(?:[^\\w<>&;]*[{_RTL}]+)*")
"""Letters that are written from right to left, and the characters between them."""
_ALIGNED = ' align="right"'
"""Of numbers, for pages that drop styles."""
_COPYABLE = '<code class="sx-copy'
"""The start of the elements that `COPY_SCRIPT` adds a button to."""


def _code(code: Code, *, can_copy: bool) -> str:
    """Return code as HTML, which can be copied unless it is cut."""
    lines = "\n".join(map(sanitize, code.text.split("\n")))
    shown = escape(lines if code.is_whole else truncate(lines, _WIDEST_VALUE))
    is_complete = code.is_whole or len(lines) <= _WIDEST_VALUE
    return f'{_COPYABLE}">{shown}</code>' if can_copy and is_complete else f"<code>{shown}</code>"


def _tooltip(content: str | None) -> str:
    return f' title="{_escape(truncate(content, _LONGEST_TOOLTIP))}"' if content else ""


def _escape(content: str) -> str:
    return escape(sanitize(content))


def _isolate(content: str) -> str:
    """Return text for an element, in which a name that is written from right to left moves nothing beside it."""
    return _RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", _escape(content))
