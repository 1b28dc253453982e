"""`Orphans`: the files below a table's folder that no metadata names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_total_size
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats import TableFormat, metadata_folders, others_in
from snapshot_explorer.formats.expiry import check_age, format_duration, parse_duration
from snapshot_explorer.formats.named_files import CleanUp, NamedFiles
from snapshot_explorer.results import Frame, non_empty_columns
from snapshot_explorer.storage import Entry, Storage
from snapshot_explorer.storage.same_files import match_files

_FOLDERS_AT_ONCE = 256
"""The maximum number of folders whose entries are in memory as objects."""
STATES = ("named", "under way", "young", "unnamed")
"""Of listed files: the metadata names it, else an unfinished commit wrote it, else it is too young to judge; or none of
these: it is in `Orphans.files`."""
_LISTED = pa.schema([frames.ORPHANS.field(name) for name in ("path", "size_bytes", "modified")])


class Orphans(Shown):
    """The files below a table's folder that no version, tag or branch names. Displays itself. Deletes nothing."""

    def __init__(  # noqa: PLR0913 - the parts of the search
        self,
        rows: pa.Table,
        *,
        name: str,
        older_than: timedelta,
        examined_at: datetime,
        listed: pa.Table,
        clean_up: CleanUp,
        unread: Sequence[str],
        undecided: str | None,
        notes: Sequence[str],
    ) -> None:
        """Create a result. Use `Table.orphans` to get one.

        Args:
            listed: Every file below the table's folder: its path, size and time, and its `state`, a word of `STATES`.
            unread: Metadata that could not be read, and folders that could not be listed, a sentence each.
            undecided: A sentence on paths in the metadata that could not be compared with the listed ones, if any.
            notes: Sentences on what was not searched.
        """
        self.name = name
        self.older_than = older_than
        self.listed = listed
        self.clean_up = clean_up
        self.examined_at = examined_at
        """When the folder was listed, aware, UTC. Metadata was read afterwards."""
        self.not_read, self.undecided = tuple(unread), undecided
        self.unread = (*unread, *([undecided] if undecided else []))
        """Metadata that could not be read, folders that could not be listed, and paths that could not be compared with
        the listed ones, a sentence each. With any, no file is called an orphan."""
        self.notes = tuple(notes)
        """Sentences on what was not searched."""
        self.commands = clean_up.commands
        """Pairs of engine and its own command, which this package never runs."""
        self.files = Frame(
            rows, title=f"Files of {name} that no metadata names", noun="files", drawn=_drawn(rows), limit=None
        )
        """ORPHANS: the files that no metadata names, the largest first."""
        self.is_complete = not self.unread and not rows["is_orphan"].null_count
        """Whether every folder was listed, all metadata was read, and every file was judged."""

    def in_state(self, state: str) -> pa.Table:
        """Return the listed files in a state, of `STATES`."""
        return self.listed.filter(pc.equal(self.listed["state"], state))

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        rows = self.files.to_arrow()
        old = f" older than {format_duration(self.older_than)}" if self.older_than else ""
        if self.not_read:
            return (
                "Which files are orphaned is unknown, because not everything could be read. The metadata that could be "
                f"read does not name {pluralize(len(rows), 'file')}{old}."
            )
        if self.undecided:
            files = pluralize(len(rows), "file")
            return f"Which files are orphaned is unknown, because not all could be decided: {files}{old} may be."
        orphans = rows.filter(pc.fill_null(rows["is_orphan"], fill_value=False))
        unknown = len(rows) - len(orphans)
        rest = f" For {pluralize(unknown, 'other file')}, this is unknown." if unknown else ""
        if not len(orphans):
            return f"No file{old} is orphaned.{rest}"
        total = format_total_size(orphans["size_bytes"])
        files = pluralize(len(orphans), "file")
        is_are = "is" if len(orphans) == 1 else "are"
        return f"{files}{old} {is_are} orphaned, {total}.{rest}"


def _drawn(rows: pa.Table) -> tuple[str, ...]:
    filled = {*non_empty_columns(rows), "is_orphan"}
    return tuple(name for name in rows.column_names if name in filled)


