"""`report`: results in one HTML file to hand over: no script, no request to anywhere, for screens and for paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from os import PathLike
from pathlib import Path

from snapshot_explorer.analysis.diff.diff_plan import RowDiffPlan
from snapshot_explorer.analysis.diff.diff_result import RowDiff
from snapshot_explorer.analysis.repair import count_deleted_among
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.frames import COMMITS
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.refs import Ref, parse_range, parse_ref
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import format_utc, pluralize, short_user
from snapshot_explorer.history import history_of
from snapshot_explorer.results import Frame
from snapshot_explorer.results.outputs import new_output_path, output_file
from snapshot_explorer.table import Table, read_overview
from snapshot_explorer.view.dispatch import drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Line, Pairs, shortened
from snapshot_explorer.view.html import DARK_PICTURE, render_html
from snapshot_explorer.view.timeline.commit_bars import BARS, commit_bars

_MAX_BYTES = 450_000
"""The size up to which a file has all rows that it may have."""
_FEWEST_BARS = 3
_REPORTED_ROWS = 1_000_000
"""The rows up to which the report on a table reads those that differ."""
_MOST_DELETED = 10_000
"""The deleted rows that are looked for in the newest version."""
_TO_MINUTES = len("2026-11-28 06:02")
_ROWS = 200
"""The maximum number of rows of a table."""
_DARK = (
    "--jp-content-font-color1:#e0e0e0;--jp-content-font-color2:#b0b0b0;--jp-layout-color0:#1e1e1e;"
    "--jp-rendermime-table-row-background:#2a2a2a;--jp-border-color1:#555"
)
_AS_TEXT = (
    ".sx .sx-table:has([data-name]) thead{display:none}"
    ".sx .sx-table tr:has([data-name]){display:block;padding:3px 0}"
    ".sx .sx-table td[data-name]{display:inline-block;padding:0 12px 0 0;text-align:left;white-space:normal;"
    "overflow-wrap:anywhere;min-width:0;max-width:100%}"
    ".sx .sx-table td[data-name]:not(.sx-kind)::before{content:attr(data-name) ' ';font-weight:400;"
    "color:var(--sx-faint)}"
    ".sx .sx-table td[data-name]:is(.sx-plus,.sx-minus){background:none}"
)
_STYLE = (
    ":root{color-scheme:light dark;--page:#fff;--ink:#212121}"
    "body{margin:0 auto;padding:24px;max-width:1200px;background:var(--page);color:var(--ink);"
    "font:14px/1.5 system-ui,sans-serif}h1{font-size:22px;margin:0;overflow-wrap:anywhere}"
    "section{margin:24px 0;padding-top:8px;border-top:1px solid #8c8c8c}"
    ".sx > :is(svg,.sx-picture){display:block;margin:8px 0}"
    ".sx .sx-fade{-webkit-mask:none;mask:none;white-space:normal}.sx code{white-space:pre-wrap}"
    "@media screen and (prefers-color-scheme:dark){:root{--page:#1e1e1e;--ink:#e0e0e0;" + _DARK + "}"
    ".sx .sx-table td.sx-plus{color:#4fd1a5!important}.sx .sx-table td.sx-minus{color:#ff9d5c!important}.sx-picture{"
    + DARK_PICTURE
    + "}}"
    "@media print{:root{color-scheme:light}@page{size:A4 portrait;margin:12mm}body{padding:0;max-width:none}"
    "section{break-inside:auto}tr,img{break-inside:avoid}.sx .sx-box{overflow:visible!important}"
    ".sx .sx-table th,.sx .sx-table td{white-space:normal!important;overflow-wrap:break-word;font-size:9px}"
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}"
    # A row without space for all of its columns is text, each value behind its name.
     + _AS_TEXT.replace(".sx-table", ".sx-table.sx-many") + f"@media (max-width:700px){{{_AS_TEXT}}}"
)
_NOT_READ = 'Rows, where a part neither shows nor counts them; and what a part calls "not checked" or "not read".'
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Browsers load nothing that the file might name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report."""

    drawing: Drawing
    code: str | None = None
    """The Python that returns the same."""
    picture: str = ""
    """A picture of commits, as HTML, below its heading."""
    answer: str | None = None
    """What happened, in a sentence: the heading of a report that begins with this section."""
    not_read: str | None = None
    """A sentence on content that was not read."""


