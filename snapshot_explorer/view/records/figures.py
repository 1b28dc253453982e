"""What is drawn of a figure as text: its table."""

from snapshot_explorer.view.dispatch import draw
from snapshot_explorer.view.drawing import Drawing
from snapshot_explorer.view.plotly_figure import FigureWithTable
from snapshot_explorer.view.svg import SvgPicture


@draw.register
def _figure(figure: FigureWithTable | SvgPicture) -> Drawing:
    """The table beside the figure."""
    return figure.table
