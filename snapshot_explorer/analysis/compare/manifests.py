"""Compare the manifest lists of two versions: the status of each manifest, and its entries."""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.text import list_names
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.results import Frame, non_empty_columns

_MAX_NAMED = 3
"""The maximum number of manifests in a message."""
_MAX_COMPARED = 1_000
"""The maximum number of manifests that are searched for a similar name."""
CARRIED, ADDED, REMOVED = "carried over", "added", "removed"
MERGED, REWRITTEN, LEFT = "merged away", "rewritten", "left behind"


def compare_manifests(
    a: pa.Table, b: pa.Table, *, delta_paths: Collection[str] | None, backwards: bool, merges: bool
) -> pa.Table:
    """Return the status of each manifest: COMPARED_MANIFESTS, first B's manifests in list order, then those only in A.

    The direction is from A to B. `carried over`: both list it. If B is newer: `added`: a commit between wrote it as its
    delta or changelog. `rewritten`: only B lists it, and it was merged from others. `merged away`: only A lists it, and
    its entries are in others now. `left behind`: a changelog of A's commit, which no later version lists. Null: not
    carried over, otherwise unknown. If B is older, no commit leads from A to B: manifests that only B lists are
    `added`, manifests that only A lists are `removed`.

    Args:
        delta_paths: Paths of the delta manifests of the commits between; None if some are unknown.
        backwards: Whether A is the newer one.
        merges: Whether a base may list deltas of earlier commits; otherwise all of it is merged from others.
    """
    before, after = _lists(a), _lists(b)
    made = frozenset[str]() if not merges else delta_paths
    manifests: dict[str, dict[str, object]] = {}
    for row in (*b.to_pylist(), *a.to_pylist()):
        manifests.setdefault(row["path"], row)
    rows = [
        row
        | {
            "status": _plain_status(path, before, after) if backwards else _status(path, before, after, made),
            "list_a": before.get(path),
            "list_b": after.get(path),
        }
        for path, row in manifests.items()
    ]
    return pa.Table.from_pylist(rows, frames.COMPARED_MANIFESTS)


def _lists(manifests: pa.Table) -> Mapping[str, str]:
    return dict(zip(manifests["path"].to_pylist(), manifests["list"].to_pylist(), strict=True))


def _plain_status(path: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return which of A and B list a manifest."""
    if path in before and path in after:
        return CARRIED
    return ADDED if path in after else REMOVED


def _status(
    path: str, before: Mapping[str, str], after: Mapping[str, str], delta_paths: Collection[str] | None
) -> str | None:
    """Return the status of a manifest, from the lists that contain it in A and in B, the newer one."""
    old, new = before.get(path), after.get(path)
    if old is not None and new is not None:
        return CARRIED
    if new is None:
        return LEFT if old == "changelog" else MERGED
    if new == "index":
        return REWRITTEN if "index" in before.values() else ADDED
    if new != "base":
        return ADDED
    if delta_paths is None:
        return None
    return ADDED if path in delta_paths else REWRITTEN


def entries_of(version: TableVersion, path: str, *, note: str = "") -> Frame:
    """Return the entries of a manifest of a version, in order: ENTRIES. Reads the manifest."""
    rows = version.entries(path)
    return Frame(rows, title=f"Entries of {path}{note}", noun="entries", drawn=non_empty_columns(rows))


def find_manifest(name: str, paths: Sequence[str], *, owner: str) -> str:
    """Return the path of a manifest, found by its path, its name, or an unambiguous suffix.

    Args:
        owner: The version or versions that list them, for messages.
    """
    if name in paths:
        return name
    named = [path for path in paths if _name(path) == name]
    named = named or [path for path in paths if name and path.endswith(name)]
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidArgumentError(
            f"{len(named):,} manifests of {owner} end with {name!r}: {list_names(named, _MAX_NAMED)}. Use a longer "
            "part of the name."
        )
    near = get_close_matches(_name(name), [_name(path) for path in paths[:_MAX_COMPARED]], 1, cutoff=0)
    hint = f" The nearest is {near[0]}." if near else ""
    known = f"See manifests, which lists all {len(paths):,}." if paths else "There are none."
    raise InvalidArgumentError(f"{name!r} is not a manifest of {owner}.{hint} {known}")


def _name(path: str) -> str:
    return path.rpartition("/")[2]
