"""Views of all versions: lifetimes of files, changes of partitions, branches and tags; no widget."""

from dataclasses import replace

from snapshot_explorer.analysis.retention import read_readability
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.contents import version_views
from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.view import Drawing, Grid, Line, Part, drawing_of, picture_of
from snapshot_explorer.view.records.frames import drawn_rows
from snapshot_explorer.view.tracks.branch_graph import branch_graph
from snapshot_explorer.view.tracks.file_lifetimes import file_tracks, partition_heat
from snapshot_explorer.view.tracks.svg import heat_svg, svg_of, tracks_svg

_NAMES = {"actions": "Actions", "slices": "File groups"}
"""The titles of the pictures of metadata tables."""
_SIGNS = ("ran", "versions")
"""Their columns that draw the picture's content as signs."""


def files(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the live files of B, the lifetimes of all files, changes of partitions, usage, or a format's picture."""
    match request["file_view"]:
        case "list":
            return version_views.files(cache, request)
        case "lifetimes":
            return _lifetimes(cache, request)
        case "partitions":
            return _partitions(cache, request)
        case "usage":
            return _usage(cache, request)
        case view:
            return _metadata_picture(cache, request, view)


def _metadata_picture(cache: SnapshotCache, request: ViewRequest, view: str) -> ViewResult:
    """Return the picture of a metadata table that few formats have, such as actions over time."""
    name = next((item.name for item in history_of(cache.table).table_format.inspections if item.picture == view), None)
    if name is None:
        raise InvalidArgumentError(f"{cache.table.name} has no picture of {view}: its format records none.")
    frame = cache.table.inspect(name)
    drawing = picture_of(frame).drawing
    return ViewResult(
        drawing=replace(drawing, parts=tuple(map(_without_signs, drawing.parts))),
        answer=f"{_NAMES[view]} of {cache.table.name}",
        code=f"{request.name}.inspect({name!r}).picture()",
        source=cache.cited(cache.table.current.version),
        picture=svg_of(frame),
    )


def _without_signs(part: Part) -> Part:
    """Return a table without the column that repeats the picture in signs; another part unchanged."""
    if not isinstance(part, Grid):
        return part
    return replace(part, rows=part.rows.select([name for name in part.rows.column_names if name not in _SIGNS]))


def _lifetimes(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    table = cache.table
    if request["missing"]:
        read_readability(history_of(table))
    lifetimes = table.lifetimes()
    tracks = file_tracks(lifetimes)
    return ViewResult(
        drawing=Drawing(title=lifetimes.title, parts=tuple(map(Line, tracks.notes[1:]))),
        answer=". ".join([f"{tracks.total:,} files over {len(lifetimes.versions):,} versions", *tracks.notes[:1]]),
        code=f"{request.name}.lifetimes().picture('files')",
        source=cache.cited(*lifetimes.versions[:1], *lifetimes.versions[-1:]),
        picture=tracks_svg(tracks),
    )


def _partitions(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    lifetimes, y = cache.table.lifetimes(), request["measure"]
    heat = partition_heat(lifetimes, y)
    return ViewResult(
        drawing=Drawing(title=lifetimes.title, parts=()),
        answer=f"What {len(lifetimes.versions):,} versions changed, by partition: {heat.what}",
        code=f"{request.name}.lifetimes().picture('partitions', y={y!r})",
        source=cache.cited(*lifetimes.versions[:1], *lifetimes.versions[-1:]),
        picture=heat_svg(heat),
    )


def _usage(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return what holds the bytes of the table now, and live and held bytes at each version."""
    usage = cache.table.usage("time")
    drawing = drawing_of(usage)
    return ViewResult(
        drawing=replace(drawing, parts=drawing.parts[1:]),  # the first is the answer
        answer=usage.verdict,
        code=f"{request.name}.usage('time')",
        source=cache.cited(usage.version),
    )


def branches(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the branches and tags of the table as a graph, and as tables."""
    table = cache.table
    graph, frames = branch_graph(history_of(table)), (table.branches(), table.tags())
    grids: list[Part] = [Grid(drawn_rows(frame), noun=frame.noun) for frame in frames if len(frame)]
    return ViewResult(
        drawing=Drawing(title=graph.title, parts=(*map(Line, graph.notes), *grids)),
        code=f"{request.name}.branches().picture()",
        source=cache.cited(*history_of(cache.table).listing.versions[-1:]),
        picture=tracks_svg(graph),
    )