def find_orphans(
    table_format: TableFormat, storage: Storage, *, older_than: str | timedelta, name: str, now: datetime
) -> Orphans:
    """Return the files below a table's folder that no metadata names; see `Table.orphans`."""
    age = parse_duration(older_than) if isinstance(older_than, str) else older_than
    if not isinstance(age, timedelta) or age < timedelta(0):
        raise InvalidArgumentError(
            Message(
                Hint("", {"older_than": older_than}),
                " is not a duration. Use a whole number with a unit: 0d, 36h, 3d or 2w.",
            )
        )
    cutoff = check_age(now, age)
    # In this order: a file whose commit lands in between is then named.
    search = _listed_files(storage, table_format.branches.folder)
    listed = search.files
    named, notes = _named_files(table_format, storage, listed["path"].combine_chunks())
    unread = (*search.unlisted, *named.unread, *_contradiction(listed, named))
    is_named, undecided = _is_named(storage, listed["path"].combine_chunks(), named.paths)
    is_under_way = pc.and_(pc.invert(is_named), pc.is_in(listed["path"], named.under_way))
    is_young = pc.fill_null(
        pc.greater_equal(listed["modified"], pa.scalar(cutoff, listed["modified"].type)), fill_value=False
    )
    state = pc.case_when(pc.make_struct(is_named, is_under_way, is_young), *STATES)
    listed = listed.append_column("state", state)
    unnamed = listed.filter(pc.equal(state, STATES[-1])).drop_columns(["state"])
    unnamed = unnamed.sort_by([("size_bytes", "descending"), ("path", "ascending")])
    dated = unnamed.filter(unnamed["modified"].is_valid())
    clean_up = table_format.maintenance.clean_up(dated, now)
    return Orphans(
        _orphans_frame(unnamed, clean_up, search.nested, storage.has_escapes, doubt=_doubt(unread, undecided)),
        name=name,
        older_than=age,
        examined_at=now,
        listed=listed,
        clean_up=clean_up,
        unread=unread,
        undecided=undecided,
        notes=notes,
    )


def _contradiction(listed: pa.Table, named: NamedFiles) -> Sequence[str]:
    """Return a sentence for each folder of metadata that was read, in which the storage lists no file."""
    result = []
    for folder in sorted(metadata_folders()):
        is_named, is_listed = (pc.starts_with(paths, f"{folder}/") for paths in (named.paths, listed["path"]))
        files = pc.sum(is_named).as_py()
        if files and not pc.any(is_listed).as_py():
            result.append(
                f"No file is listed in {folder}, although the metadata names {pluralize(files, 'file')} there."
            )
    return result


def _doubt(unread: Sequence[str], undecided: str | None) -> str | None:
    """Return why no file can be called an orphan; None if files can."""
    if unread:
        return "metadata that may name it could not be read"
    return "the metadata may name it by another path" if undecided else None


def _orphans_frame(
    unnamed: pa.Table,
    clean_up: CleanUp,
    nested: Sequence[str],
    has_escapes: Callable[[str], bool],
    *,
    doubt: str | None,
) -> pa.Table:
    files = iter(clean_up.files)
    folders = tuple(f"{folder}/" for folder in nested)
    rows = []
    for path, modified in zip(unnamed["path"].to_pylist(), unnamed["modified"].to_pylist(), strict=True):
        judged = next(files) if modified is not None else None
        reason = doubt
        if doubt is None and has_escapes(path):
            reason = "its name is not UTF-8, so metadata cannot be compared with it"
        elif doubt is None and modified is None:
            reason = "the storage does not report when it was written"
        elif doubt is None and folders and path.startswith(folders):
            reason = "its folder has metadata of its own: it may belong to another table"
        rows.append(
            (
                None if reason else True,
                judged and judged.kind,
                judged and judged.outcome,
                (judged and judged.because) if reason is None else reason,
            )
        )
    is_orphan, kinds, outcomes, reasons = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        **{name: unnamed[name] for name in _LISTED.names},
        "is_orphan": pa.array(is_orphan, pa.bool_()),
        "kind": pa.array(kinds, pa.string()),
        "clean_up": pa.array(outcomes, pa.string()),
        "reason": pa.array(reasons, pa.string()),
    }
    return frames.table_of(frames.ORPHANS, columns)


