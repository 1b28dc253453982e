"""Everything that a person or a program sees of what a call returns or raises."""

import contextlib
import logging
import pickle
import traceback
from pathlib import Path

from snapshot_explorer.errors import SnapshotExplorerError

TESTS = Path(__file__).resolve().parents[1]
DATA = (list, tuple, dict, str, bytes, int, float)


def drawn(result):
    """Return what a result shows of itself: text, and HTML where it has some. Plain data shows its repr."""
    shown = [repr(result)]
    if type(result).__module__.startswith("snapshot_explorer"):
        shown.append(str(result))
    bundle = getattr(result, "_repr_mimebundle_", None)
    if bundle is not None:
        found = bundle()
        found = found[0] if isinstance(found, tuple) else found
        shown += [text for kind, text in found.items() if kind.startswith("text/")]
    return shown


def saved_by(result):
    """Return what a result is when it is saved: its pickle, its JSON and CSV, as far as it has them."""
    with contextlib.suppress(pickle.PicklingError, TypeError, AttributeError):  # it has threads, or belongs to Spark
        yield pickle.dumps(result).decode("latin-1")
    for name in ("to_json", "to_csv", "to_markdown", "to_junit"):
        if type(result).__module__.startswith("snapshot_explorer") and hasattr(result, name):
            with contextlib.suppress(SnapshotExplorerError):
                yield getattr(result, name)()


def chain_of(error):
    """Yield an error, and all that hangs on it: causes, contexts, members of groups."""
    waiting, seen = [error], set()
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]


def shown_by(error):
    """Return all that an error shows: message, traceback with local variables, pickle, and what hangs on it."""
    shown = ["".join(traceback.format_exception(error))]
    for link in chain_of(error):
        shown += _locals(link)
        shown += [str(link), repr(link), repr(link.args), *_attributes(link), *map(str, getattr(link, "__notes__", ()))]
    if type(error).__module__.startswith("snapshot_explorer"):
        shown.append(pickle.dumps(error).decode("latin-1"))
    return shown


def _locals(error):
    """Yield the variables of the frames of an error, as a verbose traceback shows them.

    Not those of tests, nor of IPython, whose variables are those of the cell.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith(str(TESTS)) or "IPython" in file or not Path(file).exists():
            continue
        for name, value in frame.f_locals.items():
            with contextlib.suppress(AttributeError):  # it is being created
                yield f"{file}: {name} = {value!r}"


def _attributes(value, depth=4):
    """Yield the text of everything in an object's attributes, as a debugger shows them."""
    if depth == 0:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield repr(name)
            yield from _attributes(item, depth - 1)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from _attributes(item, depth - 1)
    elif isinstance(value, str | bytes):
        yield repr(value)
    else:
        yield repr(value)
        yield from _attributes(getattr(value, "__dict__", {}), depth - 1)


class Lines(logging.Handler):
    """Keeps every log line below a logger, the root's by default, as a handler prints it."""

    def __init__(self, name=None):
        super().__init__(logging.DEBUG)
        self.lines = []
        self._logger = logging.getLogger(name)
        self._formatter = logging.Formatter("%(name)s %(levelname)s %(message)s")

    def emit(self, record):
        self.lines.append(self._formatter.format(record))

    def __enter__(self):
        self._level = self._logger.level
        self._logger.addHandler(self)
        self._logger.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_):
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
