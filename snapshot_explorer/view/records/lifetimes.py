"""What is drawn of the lifetimes of files: their frame, and sizes, files or partitions over versions."""

from typing import get_args

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import Measure
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.view.dispatch import depict, draw, drawing_of
from snapshot_explorer.view.drawing import Drawing, Grid, Line
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.profiles import totals_figure
from snapshot_explorer.view.tracks.file_lifetimes import file_tracks, partition_heat
from snapshot_explorer.view.tracks.svg import TracksPicture, heat_svg


@draw.register
def _lifetimes(lifetimes: FileLifetimes) -> Drawing:
    """The LIFETIMES frame."""
    return drawing_of(lifetimes.frame)


@depict.register
def _picture(lifetimes: FileLifetimes, *, of: str = "totals", y: Measure = "rows", is_brief: bool = False) -> Picture:
    """Sizes over versions, a line for each file, or the changes of each version in each partition."""
    if y not in get_args(Measure):
        raise InvalidArgumentError(f"A picture counts {', '.join(get_args(Measure))}, not {y!r}.")
    if of == "files":
        return TracksPicture(_lifetimes(lifetimes), lambda: file_tracks(lifetimes, is_brief=is_brief))
    if of == "partitions":
        return Picture(_lifetimes(lifetimes), lambda: heat_svg(partition_heat(lifetimes, y)))
    if of != "totals":
        raise InvalidArgumentError(f"A picture shows totals, files or partitions, not {of!r}.")
    totals = lifetimes.totals()
    newest_first = Grid(totals.sort_by([("version", "descending")]), noun="versions")
    drawing = Drawing(title=lifetimes.title, parts=(*map(Line, lifetimes.notes), newest_first))
    return Picture(drawing, lambda: totals_figure(totals, title=lifetimes.title))
