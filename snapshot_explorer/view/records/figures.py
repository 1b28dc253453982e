"""What is drawn of a figure as text: its table."""

from snapshot_explorer.view.dispatch import draw
from snapshot_explorer.view.drawing import Drawing
from snapshot_explorer.view.svg import ShownFigure


@draw.register
def _figure(figure: ShownFigure) -> Drawing:
    """The table beside the figure."""
    return figure.table
