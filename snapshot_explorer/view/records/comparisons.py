"""What is drawn of a comparison: a sentence on the rows, the parts with differences, and bars of files and bytes."""

from collections.abc import Sequence

from snapshot_explorer.analysis.compare import Comparison
from snapshot_explorer.analysis.compare.comparison import EMPTY_TEXTS
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.view.differences import difference_svg
from snapshot_explorer.view.dispatch import depict, draw, drawing_of
from snapshot_explorer.view.drawing import Drawing, Line, Pairs, Part
from snapshot_explorer.view.figures import Picture


@draw.register
def _comparison(comparison: Comparison) -> Drawing:
    """The verdict, and the parts with differences."""
    parts: list[Part] = []
    comparison.read_together()
    for name in comparison.parts:
        parts += [item for item in _section(comparison, name) if not isinstance(item, Line) or item not in parts]
    return Drawing(title=comparison.title, parts=tuple(parts))


@depict.register
def _picture(comparison: Comparison) -> Picture:
    """Files and bytes by part and by partition."""
    return Picture(
        _comparison(comparison),
        lambda: difference_svg(comparison.summary.to_arrow(), comparison.partitions.to_arrow(), title=comparison.title),
    )


def _section(comparison: Comparison, name: str) -> Sequence[Part]:
    """Return the drawing of a part, or of the error if it cannot be read."""
    try:
        if name == "summary":
            facts = Pairs(comparison.facts())
            return [Line(comparison.proof), facts, *drawing_of(comparison.summary).parts]
        frame = getattr(comparison, name)
    except SnapshotExplorerError as error:
        return [Line(error.message)]
    if not len(frame):
        return [Line(EMPTY_TEXTS[name])] if name in comparison.shown else []
    return [Line(f"{name.capitalize()}:"), *drawing_of(frame).parts]