def _named_files(table_format: TableFormat, storage: Storage, listed: pa.Array) -> tuple[NamedFiles, Sequence[str]]:
    """Return the files that the metadata in the folder names, including other formats' metadata, and notes."""
    named = table_format.maintenance.named_files(listed)
    notes, unread, parts, under_way = [*named.notes], [*named.unread], [named.paths], [named.under_way]
    folders = {path.partition("/")[0] for path in listed.to_pylist() if "/" in path}
    for other in others_in(storage, type(table_format), folders):
        try:
            twin = other(storage).maintenance.named_files(listed)
        except SnapshotExplorerError as error:
            unread.append(Message(f"The folder also has {other.title} metadata, which could not be read: ", error))
            continue
        notes.append(f"The folder also has {other.title} metadata: what that names is not orphaned either.")
        unread += twin.unread
        parts.append(twin.paths)
        under_way.append(twin.under_way)
    paths, running = (pa.chunked_array(chunks, pa.string()).combine_chunks() for chunks in (parts, under_way))
    return replace(named, paths=paths, under_way=running, unread=tuple(unread)), notes


def _is_named(storage: Storage, paths: pa.Array, named: pa.Array) -> tuple[pa.Array, str | None]:
    """Return which files are named, and a sentence about recorded paths that could not be compared, if any.

    The checksum `.NAME.crc` that Hadoop writes beside a file counts like the file.
    """
    matched = match_files(storage, paths, named)
    known = pa.concat_arrays([named.drop_null(), paths.filter(matched.is_named)])
    own = pc.replace_substring_regex(paths, r"(^|/)\.([^/]+)\.crc$", r"\1\2")
    return pc.or_(matched.is_named, pc.is_in(own, known)), matched.note


@dataclass(slots=True)
class _Search:
    """The files that listings found below a table's folder."""

    files: pa.Table = field(default_factory=_LISTED.empty_table)
    """path, size_bytes and modified of every file."""
    nested: list[str] = field(default_factory=list)
    """Folders that may be other tables."""
    unlisted: list[str] = field(default_factory=list)
    """Folders that could not be listed, a sentence each."""


def _listed_files(storage: Storage, branch_folder: str | None) -> _Search:
    """Return the files below the root.

    One listing per folder, concurrent for up to 256 folders.

    Raises:
        SnapshotExplorerError: The root cannot be listed.
    """

    def listed(folder: str) -> list[Entry] | SnapshotExplorerError:
        try:
            return storage.list(folder)
        except SnapshotExplorerError as error:
            if not folder:
                raise
            return error

    result = _Search()
    parts = [result.files]
    waiting = [""]
    own = metadata_folders()
    with step("Listing files") as listing:
        while waiting:
            folders, waiting = waiting[-_FOLDERS_AT_ONCE:], waiting[:-_FOLDERS_AT_ONCE]
            for folder, entries in zip(folders, storage.each(listed, folders), strict=True):
                listing.advance()
                if isinstance(entries, SnapshotExplorerError):
                    result.unlisted.append(f"The folder {folder} could not be listed: {entries}")
                    continue
                start = f"{folder}/" if folder else ""
                files = [entry for entry in entries if not entry.is_folder]
                below = [entry.name for entry in entries if entry.is_folder]
                waiting += [start + name for name in below]
                first = folder.partition("/")[0]
                if folder and own & set(below) and first != branch_folder and first not in own:
                    result.nested.append(folder)
                parts.append(
                    pa.table(
                        [
                            pa.array([start + entry.name for entry in files], pa.string()),
                            pa.array([entry.size_bytes for entry in files], pa.int64()),
                            pa.array([entry.modified for entry in files], frames.UTC_MILLIS),
                        ],
                        schema=_LISTED,
                    )
                )
    result.files = pa.concat_tables(parts)
    return result
