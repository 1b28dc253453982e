"""The files that the timeline of a Hudi table names, and Hudi's clean-up of all other files.

Source: hudi HoodieRepairTool, RepairUtils.findInstantsToRepair, HoodieRollbackMetadata, MarkerBasedRollbackStrategy.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError, SnapshotExplorerError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.hudi.metadata.commits import change_data, written_files
from snapshot_explorer.formats.hudi.metadata.file_names import base_instant, log_name
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import FOLDER
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp, NamedFiles

_UNDONE = ("rollback", "restore")
_MARKERS = f"{FOLDER}/.temp/"
_HEARTBEATS = f"{FOLDER}/.heartbeat/"
_CHANGES = ".cdc"
_PARTITION = ".hoodie_partition_metadata"
_MARKED = re.compile(rf"{re.escape(FOLDER)}/\.(?:temp|heartbeat)/(\d+)", re.ASCII)
_REPAIR = "spark-submit --class org.apache.hudi.utilities.HoodieRepairTool hudi-utilities-bundle.jar"
_UNKNOWN = (
    "no instant of the timeline wrote it, so neither the cleaner nor a rollback looks for it; HoodieRepairTool does"
)
_STRAYS = (
    "Hudi's own readers can return rows of {files} that no commit names, although the name has the time of a completed "
    "commit, as happens when a table that was upgraded from version 6 is restored. Such rows are left out here."
)


def named_files(source: HudiSource, listed: pa.Array) -> NamedFiles:
    """Return the files that instants of the active and the archived timeline name.

    Files of instants that are requested or running are under way: if their writer failed, a rollback deletes them.
    """
    unread: list[str] = []
    names: set[str] = set()
    paths: list[str] = []
    completed: set[str] = set()
    try:
        paths += source.state.files.column("path").to_pylist()
        commits = source.commits(source.versions)
        paths += written_files(commits).column("path").to_pylist()
        names.update(file.path.rpartition("/")[2] for file in change_data(commits))
        names.update(_undone_files(source))
        completed.update(source.instant(version).text for version in source.versions)
        unread += map(str, source.state.unread.missing.values())
        unread += (
            [f"The archived timeline could not be read: {source.archive_problem}"] if source.archive_problem else []
        )
    except SnapshotExplorerError as error:
        unread.append(Message("The timeline could not be read: ", error))
    pending = {instant.text for instant in source.timeline.instants if instant.state != "completed"}
    undone = {instant.text for instant in source.timeline.of_action(*_UNDONE)}
    named = {path.rpartition("/")[2] for path in paths}
    under_way, strays = [], 0
    for path in listed.to_pylist():
        name = path.rpartition("/")[2]
        if _instant_of(path) in pending:
            under_way.append(path)
        elif name in names or _is_own(path) or (name.startswith(".") and _instant_of(path) in undone):
            paths.append(path)
        elif source.config.layout > 1 and (log := log_name(name)) is not None:
            strays += log.instant in completed and name not in named
    return NamedFiles(
        paths=pa.array(paths, pa.string()),
        under_way=pa.array(under_way, pa.string()),
        unread=tuple(unread),
        notes=(
            f"Of the folder {FOLDER}, with its metadata table, only markers and heartbeats were searched.",
            *([_STRAYS.format(files=pluralize(strays, "log file"))] if strays else []),
        ),
    )


def _undone_files(source: HudiSource) -> Iterator[str]:
    """Yield the names of log files in the metadata of rollbacks and restores: readers need the files they wrote."""
    undone = [instant for instant in source.timeline.of_action(*_UNDONE) if instant.state == "completed"]
    records = [source.record(instant) for instant in undone]
    for instant, record in zip(undone, records, strict=True):
        if not record:
            raise CorruptTableError(f"{instant.path} is empty, so that the files of this {instant.action} are unknown.")
    records += [
        archived.raw(source.reader.shapes, source.storage.limits)
        for (_, action), archived in source.archived.items()
        if action in _UNDONE
    ]
    waiting: list[object] = list(records)
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            name = item.rpartition("/")[2]
            if ".log." in name:
                yield name
        elif isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, Sequence) and not isinstance(item, bytes):
            waiting += item


def _is_own(path: str) -> bool:
    if path.rpartition("/")[2].startswith(_PARTITION):
        return True
    return path.startswith(f"{FOLDER}/") and not path.startswith((_MARKERS, _HEARTBEATS))


def _instant_of(path: str) -> str | None:
    """Return the instant in the name of a data file, a marker or a heartbeat."""
    marked = _MARKED.match(path)
    if marked is not None:
        return marked[1]
    name = path.rpartition("/")[2]
    base, log = base_instant(name), log_name(name.removesuffix(_CHANGES))
    return base[1] if base else log.instant if log else None


def clean_up(root: str, files: pa.Table, now: datetime) -> CleanUp:  # noqa: ARG001 - no clean-up of Hudi goes by age
    """Return the clean-up of files that belong to no instant, by Hudi's own commands."""
    return CleanUp(
        files=[_clean_up_of(path) for path in files.column("path").to_pylist()],
        rule="The cleaner deletes files of commits, and a rollback those of a failed write that is on the timeline. "
        "Files of no instant are found by HoodieRepairTool.",
        commands=(("spark-submit, dry run", f"{_REPAIR} --mode dry_run --base-path '{root}'"),),
    )


def _clean_up_of(path: str) -> FileCleanUp:
    name = path.rpartition("/")[2]
    if path.startswith((_MARKERS, _HEARTBEATS)):
        return FileCleanUp(
            kind="temporary",
            outcome="ignored",
            because="Hudi deletes it at the end of its write, and does not look for it afterwards",
        )
    unknown = "no clean-up of Hudi looks for files of other names"
    if path.startswith(f"{FOLDER}/") or name.startswith(FOLDER):
        return FileCleanUp(kind="metadata", outcome="ignored", because=unknown)
    if name.endswith(_CHANGES):
        return FileCleanUp(kind="change data", outcome="ignored", because=_UNKNOWN)
    if base_instant(name) or log_name(name):
        return FileCleanUp(kind="data", outcome="ignored", because=_UNKNOWN)
    return FileCleanUp(kind="other", outcome="ignored", because=unknown)
