"""What tests ask of an explorer without a browser: what it shows, its widgets, a press of a button."""

import json
from contextlib import contextmanager
from unittest import mock

import comm
import ipywidgets
import numpy as np
from comm.base_comm import BaseComm

from snapshot_explorer.jupyter.explorer.page.widget_factory import Slot
from snapshot_explorer.render import text


def shown_text(explorer, place):
    """Return what a place shows, as text; its error where there is one."""
    pane = explorer._views.panes[place]
    return pane.error or text(pane.drawing)


def grid_of(explorer, place):
    """Return the grid of a place, as a page has it: names, and the texts of the first rows."""
    grid = explorer._views.panes[place].grid.grid
    return [one["name"] for one in grid["columns"]], [list(row) for row in zip(*grid["page"]["cells"], strict=True)]


def unpacked(sent):
    """Return the numbers of a column of the timeline, as the page does."""
    found = np.frombuffer(sent["data"], sent["type"])
    if "first" not in sent:
        return found.tolist()
    above = found if len(found) else np.zeros(sent["count"] - 1)
    numbers = sent["first"] + np.cumsum([0, *(above.astype(float) + sent["step"])])
    for begin, end in zip(sent["gaps"][::2], [*sent["gaps"][1::2], sent["count"]], strict=False):
        numbers[begin:end] = np.nan
    return numbers.tolist()


def all_widgets(widget):
    """Yield a widget and all in it, what is not shown yet too."""
    yield widget
    for child in [widget.content] if isinstance(widget, Slot) else getattr(widget, "children", ()):
        yield from all_widgets(child)


def pressed(explorer, label):
    """Press the button of that label, and wait."""
    (found,) = [
        one for one in all_widgets(explorer) if isinstance(one, ipywidgets.Button) and one.description == label
    ][:1]
    found.click()
    explorer.wait()


def labelled(explorer, label):
    """Return the control of that label."""
    return next(one for one in all_widgets(explorer) if getattr(one, "description", None) == label)


@contextmanager
def messages_to_the_page():
    """Keep what widgets send to a page meanwhile: type, model, bytes."""
    sent = []

    class Kept(BaseComm):
        def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **_):
            size = len(json.dumps(data)) + len(json.dumps(metadata)) + sum(len(one) for one in buffers or ())
            sent.append((msg_type, self.comm_id, size))

    with mock.patch.object(comm, "create_comm", Kept):
        yield sent
