"""The branches and tags of a table as a graph, as `git log --graph` draws one: a lane of commits for each branch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.refs import MAIN
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.history import History
from snapshot_explorer.view.commits import commit_lines
from snapshot_explorer.view.grid import heading_of
from snapshot_explorer.view.tracks.tracks import Link, Mark, Span, Track, Tracks

_MAX_BRANCHES = 20
"""The most branches that are read."""
_MAX_COMMITS = 400
"""The most commits that are drawn, apart from the first of each branch, those where another begins and tagged ones."""
_MAX_TAGGED = 100
_MAX_NAMES = 2
"""The most tags of a commit that are named in the figure."""


@dataclass(slots=True, kw_only=True)
class _Lane:
    """A branch: the versions that no lane above has, and the point where the branch begins."""

    name: str
    versions: tuple[int, ...]
    """All of its versions, ascending."""
    parent: int | None = None
    """The index of the lane with which it shares the newest version; None for none."""
    shared: Mapping[int, int] = field(default_factory=dict)
    """The versions that both have, with their numbers there."""
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The commits that are drawn, by version."""
    total_name: str = ""
    """The name of the rows that their `total_rows` count."""

    @property
    def own_versions(self) -> list[int]:
        """Return the versions that the parent does not have, ascending."""
        newest = max(self.shared, default=None)
        return [version for version in self.versions if newest is None or version > newest]


def branch_graph(history: History) -> Tracks:
    """Return the branches of a table as tracks with links, and its tags. Reads the newest commits of each branch.

    A commit that several branches have is drawn once, on the first of them. Commits are ordered by their times, and
    after those that they follow. If there are many, the newest are read, and those with a tag or where a branch begins.

    Args:
        history: The history of any branch; a click opens the versions of that branch.
    """
    here, branches, tags = history.branch_name, history.table_format.branches.others(), history.tags()
    forks = {branch.name: branch.forked_version for branch in branches}
    others = sorted({*history.branch_names(), here} - {MAIN}, key=lambda name: (forks.get(name) or 0, name))
    names = [MAIN, *others] if MAIN in history.branch_names() or here == MAIN else others
    notes = [f"{_MAX_BRANCHES} of {len(names):,} branches"] if len(names) > _MAX_BRANCHES else []
    lanes: list[_Lane] = []
    histories: list[History] = []
    for name in names[:_MAX_BRANCHES]:
        try:
            own = history.on_branch(name)
            lanes.append(_lane(name, own, histories))
        except SnapshotExplorerError as error:
            notes.append(Message(f"Branch {name} is not drawn: ", error))
        else:
            histories.append(own)
    notes += _read_commits(lanes, histories, tags)
    at = next((index for index, lane in enumerate(lanes) if lane.name == here), 0)
    opened = {_node(lanes, at, version): version for version in lanes[at].versions} if lanes else {}
    lost = [name for name, version in tags.items() if opened and _tag_node(lanes, at, version) is None]
    if lost:
        notes.append(f"{pluralize(len(lost), 'tag')} of versions on none of these branches: {', '.join(lost[:5])}")
    has_branches = history.table_format.branches.main is not None
    if not has_branches:
        notes.append(
            f"{history.table_format.name.capitalize()} tables have no branches"
            + ("" if tags else "; this one has no tags")
        )
    elif len(names) == 1:
        notes.append("The table has no other branch" + ("" if tags else ", and no tags"))
    return _tracks(lanes, opened, title=f"Branches and tags of {history.name}", notes=notes, has_branches=has_branches)


def _lane(name: str, history: History, above: Sequence[History]) -> _Lane:
    """Return the lane of a branch, below that with which it shares the newest version."""
    lane = _Lane(name=name, versions=tuple(history.listing.versions))
    for index, other in enumerate(above):
        shared = history.shared_versions(other)
        if max(shared, default=-1) > max(lane.shared, default=-1):
            lane.parent, lane.shared = index, shared
    return lane


_Node = tuple[int, int]
"""A commit: the index of its lane, and its version on that branch."""


def _node(lanes: Sequence[_Lane], index: int, version: int) -> _Node | None:
    """Return where a version of a lane is drawn: on the highest lane that has it; None if no lane has it."""
    lane = lanes[index]
    if lane.parent is not None and version in lane.shared:
        return _node(lanes, lane.parent, lane.shared[version])
    return (index, version) if version in lane.versions else None


def _tag_node(lanes: Sequence[_Lane], here: int, version: int) -> _Node | None:
    """Return the commit of a tag: a version of the open branch, or else of another one."""
    nodes = (_node(lanes, index, version) for index in (here, *range(len(lanes))))
    return next((node for node in nodes if node is not None), None)


