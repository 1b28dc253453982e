"""The COMMITS frame of Delta versions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.records import Kind
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.delta.frames.counts import Counts, DeltaLiveFiles, counts_of
from snapshot_explorer.formats.delta.frames.logical_counts import logical_columns
from snapshot_explorer.formats.delta.frames.operations import Effect, kind_of
from snapshot_explorer.formats.delta.frames.readability import Readability
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import ADDS, CDC, REMOVES, Actions, Transaction
from snapshot_explorer.formats.delta.metadata.times import Times
from snapshot_explorer.storage import Storage

if TYPE_CHECKING:
    from snapshot_explorer.formats.delta.metadata.layout import DeltaLogFile

log = logger_of(__name__)

_COUNTS = tuple(field.name for field in fields(Counts) if field.name in frames.COMMITS.names)
BRIEF = frozenset(("version", "committed_at", "kind", "operation", "user", "added_bytes", "removed_bytes"))
"""The columns that are kept of commits whose changes were read."""
_AT_ONCE = 256
"""Commits whose actions are in memory at the same time."""
_CHEAP_FILES = 64
_CHEAP_BYTES = 8 << 20
"""Log files, and bytes, up to which a state is built to count the rows of later commits."""

_TRIES = 2
"""Attempts to read that state before its counts are skipped, in case of a wrong response."""


@dataclass(frozen=True, kw_only=True)
class _KeptCommits:
    """What is kept of commits whose changes were read."""

    files: "Mapping[int, DeltaLogFile]"
    """The commit file of each version."""
    actions: Actions
    """Their actions, without files and transactions."""
    added: pa.Table
    """The number and size of the added files of each version; likewise `removed`."""
    removed: pa.Table
    rearranging: frozenset[int]

    @cached_property
    def rows(self) -> Mapping[int, Mapping[str, object]]:
        """The columns of COMMITS in BRIEF, without the time, of the versions that remove no file of unknown size."""
        added, removed = _sizes_by_version(self.added), _sizes_by_version(self.removed)
        return {
            version: {
                "version": version,
                "kind": _kind(
                    version,
                    self.actions,
                    Counts(added_files=added.get(version, (0,))[0], removed_files=removed.get(version, (0,))[0]),
                    rearranged=version in self.rearranging,
                ),
                **_operation_columns(self.actions.commit_infos.get(version, {})),
                "added_bytes": added.get(version, (0, 0))[1],
                "removed_bytes": removed.get(version, (0, 0))[1],
                "tags": [],
            }
            for version in self.files
            if removed.get(version, (0, 0))[1] is not None
        }


class DeltaHistory:
    """Builds the COMMITS frame of a table. Thread-safe."""

    def __init__(self, storage: Storage, log: DeltaLog, times: Times) -> None:
        self._storage = storage
        self._log = log
        self._times = times
        self._readability = Readability(storage, log, self._is_cheap)
        self._kept: dict[int, _KeptCommits] = {}

    def frame(self, versions: Sequence[int]) -> pa.Table:
        """Return the COMMITS frame of some versions, in the given order.

        Reads their commit files, concurrently, and checks removed files as `Readability.of` does. Rows and bytes of
        a removed file are taken from the remove or, if it has none, from the add that it undoes. For that, and for
        `total_rows`, the state before the versions is built if that takes up to 64 log files of 8 MiB together.
        Otherwise they are null. A sum with an unknown number is null too.

        If only the checkpoint of a version is left, its row only contains whether it can be loaded.
        """
        committed = self._log.listing().commits
        rows: dict[int, dict[str, object]] = {}
        # Newest first: the files found for a version prove which files of earlier versions exist.
        for run in _runs(versions, committed):
            rows |= self._rows(run) if run[0] in committed else {run[0]: self._checkpoint_only_row(run[0])}
        return pa.Table.from_pylist([rows[version] for version in versions], frames.COMMITS)

    def brief_frame(self, versions: Sequence[int]) -> pa.Table:
        """Return COMMITS with at least the columns BRIEF. Reads only the commits that `keep_brief` did not keep."""
        committed = self._log.listing().commits
        rows, infos = [], {}
        for version in versions:
            kept = self._kept.get(version)
            if kept is not None and version in kept.rows and kept.files[version] == committed.get(version):
                rows.append(dict(kept.rows[version]))
                infos[version] = kept.actions.commit_infos.get(version, {})
        rest = self.frame([version for version in versions if version not in infos])
        for row, time in zip(rows, self._times.commit_times(list(infos), infos), strict=True):
            row["committed_at"] = time
        commits = pa.concat_tables([rest, pa.Table.from_pylist(rows, frames.COMMITS)]).combine_chunks()
        return commits.take(pc.index_in(pa.array(versions, pa.int64()), commits["version"].combine_chunks()))

    def keep_brief(self, versions: Sequence[int], actions: Actions) -> None:
        """Keep what `brief_frame` needs of commits."""
        committed = self._log.listing().commits
        files = {version: committed[version] for version in versions if version in committed}
        # If the listing cannot identify a file, it is read each time.
        files = {version: file for version, file in files.items() if None not in (file.size_bytes, file.modified)}
        kept = _KeptCommits(
            files=files,
            actions=replace(
                actions,
                adds=ADDS.empty_table(),
                removes=REMOVES.empty_table(),
                cdc=CDC.empty_table(),
                transactions={},
            ),
            added=_sizes(actions.adds),
            removed=_sizes(actions.removes),
            rearranging=_rearranging(actions),
        )
        self._kept.update(dict.fromkeys(files, kept))

    def _rows(self, versions: Sequence[int]) -> dict[int, dict[str, object]]:
        actions = self._log.actions(versions)
        times = self._times.commit_times(versions, actions.commit_infos)
        readable, live_files = self._storage.together(
            partial(self._readability.of, versions, actions), partial(self._live_files, versions, actions)
        )
        counts = counts_of(versions, actions, live_files)
        rearranging = _rearranging(actions)
        logical = logical_columns(versions, actions.commit_infos, counts, rearranging)
        return {
            version: {
                "version": version,
                "committed_at": time,
                "readable": readable[version],
                "tags": [],
                **{name: getattr(counts[version], name) for name in _COUNTS},
                **logical[version],
                **_commit_columns(version, actions, counts[version], rearranged=version in rearranging),
            }
            for version, time in zip(versions, times, strict=True)
        }

    def _checkpoint_only_row(self, version: int) -> dict[str, object]:
        self._times.commit_times([version], {})
        readable = self._readability.near(version)
        return {"version": version, "readable": readable, "kind": "other", "tags": [], "details": "{}"}

    def _live_files(self, versions: Sequence[int], actions: Actions) -> DeltaLiveFiles | None:
        """Return the live files before the versions, or after the first loadable one, if that is cheap."""
        if versions[0] == 0:
            return DeltaLiveFiles(version=-1, adds=actions.adds.slice(0, 0))
        whole = self._log.listing().loadable
        version = next((item for item in (versions[0] - 1, *versions) if item in whole), None)
        if version is None or not self._is_cheap(version):
            return None
        for _ in range(_TRIES):
            try:
                return DeltaLiveFiles(version=version, adds=self._log.state(version).adds)
            except UNREADABLE as error:  # the commits are returned without these counts
                self._storage.warn_once(log, "Counts that need the files of version %d are unknown: %s", version, error)
        return None

    def _is_cheap(self, version: int) -> bool:
        listing = self._log.listing()
        checkpoints = listing.checkpoints_between(0, version)
        start = checkpoints[-1][0].version if checkpoints else -1
        if version not in listing.loadable or version - start > _CHEAP_FILES:
            return False
        segment = self._log.segment(version)
        files = [*segment.checkpoint, *segment.commits]
        return len(files) <= _CHEAP_FILES and sum(file.size_bytes or 0 for file in files) <= _CHEAP_BYTES


def _runs(versions: Sequence[int], committed: Collection[int]) -> Iterator[Sequence[int]]:
    """Yield runs of consecutive versions, the newest first. A version without a commit is a separate run."""
    left = sorted(set(versions))
    while left:
        start = len(left) - 1
        while (
            start
            and left[start - 1] == left[start] - 1
            and len(left) - start < _AT_ONCE
            and left[start] in committed
            and left[start - 1] in committed
        ):
            start -= 1
        yield range(left[start], left[-1] + 1)
        del left[start:]


def _sizes(files: pa.Table) -> pa.Table:
    """Return version, number and size of the files of each version that has some; null if a size is unknown."""
    every = pc.ScalarAggregateOptions(skip_nulls=False)
    sums = files.group_by("version").aggregate([("path", "count"), ("size_bytes", "sum", every)])
    return sums.select(["version", "path_count", "size_bytes_sum"])


def _sizes_by_version(sums: pa.Table) -> Mapping[int, tuple[int, int | None]]:
    versions, counts, sizes = (column.to_pylist() for column in sums.columns)
    return dict(zip(versions, zip(counts, sizes, strict=True), strict=True))


def _kind(version: int, actions: Actions, counts: Counts, *, rearranged: bool) -> Kind:
    info = actions.commit_infos.get(version, {})
    parameters = info.get("operationParameters")
    effect = Effect(
        added_files=counts.added_files,
        removed_files=counts.removed_files,
        rearranged=rearranged,
        redefined=any(version in part for part in (actions.metadatas, actions.protocols, actions.domains)),
    )
    return kind_of(_text(info.get("operation")), parameters if isinstance(parameters, dict) else {}, effect)


def _operation_columns(info: Mapping[str, Any]) -> dict[str, str | None]:
    return {
        "operation": _text(info.get("operation")),
        "user": _text(info.get("userName")) or _text(info.get("userId")),
    }


def _commit_columns(version: int, actions: Actions, counts: Counts, *, rearranged: bool) -> dict[str, object]:
    info = actions.commit_infos.get(version, {})
    return {
        "kind": _kind(version, actions, counts, rearranged=rearranged),
        **_operation_columns(info),
        "identifier": _text(info.get("txnId")) or _application_commit(actions.transactions.get(version, ())),
        "details": json_text.dumps(info),
    }


def _application_commit(transactions: Sequence[Transaction]) -> str | None:
    """Return the identifier of a streaming writer's commit: its application id and its own version."""
    return f"{transactions[0].app_id}:{transactions[0].version}" if len(transactions) == 1 else None


def _rearranging(actions: Actions) -> frozenset[int]:
    """Return the versions whose file actions all leave the data unchanged."""
    file_actions = pa.concat_tables(
        [files.select(["version", "data_change"]) for files in (actions.adds, actions.removes)]
    )
    every = set(pc.unique(file_actions["version"]).to_pylist())
    changing = file_actions.filter(pc.fill_null(file_actions["data_change"], True))  # noqa: FBT003 - an absent flag is true
    return frozenset(every - set(pc.unique(changing["version"]).to_pylist()))


def _text(value: Any) -> str | None:
    """Return a value of commitInfo as text; writers store any value, so others are returned as JSON."""
    if value is None or isinstance(value, str):
        return value or None
    return json_text.dumps(value)