def report(
    path: str | PathLike[str],
    *results: object,
    between: str | None = None,
    where: str | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write results into one HTML file, and return its path. It needs no network, prints well, and stays below 500 kB.

    `report("night.html", orders, orders.compare(7, 8), orders.diff_rows(7, 8), orders.blame("order_id = 42"))`

    The file contains the drawing of each result, pictures of commits, the code that returns the same, and notes on
    content that was not read. It contains no storage options. It has the rows that the results draw: at most 200 of
    each table. With `between`, its heading is what happened between the versions: who changed how many rows when, and,
    if up to 10,000 rows were deleted, whether the newest version has them again, for which it reads the rows that
    differ between A and the newest version. Then come rows, then commits and files.

    Args:
        path: The file, on the local disk, outside of any table.
        results: A table, a lake, or anything that draws itself: comparisons, row diffs, blames, bisections, checks.
        between: Two refs `A..B`: of each table, also the comparison of these versions and the rows that differ.
        where: A condition in DuckDB's SQL: the rows of each table that differ match it, and their history is included.
        title: The heading; by default the heading of the first result.
        overwrite: Whether to replace an existing file.

    Raises:
        InvalidArgumentError: The file exists, is in a table, or a result does not draw itself.
        OSError: The file cannot be written.
    """
    target = new_output_path(path, overwrite=overwrite)
    if not results:
        raise InvalidArgumentError("A report needs results: tables, comparisons, or others that draw themselves.")
    return _write(target, [part for result in results for part in _sections(result, between, where)], title=title)


def _table_sections(table: Table, between: str | None, where: str | None) -> Sequence[Section]:
    read_overview(table)
    versions = history_of(table).listing.versions
    a, b = (None, None) if between is None else parse_range(between)
    number_a, number_b = (None if ref is None else table.at(ref).version for ref in (a, b))
    last = next((at for at, version in enumerate(versions) if version == number_b), len(versions) - 1)
    around = versions[max(0, last - BARS + BARS // 4) : last + BARS // 4][::-1]
    commits = history_of(table).commits_frame(around) if around else Frame(COMMITS.empty_table(), title="")
    card, code = drawing_of(table), history_of(table).open_expression
    card_parts = tuple(
        replace(part, rows=tuple(row for row in part.rows if row[0] != "next")) if isinstance(part, Pairs) else part
        for part in card.parts
    )
    picture = commit_bars(commits.to_arrow(), "rows", number_a, number_b)
    about = Section(drawing=replace(card, parts=card_parts), code=code)
    history = Section(drawing=drawing_of(commits), code=f"{code}.history()")
    blamed = [] if where is None else [_read_section("Blame", lambda: _blame_section(table, where, between))]
    if a is None or b is None:
        not_read = f"Rows of {table.name}; whether its data files exist."
        return [replace(about, picture=picture, not_read=not_read), history, *blamed]
    differing = _read_section("Rows that differ", lambda: _rows_section(table, a, b, where))
    answer = differing.answer or f"{card.title}: version {number_a} to {number_b}"
    compared = Section(drawing=drawing_of(table.compare(a, b)), code=f"{code}.compare({str(a)!r}, {str(b)!r})")
    not_read = "Whether data files exist was not checked, unless a part says so."
    return [
        replace(differing, picture=picture, answer=answer),
        *blamed,
        history,
        compared,
        replace(about, not_read=not_read),
    ]


def _rows_section(table: Table, a: Ref, b: Ref, where: str | None) -> Section:
    diff = _read_diff(table, a, b, where)
    if not isinstance(diff, RowDiff):
        reason = f"The rows that differ: more than {_REPORTED_ROWS:,} would be read, or an unknown number."
        return Section(drawing=drawing_of(diff), code=diff.call, not_read=reason)
    return Section(drawing=drawing_of(diff), code=diff.call, answer=_answer(table, diff, a, b))


def _read_diff(table: Table, a: Ref, b: Ref, where: str | None, key: Sequence[str] = ()) -> RowDiff | RowDiffPlan:
    """Return the rows that differ, or the plan if that would read too many."""
    plan = table.diff_rows(a, b, where=where, key=key or None, preview=True)
    rows = [side.rows for side in (plan.a, plan.b)]
    if None in rows or sum(filter(None, rows)) > _REPORTED_ROWS:
        return plan
    return table.diff_rows(a, b, where=where, key=key or None)


def _answer(table: Table, diff: RowDiff, a: Ref, b: Ref) -> str | None:
    """Return what happened from A to B in a sentence: of a single commit, who did it and when; None for no change."""
    versions = history_of(table).listing.versions
    numbers = [table.at(ref).version for ref in (a, b)]
    first, last = (versions.index(number) if number in versions else -1 for number in numbers)
    if diff.is_empty or not 0 <= first < last:
        return None
    counts: Mapping[str, int | None] = diff.counts
    commit = table.at(b).commit
    recorded = {name: getattr(commit, f"rows_{name}") for name in ("deleted", "inserted", "updated")}
    is_single = last == first + 1
    if is_single and diff.plan.where is None and None not in recorded.values() and any(recorded.values()):
        counts = recorded
    verbs = [f"{verb} {pluralize(count, 'row')}" for verb, count in counts.items() if count]
    done = " and ".join([", ".join(verbs[:-1]), verbs[-1]] if verbs[1:] else verbs)
    which = "" if diff.plan.where is None else f" where {diff.plan.where}"
    author = short_user(commit.user) if commit.user else commit.operation or commit.kind
    who = author if is_single else pluralize(last - first, "commit")
    time = "" if commit.committed_at is None else f", {format_utc(commit.committed_at)[:_TO_MINUTES]} UTC"
    at = f"at version {numbers[1]}" if is_single else f"from version {numbers[0]} to {numbers[1]}"
    fate = _fate(table, diff, a, b) if counts["deleted"] == diff.counts["deleted"] > 0 else ""
    return f"{who} {done}{which} {at}{time}{fate}"


def _fate(table: Table, diff: RowDiff, a: Ref, b: Ref) -> str:
    """Return whether the newest version has deleted rows again; empty if that would read too much."""
    deleted = diff.counts["deleted"]
    if table.at(b).version == table.current.version:
        return "; not repaired"
    overall = _read_diff(table, a, parse_ref("latest"), diff.plan.where, diff.plan.key)
    if not isinstance(overall, RowDiff) or overall.plan.columns != diff.plan.columns:
        return ""
    if max(deleted, len(overall.before)) > _MOST_DELETED:
        return ""
    lost, other = (count_deleted_among(diff, rows) for rows in (overall.deleted, overall.before))
    if lost == deleted or not other:
        return "; not repaired" if lost else "; repaired since"
    return f"; {deleted - lost:,} are back" + (f", {other - lost:,} with other values" if other > lost else "")


def _blame_section(table: Table, where: str, between: str | None) -> Section:
    result = table.blame(where, between=between)
    return Section(drawing=drawing_of(result), code=result.call)


def _write(target: Path, sections: Sequence[Section], *, title: str | None) -> Path:
    """Write sections into an HTML file; see `report`."""
    limit = _ROWS
    page = _page(sections, title, limit)
    while len(page.encode()) > _MAX_BYTES and limit > 1:
        limit //= 2
        page = _page(sections, title, limit)
    with output_file(target) as file:
        file.write(page.encode())
    return target


def _read_section(title: str, read: Callable[[], Section]) -> Section:
    """Return the section from `read`, or a section with the reason why it was not read: the rest is still useful.

    Raises:
        InvalidArgumentError: An argument of the report is not valid, such as its condition.
    """
    try:
        return read()
    except InvalidArgumentError:
        raise
    except SnapshotExplorerError as error:
        return Section(
            drawing=Drawing(title=title, parts=(Line(Message("Not read: ", error)),)),
            not_read=Message(f"{title}: ", error),
        )


def _sections(result: object, between: str | None, where: str | None) -> Sequence[Section]:
    if isinstance(result, Table):
        return _table_sections(result, between, where)
    if not isinstance(result, Shown):
        raise InvalidArgumentError(
            Message(
                "A report has results that draw themselves, such as ",
                Hint("table.compare", {"a": 7, "b": 8}),
                f", not {type(result).__name__}.",
            )
        )
    commits = getattr(result, "commits", None)
    picture = ""
    if isinstance(commits, Frame) and commits.schema == COMMITS and commits.num_rows >= _FEWEST_BARS:
        picture = commit_bars(commits.to_arrow(), "rows", None, None)
    return [
        Section(drawing=drawing_of(result), code=getattr(result, "call", None), picture=picture, not_read=_NOT_READ)
    ]


def _page(sections: Sequence[Section], title: str | None, limit: int) -> str:
    heading = escape(sanitize(title or sections[0].answer or sections[0].drawing.title))
    parts = [(shortened(section.drawing, limit), section.picture) for section in sections]
    codes = tuple(Code(section.code) for section in sections if section.code)
    run = Drawing(title="What was run", parts=codes or (Line("The code is not known."),))
    not_read = dict.fromkeys(section.not_read for section in sections if section.not_read)
    unread = Drawing(
        title="What was not read", parts=tuple(map(Line, not_read)) or (Line("Each part says it itself."),)
    )
    parts += [(run, ""), (unread, "")]
    html = "".join(f"<section>{_html(drawing, picture)}</section>" for drawing, picture in parts)
    made = f"Made by snapshot_explorer at {format_utc(datetime.now(UTC))}. All times are in UTC."
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{heading}</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>{heading}</h1><p>{made}</p>{html}</main></body></html>\n"
    )


def _html(drawing: Drawing, picture: str) -> str:
    """Return a drawing as HTML below the page's own heading."""
    return render_html(drawing, picture=picture, names_cells=True).replace(' aria-level="3"', ' aria-level="2"')
