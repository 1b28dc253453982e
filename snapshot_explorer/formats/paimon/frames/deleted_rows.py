"""Counts of the rows that deletion vectors remove before and after commits, from index manifests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.paimon.metadata.contents import Changes, read_index_manifests
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.manifests import DELETE, INDEX_ENTRIES
from snapshot_explorer.formats.paimon.metadata.schema import Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_ENABLED = ("deletion-vectors.enabled", "deletion-vectors.modifiable")
_FILE = ("partition", "bucket")
"""The columns of ENTRIES and INDEX_ENTRIES that identify a data file together with its name."""
FILE_COLUMNS = (*_FILE, "file_name")
"""The columns of ENTRIES that `row_counts` needs in addition to `kind` and `rows`."""
_UNKNOWN = -1

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStates:
    """The INDEX_ENTRIES before and after each of several commits; None if unknown."""

    before: Sequence[pa.Table | None]
    after: Sequence[pa.Table | None]
    replaced: Sequence[bool]
    """Whether they may differ: false where the commit kept the index manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRowCounts:
    """Rows that a commit added and removed, and all rows after it; rows that deletion vectors remove are excluded."""

    added: int | None
    """Rows in the added files, and rows of other files that are no longer deleted."""
    removed: int | None
    """Rows in the removed files, and rows of other files that were deleted."""
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vectors:
    files: Codes
    locations: Codes
    """A number for the location of the vector: equal numbers are the same vector."""
    rows: Codes
    """The number of rows it deletes; _UNKNOWN where not recorded."""


_NONE = _Vectors(files=np.zeros(0, np.int64), locations=np.zeros(0, np.int64), rows=np.zeros(0, np.int64))


def read_index_states(
    storage: Storage, history: PaimonHistory, schemas: Schemas, snapshots: Sequence[PaimonSnapshot]
) -> IndexStates | None:
    """Return the index manifests before and after commits; None if they cannot contain deletion vectors.

    Reads nothing if no snapshot names an index manifest, and only their schemas, which are cached, if these do not
    allow deletion vectors, as in a table with dynamic buckets. Otherwise reads the snapshots before those given (one
    for a run without gaps), and each index manifest once, all concurrently.

    Each commit carries the index manifest over: if a version has no index manifest, no earlier version has one.

    Source: paimon IndexManifestFileHandler.write.
    """
    indexed = [snapshot for snapshot in snapshots if snapshot.index_manifest is not None]
    if not indexed or not might_have_option(schemas, indexed, _ENABLED):
        return None
    by_version = {snapshot.id: snapshot for snapshot in snapshots}
    earlier = [item.id - 1 for item in indexed if item.id > 1 and item.id - 1 not in by_version]
    try:
        by_version |= history.present(earlier) if earlier else {}
    except CorruptTableError as error:
        storage.warn_once(log, "%s Which rows the commit after it deleted is unknown.", error)
    names = {item.index_manifest: item.path for item in by_version.values() if item.index_manifest}
    index_manifests = read_index_manifests(storage, names)
    empty = INDEX_ENTRIES.empty_table()
    before: list[pa.Table | None] = []
    after: list[pa.Table | None] = []
    replaced: list[bool] = []
    for element in snapshots:
        previous = by_version.get(element.id - 1)
        replaced.append(element.index_manifest != (previous and previous.index_manifest))
        after.append(index_manifests[element.index_manifest] if element.index_manifest else empty)
        if (
            element.id == 1
            or element.index_manifest is None
            or (previous is not None and previous.index_manifest is None)
        ):
            before.append(empty)
        else:
            before.append(index_manifests[previous.index_manifest] if previous and previous.index_manifest else None)
    return IndexStates(before=before, after=after, replaced=replaced)


def might_have_option(schemas: Schemas, snapshots: Sequence[PaimonSnapshot], options: Sequence[str]) -> bool:
    """Return whether one of these options is true in a schema of these versions; true for an unreadable schema."""
    try:
        used = schemas.by_id({snapshot.schema_id for snapshot in snapshots}).values()
    except (CorruptTableError, UnsupportedFeatureError):
        return True
    return any(parse_flag(schema.options, name) for schema in used for name in options)


def row_counts(states: IndexStates, changes: Changes, totals: Sequence[int | None]) -> list[VersionRowCounts]:
    """Return the rows that each commit added and removed, and all rows after it.

    Args:
        states: The index manifests before and after each commit.
        changes: The files that each commit changed, with `kind`, `rows` and FILE_COLUMNS.
        totals: The rows in all live files after each commit, deleted ones included.
    """
    vectors, files = _number_vectors(states, changes.entries)
    rows = changes.entries.column("rows").to_numpy()
    is_removed = changes.entries.column("kind").to_numpy() == DELETE
    order = np.argsort(changes.commits, kind="stable")
    bounds = np.searchsorted(changes.commits[order], np.arange(len(totals) + 1))
    counts = []
    pairs = zip(states.before, states.after, states.replaced, totals, strict=True)
    for position, (before, after, replaced, total) in enumerate(pairs):
        own_rows = order[bounds[position] : bounds[position + 1]]
        old, new = (None if state is None else vectors[id(state)] for state in (before, after))
        added, removed, touched = own_rows[~is_removed[own_rows]], own_rows[is_removed[own_rows]], files[own_rows]
        restored_counts, deleted_counts = _restored_and_deleted(old, new, touched) if replaced else (0, 0)
        counts.append(
            VersionRowCounts(
                added=_sum(_present(rows[added], files[added], new), restored_counts),
                removed=_sum(_present(rows[removed], files[removed], old), deleted_counts),
                total=_less(total, new),
            )
        )
    return counts


