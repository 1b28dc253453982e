"""The rule that a result says no more than was looked at, as a check of any public result.

See ARCHITECTURE, "What a result may say".
"""

import re

import pandas as pd
import pyarrow as pa

import snapshot_explorer
from snapshot_explorer.history import history_of
from snapshot_explorer.results import Frame
from snapshot_explorer.table import parts_of
from tests.inner.core import Commit
from tests.support.public_calls import PARTS, Drawn

UNFOUNDED = re.compile(r"[Ii]n good order|readable\W+yes\b|readable(?s:.)*?\d\dZ .*\byes *$", re.MULTILINE)
"""What no text may say of files that nobody looked for."""
LOOKING = {"readability", "doctor", "%snapshot verify", "%snapshot health"}
"""The calls that look for files."""


def tables_in(value):
    """Yield the Arrow tables that a public result consists of."""
    if isinstance(value, Frame):
        yield value.to_arrow()
    elif isinstance(value, pa.Table):
        yield value
    elif isinstance(value, Commit):
        yield pa.table({"readable": pa.array([value.readable], pa.string())})
    elif parts := PARTS.get(type(value)):
        yield from tables_in(parts(value))
    elif isinstance(value, dict):
        yield from tables_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tables_in(part)


def texts_of(value):
    """Yield what a public result looks like."""
    if isinstance(value, Drawn):
        yield value.text
    elif not isinstance(value, pa.Table | pd.DataFrame):
        yield repr(value)
        if hasattr(value, "_repr_mimebundle_"):
            yield from (text for text in value._repr_mimebundle_().values() if isinstance(text, str))


def unfounded(name, result):
    """Return what a public result says of files that nobody looked for; nothing of the calls that look for them."""
    if name in LOOKING:
        return []
    readable = [rows["readable"].to_pylist() for rows in tables_in(result) if "readable" in rows.column_names]
    said = [f"{name}: readable is yes" for values in readable if "yes" in values]
    found = (UNFOUNDED.search(text) for text in texts_of(result))
    return said + [f"{name}: {match.group()}" for match in found if match]


def more_calls(given):
    """Return public calls by name that no other suite needs: those that only read names, and those over folders."""
    found = {
        "find_tables": lambda t: snapshot_explorer.find_tables(given.path),
        "find_tables without sizes": lambda t: snapshot_explorer.find_tables(given.path, sizes=False),
        "find_tables of a folder": lambda t: snapshot_explorer.find_tables(given.path.rpartition("/")[0]),
        "open_lake": lambda t: snapshot_explorer.open_lake(given.path).overview("3650d"),
        "twins": lambda t: [(pair := snapshot_explorer.twins(t, t)), pair.versions],
        "orphans": lambda t: [(orphans := t.orphans("0d")), orphans.files],
        "branch_names": lambda t: history_of(t).branch_names(),
        "live_files": lambda t: parts_of(t.current).loaded.live_files(),
        "label": lambda t: (t.current.label, str(t.current.ref)),
        "cached files": lambda t: (
            parts_of(t.current).loaded.cached_files(),
            parts_of(t.current).loaded.cached_schema(),
        ),
    }
    if given.versions:
        found["version_of"] = lambda t: history_of(t).version_of("latest~1")
        found["verify"] = lambda t: [(verified := t.verify("footers")), verified.files]
        found["diff"] = lambda t: snapshot_explorer.diff(t.at(given.versions[0]), t.current, key=[])
        found["diff3"] = lambda t: snapshot_explorer.diff3(*(t.at(given.versions[at]) for at in (0, -1, 0)))
    if given.where and given.versions:
        found["repair"] = lambda t: (planned := t.repair(given.versions[0], given.where), planned.later)
        found["trace"] = lambda t: [
            (traced := t.trace(given.where)),
            traced.versions,
            traced.files,
            traced.changelogs,
            traced.metadata,
        ]
    return found


def is_called(name, *sources):
    """Return whether the source of tests calls a public name."""
    return any(re.search(rf"\b{name}\b", source) for source in sources)
