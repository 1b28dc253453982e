"""Every public call of a table and its snapshots, and everything that a person or a program sees of an outcome."""

import logging
import pickle
import traceback


def calls_of(table, *, ref="latest", where=None, column=None):
    """Return the public calls of a table by name. `where` is a condition and `column` a column to read."""
    columns = None if column is None else [column]
    calls = {
        "repr": lambda: table,
        "current": lambda: table.current,
        "update": table.update,
        "at": lambda: table.at(ref),
        "versions": table.versions,
        "listing": table.listing,
        "history": table.history,
        "history stat": lambda: table.history(stat=True),
        "lifetimes": table.lifetimes,
        "lifetimes picture": lambda: table.lifetimes().picture(),
        "changes": table.file_changes,
        "compare": lambda: table.compare("earliest", ref),
        "health": lambda: table.health(ref),
        "health_history": table.health_history,
        "retention": lambda: table.retention(keep="0d"),
        "readability": table.readability,
        "schema": lambda: table.schema(ref),
        "tags": table.tags,
        "branches": table.branches,
        "row_changes": lambda: table.row_changes("earliest", ref),
        "sql": lambda: table.sql("select count(*) from this"),
        "commit": lambda: table.at(ref).commit,
        "properties": lambda: table.at(ref).properties,
        "manifests": lambda: table.at(ref).manifests(),
        "snapshot changes": lambda: table.at(ref).file_changes(),
        "files": lambda: table.at(ref).files(),
        "files statistics": lambda: table.at(ref).files(statistics=True),
        "plan": lambda: table.at(ref).plan(where),
        "to_arrow": lambda: table.at(ref).to_arrow(columns=columns, where=where),
        "to_pandas": lambda: table.at(ref).to_pandas(columns=columns),
        "changelog": lambda: table.at(ref).changelog(),
        "count": lambda: table.at(ref).count(where),
        "tag_versions": table.tag_versions,
        "cached": lambda: table.cached,
    }
    calls |= {f"inspect {one.name}": (lambda name=one.name: table.inspect(name)) for one in table.inspections}
    return calls


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
    """Return all that an error shows: its message, its traceback, its pickle, and what hangs on it to any depth."""
    shown = ["".join(traceback.format_exception(error))]
    for link in chain_of(error):
        shown += [str(link), repr(link), repr(link.args), *_attributes(link), *map(str, getattr(link, "__notes__", ()))]
    if type(error).__module__.startswith("snapshot_explorer"):
        shown.append(pickle.dumps(error).decode("latin-1"))
    return shown


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