def _number_vectors(states: IndexStates, entries: pa.Table) -> tuple[dict[int, _Vectors], Codes]:
    """Return the vectors of each state by its `id`, and the number of each entry's file; -1 without a vector."""
    tables = {
        id(item): item.filter(pc.is_valid(item["data_file"]))
        for item in (*states.before, *states.after)
        if item is not None
    }
    every = pa.concat_tables(tables.values()) if tables else INDEX_ENTRIES.empty_table()
    keys = _keys(every, "data_file")
    known = pc.unique(keys)
    files = pc.index_in(keys, value_set=known).to_numpy().astype(np.int64)
    stored = [pc.fill_null(single_chunk(every[name]).cast(pa.string()), "") for name in ("file_name", "offset")]
    indices = pc.binary_join_element_wise(*stored, "/").dictionary_encode().indices.to_numpy().astype(np.int64)
    rows = pc.fill_null(single_chunk(every["cardinality"]), _UNKNOWN).to_numpy()
    result, begin = {}, 0
    for name, table in tables.items():
        part = slice(begin, begin + len(table))
        result[name] = _Vectors(files=files[part], locations=indices[part], rows=rows[part])
        begin += len(table)
    of_entries = pc.fill_null(pc.index_in(_keys(entries, "file_name"), value_set=known), _UNKNOWN)
    return result, of_entries.to_numpy().astype(np.int64)


def _keys(table: pa.Table, name: str) -> pa.Array:
    parts = [single_chunk(table[column]) for column in (*_FILE, name)]
    texts = [part.cast(pa.string()) if pa.types.is_integer(part.type) else part for part in parts]
    return pc.binary_join_element_wise(*(text.cast(pa.binary()) for text in texts), b"/")


def _present(rows: Codes, files: Codes, vectors: _Vectors | None) -> Codes:
    """Return the number of live rows of files, without rows that vectors remove; _UNKNOWN if unknown."""
    if vectors is None:
        return np.full(len(rows), _UNKNOWN)
    order = np.argsort(vectors.files, kind="stable")
    indices = np.searchsorted(vectors.files[order], files)
    has = np.isin(files, vectors.files)
    deleted = np.zeros(len(rows), np.int64)
    deleted[has] = vectors.rows[order][indices[has]]
    # More deleted rows than rows is a contradiction: the count is unknown.
    return np.where((deleted == _UNKNOWN) | (deleted > rows), _UNKNOWN, rows - deleted)


def _restored_and_deleted(old: _Vectors | None, new: _Vectors | None, touched: Codes) -> tuple[int | None, int | None]:
    """Return the numbers of restored and deleted rows in files that a commit neither added nor removed.

    Writers only add rows to the vectors of a kept file: a file with a vector has no restored rows, whether or not the
    number of its deleted rows is recorded.

    Source: paimon BucketedDvMaintainer.notifyNewDeletion, mergeNewDeletion.
    """
    if new is None:
        return None, None
    if old is None:
        return 0, (None if np.setdiff1d(new.files, touched).size else 0)
    was, now = _replaced_vectors(old, new, touched), _replaced_vectors(new, old, touched)
    back: list[int | None] = [0]
    lost: list[int | None] = [0]
    for file in was.keys() | now.keys():
        rows, new_rows = was.get(file, 0), now.get(file, 0)
        known = _UNKNOWN not in (rows, new_rows)
        # A file that no longer has a vector has no deleted rows.
        back.append(max(rows - new_rows, 0) if known else 0 if file in now else None)
        lost.append(max(new_rows - rows, 0) if known else None if file in now else 0)
    return _total(back), _total(lost)


def _replaced_vectors(vectors: _Vectors, others: _Vectors, touched: Codes) -> dict[int, int]:
    """Return the rows of vectors that are not among the others, by the file's number, without touched files."""
    # A complex number is a pair that numpy compares.
    stored, known = (item.files + 1j * item.locations for item in (vectors, others))
    chosen = ~np.isin(vectors.files, touched) & ~np.isin(stored, known)
    return dict(zip(vectors.files[chosen].tolist(), vectors.rows[chosen].tolist(), strict=True))


def _total(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(number or 0 for number in numbers)


def _sum(rows: Codes, more: int | None) -> int | None:
    return None if more is None or (rows == _UNKNOWN).any() else int(rows.sum()) + more


def _less(total: int | None, vectors: _Vectors | None) -> int | None:
    if total is None or vectors is None or (vectors.rows == _UNKNOWN).any():
        return None
    left = total - int(vectors.rows.sum())
    return left if left >= 0 else None