def _read_commits(lanes: Sequence[_Lane], histories: Sequence[History], tags: Mapping[str, int]) -> list[str]:
    """Read the commits that are drawn, and return what is not drawn."""
    needed: set[_Node | None] = (
        {_tag_node(lanes, 0, version) for version in [*tags.values()][-_MAX_TAGGED:]} if lanes else set()
    )
    for index, lane in enumerate(lanes):
        needed |= {_node(lanes, index, version) for version in (*lane.versions[-1:], *lane.own_versions[:1])}
        if lane.parent is not None and lane.shared:
            needed.add(_node(lanes, lane.parent, lane.shared[max(lane.shared)]))
    most = _MAX_COMMITS // max(1, len(lanes))
    for index, (lane, own) in enumerate(zip(lanes, histories, strict=True)):
        versions = {*lane.own_versions[-most:], *(node[1] for node in needed if node is not None and node[0] == index)}
        # The frame has no secrets of URLs.
        rows = own.commits_frame(sorted(versions, reverse=True)).to_arrow()
        lane.rows = {row["version"]: row for row in rows.to_pylist()}
        lane.total_name = heading_of(rows.schema.field("total_rows"))
    total, drawn = sum(len(lane.own_versions) for lane in lanes), sum(len(lane.rows) for lane in lanes)
    return [f"{drawn:,} of {total:,} commits: the newest, and those with tags or branches"] if drawn < total else []


def _ordered(lanes: Sequence[_Lane]) -> list[_Node]:
    """Return the commits by time, none before one that it follows."""
    times: dict[_Node, float] = {}
    for index, lane in enumerate(lanes):
        fork = _fork(lanes, index)
        earliest = 0.0 if fork is None else times.get(fork, 0.0)
        for version in sorted(lane.rows):
            time = lane.rows[version]["committed_at"]
            earliest = max(earliest, 0.0 if time is None else time.timestamp())
            times[index, version] = earliest
    return sorted(times, key=lambda node: (times[node], node))


def _fork(lanes: Sequence[_Lane], index: int) -> _Node | None:
    """Return the commit after which a lane begins; None if it begins with its own first one."""
    lane = lanes[index]
    return None if lane.parent is None or not lane.shared else _node(lanes, index, max(lane.shared))


def _tracks(
    lanes: Sequence[_Lane], opened: Mapping[_Node | None, int], *, title: str, notes: Sequence[str], has_branches: bool
) -> Tracks:
    order = _ordered(lanes)
    indices = {node: position for position, node in enumerate(order)}
    drawn = [index for index, lane in enumerate(lanes) if lane.rows]
    row_of = {index: row for row, index in enumerate(drawn)}
    # A branch without commits of its own is a text at its newest commit, as in git.
    tips: dict[_Node | None, list[str]] = {}
    for index, lane in enumerate(lanes):
        if lane.versions and not lane.rows:
            tips.setdefault(_node(lanes, index, lane.versions[-1]), []).append(f"branch {lane.name}")
    tracks, links = [], []
    for index in drawn:
        nodes = [(index, version) for version in sorted(lanes[index].rows)]
        span = Span(
            first=indices[nodes[0]], last=indices[nodes[-1]], group="branch", hover=f"branch {lanes[index].name}"
        )
        marks = tuple(_mark(lanes[index], node, indices, tips.get(node, ()), opened.get(node)) for node in nodes)
        tracks.append(Track(label=lanes[index].name if has_branches else "commits", spans=(span,), marks=marks))
        fork = _fork(lanes, index)
        if fork in indices:
            links.append(Link(begin=(indices[fork], row_of[fork[0]]), end=(indices[nodes[0]], row_of[index])))
    return Tracks(
        title=title,
        versions=tuple(version for _, version in order),
        tracks=tuple(tracks),
        total=len(tracks),
        noun="branches",
        notes=tuple(notes),
        links=tuple(links),
    )


def _mark(lane: _Lane, node: _Node, indices: Mapping[_Node, int], tips: Iterable[str], opens: int | None) -> Mark:
    row = lane.rows[node[1]]
    names = row["tags"] or []
    more = [f"and {len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return Mark(
        place=indices[node],
        group=row["kind"],
        text=", ".join([*names[:_MAX_NAMES], *more, *tips]),
        hover="\n".join(
            [
                f"branch {lane.name}",
                *commit_lines(row | {"branches": None}, schema_changed=False, total_name=lane.total_name),
            ]
        ),
        opens=opens,
    )
