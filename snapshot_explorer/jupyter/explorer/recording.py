"""The explorer as one HTML file that works without Python: the page's script, over what was recorded of the views."""

import json
import zlib
from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from itertools import pairwise
from typing import Any

from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import MAINTENANCE_KINDS
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.history import open_expression
from snapshot_explorer.jupyter.explorer.contents.commit_list import PAGE, commit_rows, overview
from snapshot_explorer.jupyter.explorer.contents.grid_rows import PAGE as ROWS
from snapshot_explorer.jupyter.explorer.contents.grid_rows import ranks_of
from snapshot_explorer.jupyter.explorer.contents.view_requests import ViewResult
from snapshot_explorer.jupyter.explorer.page.scripts import script, text_of
from snapshot_explorer.jupyter.explorer.state import COMPARED, MEASURES, READS, ExplorerState
from snapshot_explorer.jupyter.explorer.views import Views
from snapshot_explorer.table import Table
from snapshot_explorer.view import Pairs
from snapshot_explorer.view.stored_details import stored_details

MOST_BYTES = 2_000_000
"""The maximum size of a file."""
_LAST_BYTES = 10_000
"""The bytes that are left for the head of the page, which says what was recorded."""
_COMMITS = (1_000, 200, 20)
"""Commits that are listed, the newest ones; fewer if they do not fit."""
_PAIRS = 30
"""Pairs of versions that are compared although they are not neighbors."""
_MANIFESTS = 12
"""Manifests of a version whose entries are recorded, of those that no newer version lists."""
_LONGEST_DETAILS = 4_000
"""Characters of a commit's details that are searched."""
_PARTS = ("compared", "health")
_NOT_RECORDED = ("another table", "twins", *READS)
"""Parts of views that depend on other tables, or read much."""
_STYLE = (
    "body{margin:0;padding:8px;background:#fff}body[data-theme=dark]{background:#111317;color-scheme:dark}"
    "h1,h2{position:absolute;width:1px;height:1px;margin:0;overflow:hidden;clip-path:inset(50%)}"
    "@media(max-width:760px){body{padding:0}}"
)


