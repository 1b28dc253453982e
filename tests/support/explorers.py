"""What tests ask of an explorer without a browser: what it shows, a press of a button."""

import base64
import gzip
import json
import re
from contextlib import contextmanager
from unittest import mock

import comm
import numpy as np
from comm.base_comm import BaseComm


def shown_text(explorer, place):
    """Return what a place shows, as text; its error where there is one."""
    return explorer.views[place].text


def grid_of(explorer, place):
    """Return the grid of a place, as a page has it: names, and the texts of the first rows."""
    grid = explorer.views[place].grid.content
    return [one["name"] for one in grid["columns"]], [list(row) for row in zip(*grid["page"]["cells"], strict=True)]


def outcome(explorer, place):
    """Return what loading or bisecting showed last, in a line: sentences, or an error."""
    return " ".join(explorer.views[place].text.split())


def all_texts(content):
    """Return every text in what the page receives."""
    match content:
        case str():
            return [content]
        case dict():
            return [text for pair in content.items() for one in pair for text in all_texts(one)]
        case list() | tuple():
            return [text for one in content for text in all_texts(one)]
        case _:
            return []


def recorded(page):
    """Return what is recorded in a page that works without Python, by name."""
    (packed,) = re.findall(r'id="recorded">([A-Za-z0-9+/=]*)</script>', page)
    lines = gzip.decompress(base64.b64decode(packed)).decode().splitlines()
    return {json.loads(name): json.loads(value) for name, _, value in (line.partition("\t") for line in lines)}


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


BUTTONS = {
    "Previous": {"step": ["b", -1]},
    "Next": {"step": ["b", 1]},
    "Swap A and B": {"act": "swap"},
    "Refresh": {"act": "refresh"},
    "Load as variable": {"act": "load"},
    "Compare rows": {"act": "compare rows"},
    "Count rows": {"act": "count rows"},
    "Blame rows": {"act": "blame"},
    "Trace": {"act": "trace"},
    "Plan repair": {"act": "repair"},
    "Plan to undo": {"act": "undo"},
    "Verify files": {"act": "read files"},
    "Find orphans": {"act": "read files"},
    "Find duplicates": {"act": "read files"},
    "Bisect": {"act": "bisect"},
}
"""What the page sends when a button is pressed."""


def pressed(explorer, label):
    """Do what the page does when the button of that label is pressed, and wait."""
    explorer.receive(BUTTONS[label])
    explorer.wait()


def typed(explorer, **values):
    """Do what the page does when controls of the state get these values, and wait."""
    explorer.receive({"set": values})
    explorer.wait()


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


def head_of(explorer):
    """Return what the head of an explorer's page says, in a line."""
    page = explorer.page
    name = " ".join(page[part] for part in ("name", "format", "path"))
    return " \N{MIDDLE DOT} ".join([name, *page["facts"], page["problem"]])
