"""How B differs from A, and from another table: a part of the comparison; no widget."""

from snapshot_explorer.analysis.compare import EMPTY_TEXTS
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.contents.changed_rows import changed_rows
from snapshot_explorer.jupyter.explorer.contents.grid_rows import grid_rows
from snapshot_explorer.jupyter.explorer.contents.lens import direction
from snapshot_explorer.jupyter.explorer.contents.view_requests import DRAWN, SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.view import Drawing, Grid, Line, drawing_of
from snapshot_explorer.view.records.frames import drawn_rows


def _no_table(cache: SnapshotCache, b: int) -> ViewResult:
    hint = (
        "Name a table: a variable that holds one, or a path; and behind @ a version, such as copy@3, or the newest. "
        "Its rows are compared with those of B. What the metadata proves is not read."
    )
    drawing = Drawing(title="Compare B with another table", parts=(Line(hint),))
    return ViewResult(drawing=drawing, code="", source=cache.cited(b))


def _twins(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return which versions of both tables name the same files; without another table, of both tables in one folder."""
    other = request["other"]
    source = cache.cited(cache.table.current.version)
    if not other and not history_of(cache.table).table_format.detection.other_formats:
        hint = (
            "Name a table: a variable that holds one, or a path. Shown is which versions of both name the same data "
            "files, and which is behind. No data file is opened."
        )
        return ViewResult(
            drawing=Drawing(title="Is another table in step?", parts=(Line(hint),)), code="", source=source
        )
    result = cache.twins(other)
    named = other if other in (cache.variables or {}) else repr(result.b.path)
    code = f"twins({request.name}{f', {named}' if other else ''})"
    grid = grid_rows(drawn_rows(result.versions), noun=result.versions.noun)
    return ViewResult(drawing=drawing_of(result), code=code, source=source, grid=grid)


def compare(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the requested part of the comparison."""
    a, b, part = request["a"], request["b"], request["compared"]
    if part == "another table":
        return changed_rows(cache, request, request["other"]) if request["other"] else _no_table(cache, b)
    if part == "twins":
        return _twins(cache, request)
    comparison = cache.compare(a, b)
    code, source = f"{request.name}.compare({a}, {b})", cache.cited(a, b)
    if part == "overview":
        drawing = drawing_of(comparison.showing("summary", "schema", "properties"))
        answer, *parts = drawing.parts
        title = answer.text if isinstance(answer, Line) else drawing.title
        files = dict(zip(*(comparison.summary[name].to_pylist() for name in ("part", "files")), strict=True))
        return ViewResult(
            drawing=Drawing(title=title, parts=(Line(direction(a, b), is_faint=True), *parts)),
            code=code,
            source=source,
            shares=tuple((name, files.get(name, 0)) for name in ("shared", "added", "removed")),
        )
    frame = getattr(comparison, part)
    if not len(frame):
        drawing = Drawing(title=frame.title, parts=(Line(EMPTY_TEXTS[part]),))
        return ViewResult(drawing=drawing, code=f"{code}.{part}", source=source)
    rows, count = drawn_rows(frame), f"{len(frame):,} {frame.noun}" if len(frame) > 1 else "one"
    drawing = Drawing(
        title=f"{frame.title}: {count}", parts=(Line(direction(a, b)), Grid(rows, noun=frame.noun, limit=DRAWN))
    )
    versions = [str(item) for item in rows["version"].to_pylist()] if part == "commits" else []
    grid = grid_rows(rows, noun=frame.noun, opens="version" if versions else None, choices=versions)
    return ViewResult(drawing=drawing, code=f"{code}.{part}", source=source, grid=grid)