class _Recording:
    """Named contents as lines of JSON, compressed as they are added, up to a number of bytes."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._packer = zlib.compressobj(9, wbits=31)  # gzip
        self._packed = b""

    def add(self, contents: Mapping[str, object], *, left: int = _LAST_BYTES) -> bool:
        """Add contents unless fewer than `left` bytes would be left; return whether they were added."""
        before = self._packer.copy()
        lines = [f"{json.dumps(name)}\t{json.dumps(value, default=_as_text)}\n" for name, value in contents.items()]
        packed = self._packer.compress("".join(lines).encode()) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        if len(self._packed) + len(packed) + left > self._room:
            self._packer = before
            return False
        self._packed += packed
        return True

    def text(self) -> str:
        """Return all contents as text."""
        return b64encode(self._packed + self._packer.flush()).decode()


def _as_text(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    raise TypeError(type(value).__name__)


class Recorder:
    """Records the views of an explorer that no page shows: its state is set to all that is recorded."""

    def __init__(
        self, table: Table, state: ExplorerState, views: Views, traits: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Record nothing yet; `traits` returns what a page would receive in the present state: page, commits, ...."""
        self._table, self._state, self._views, self._traits = table, state, views, traits
        self._manifests: set[str] = set()

    def page(self, shown: Mapping[str, Any], *, versions: int) -> bytes:
        """Return an HTML page of at most `MOST_BYTES` that needs neither Python nor network.

        Args:
            shown: The traits of the state that the page begins with.
            versions: The number of newest versions whose views are recorded.
        """
        code, style = script("recorded.js"), _STYLE + text_of("page.css")
        title = escape(f"{sanitize(self._table.name)}: explorer")
        begin = (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
            f"content=\"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(style)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'\">"
            f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title>'
            f"<style>{style}</style></head><body><main><h1>{title}</h1><h2>Commits and views</h2></main>"
            "<noscript>This page draws a table's history with JavaScript, which is turned off.</noscript>"
            '<script type="text/plain" id="recorded">'
        )
        end = f'</script><script type="module">{code}</script></body></html>\n'
        recording = _Recording((MOST_BYTES - len((begin + end).encode())) * 3 // 4)
        self._record(recording, shown, versions)
        return f"{begin}{recording.text()}{end}".encode()

    def _record(self, recording: _Recording, shown: Mapping[str, Any], most: int) -> None:
        """Record the commits, then the newest versions, then pairs that are not neighbors, as far as they fit."""
        limit = next(count for count in _COMMITS if recording.add(self._commits(count)) or count == _COMMITS[-1])
        commits = self._state.commits["version"].slice(0, limit).to_pylist()
        head = self._head(shown, commits)
        self._state.unobserve_all()  # from here on, a change of the state reads nothing by itself
        recording.add(self._of_table(head["page"]["choices"]))
        versions = list(dict.fromkeys((int(head["b"]), *commits)))[:most]
        pairs = list(_pairs(versions, shown["a"] if shown["pinned"] else None, self._state.versions))[:_PAIRS]
        with step("Recording versions", total=len(versions) + len(pairs)) as recorded:
            done = compared = 0
            while done < len(versions) and recording.add(self._of_version(versions[done])):
                done += 1
                recorded.advance()
            while done == len(versions) and compared < len(pairs) and recording.add(self._of_pair(*pairs[compared])):
                compared += 1
                recorded.advance()
        head["page"]["recorded"] = self._note(len(commits), versions[:done], pairs[:compared])
        recording.add({"explorer": head}, left=0)

    def _commits(self, count: int) -> dict[str, object]:
        """Return the newest commits: the timeline, the list and the strip, by what is counted."""
        state = self._state
        commits = state.commits.slice(0, count)
        versions = tuple(commits["version"].to_pylist()[::-1])
        state.window = versions[0], versions[-1]
        details = [_details(text) for text in commits["details"].to_pylist()]
        contents: dict[str, object] = {"commits": {"versions": [*map(str, versions)], "details": details}}
        for measure in MEASURES:
            state.measure = measure
            traits, starts = self._traits(), range(0, len(commits), PAGE)
            contents[f"measure {measure}"] = {
                "commits": traits["commits"],
                "facts": traits["facts"],
                "rows": [row for start in starts for row in commit_rows(commits, start, measure)["rows"]],
                "most": traits["listed"]["most"],
                "strip": overview(commits, versions, measure),
            }
        return contents

    def _head(self, shown: Mapping[str, Any], versions: Sequence[int]) -> dict[str, Any]:
        """Return the head of the page and the state that it begins with; `versions` are listed, newest first."""
        page, window, ascending = self._traits()["page"], shown["window"], versions[::-1]
        b = self._state.b = shown["b"] if shown["b"] in versions else versions[0]
        choices = {
            name: [item for item in items if item not in _NOT_RECORDED] if name in _PARTS else items
            for name, items in page["choices"].items()
        }
        in_page = ("pinned", "measure", "kind", "operation", "user", "text", "maintenance")
        state = page["state"] | {name: shown[name] for name in in_page} | {"manifest": ""}
        state |= {name: choices[name][0] for name in _PARTS if state[name] not in choices[name]}
        return {
            "page": {
                **page,
                "facts": [*page["facts"], f"recorded {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"],
                "late": "",
                "choices": {**choices, "formats": []},
                "state": state,
                "counts": {name: count for name, count in page["counts"].items() if name in ("branches", "health")},
            },
            "a": str(shown["a"] if shown["pinned"] else self._state.before_b),
            "b": str(b),
            "window": [bisect_left(ascending, window[0]), max(1, bisect_right(ascending, window[1])) - 1],
            "maintenance": MAINTENANCE_KINDS,
        }

    def _of_table(self, choices: Mapping[str, Sequence[str]]) -> dict[str, object]:
        """Return the views that do not depend on a version."""
        state = self._state
        contents: dict[str, object] = {"branches": self._content("branches")}
        for state.file_view in choices["file_view"]:
            contents |= {f"files {state.file_view}": self._content("files")} if state.file_view != "list" else {}
        for state.health in choices["health"]:
            contents |= {f"health {state.health}": self._content("health")} if state.health != "health" else {}
        state.file_view, state.health = "list", "health"
        return contents

    def _of_version(self, version: int) -> dict[str, object]:
        """Return the views of a version, and its comparison with the version before."""
        self._state.b = version
        pair = self._of_pair(self._state.before_b, version)
        return {
            f"commit {version}": self._content("commit"),
            f"data {version}": self._content("data"),
            f"files list {version}": self._content("files"),
            f"health health {version}": self._content("health"),
            **pair,
        }

    def _of_pair(self, a: int | None, b: int) -> dict[str, object]:
        """Return the views that compare two versions, and the entries of manifests that no content has yet."""
        state = self._state
        state.b, state.a = b, a
        listed, result = self._read("manifests")
        contents: dict[str, object] = {f"manifests {a} {b}": listed, f"rows {a} {b}": self._content("rows")}
        for state.compared in [part for part in COMPARED if part not in _NOT_RECORDED]:
            contents[f"compare {a} {b} {state.compared}"] = self._content("compare")
        contents[f"counts {a} {b}"] = self._traits()["page"]["counts"]
        paths = [] if result is None else [path for _, path in result.choices if path not in self._manifests]
        for state.manifest in paths[:_MANIFESTS]:
            self._manifests.add(state.manifest)
            contents[f"entries {state.manifest}"] = self._content("entries")
        return contents

    def _content(self, place: str) -> dict[str, Any]:
        return self._read(place)[0]

    def _read(self, place: str) -> tuple[dict[str, Any], ViewResult | None]:
        """Return the content of a place in the present state, with the first rows of its grid, and the result."""
        view = self._views.read(place)
        content, result = view.content, view.result
        if result is None:
            return content, None
        content |= {"isAnnouncement": False, "isLive": False, "columns": []}
        if content["headline"]:
            content["headline"] |= {"canCount": False}
        if result.grid is not None and content["grid"]:
            grid, ranks = content["grid"], ranks_of(result.grid, ROWS)
            count = min(grid["count"], ROWS)
            of_all = result.grid.sample or f"{grid['total']:,} {grid['noun']}"
            is_part = count < grid["total"] or result.grid.sample
            more = {"sample": f"Recorded: the first {count:,} of {of_all}."} if is_part else {}
            content["grid"] = {
                **grid,
                "count": count,
                "ranks": ranks,
                "isOrdered": False,
                "isBrushed": False,
                "opens": "",
                **more,
            }
        return content, result

    def _note(self, listed: int, versions: Sequence[int], pairs: Sequence[tuple[int, int]]) -> str:
        """Return sentences on what was recorded."""
        of_all = pluralize(len(self._state.versions), "commit")
        others = f", and {pluralize(len(pairs), 'other pair')}" if pairs else ""
        opening = sanitize(open_expression(self._table.path, self._table.current.branch))
        return (
            f"Recorded: {listed:,} of {of_all}; the views of {pluralize(len(versions), 'version')}, the newest first, "
            f"each compared with the version before it{others}; at most {ROWS} rows of a table. All else, such as "
            f"blame, bisection, conditions and verified files, is in the explorer itself: explore({opening})."
        )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _details(text: str | None) -> str:
    """Return the details of a commit, as the page shows them, in one text to search."""
    parts = [part for part in stored_details(text) if isinstance(part, Pairs)]
    return sanitize(" ".join(f"{name} {value}" for part in parts for name, value in part.rows))[:_LONGEST_DETAILS]


def _pairs(versions: Sequence[int], pinned: int | None, known: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs A and B of versions that are not neighbors: with a pinned A, with the newest B, then all others."""
    neighbors = set(pairwise(known))
    descending = sorted(versions, reverse=True)
    pairs = [] if pinned is None else [(pinned, b) for b in descending if b != pinned]
    pairs += [(a, b) for b in descending for a in descending if a < b]
    yield from (pair for pair in dict.fromkeys(pairs) if pair not in neighbors)
