"""The live files that a batch read includes, and the deletion vectors that it applies."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.files.deletion_vectors import Vectors
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.settings import parse_flag, parse_keyword
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_ENABLED = "deletion-vectors.enabled"
_POSTPONED = "-2"


def has_vectors(options: Mapping[str, str]) -> bool:
    """Return whether the table's newest options turn deletion vectors on."""
    return parse_flag(options, _ENABLED)


def is_included(entries: pa.Table, schema: PaimonSchema, options: Mapping[str, str], version: int) -> pa.Array:
    """Return for each live entry whether a batch read includes its file.

    A primary-key table with deletion vectors excludes level 0: the compaction of these files writes the vectors of
    older rows. So does a first-row table, whose compaction determines the first rows. Files of postponed buckets are
    included once a compaction moves them to a real bucket.

    Source: paimon docs, "Deletion Vectors", "First Row", "Postpone Bucket"; paimon DataTableBatchScan.
    """
    if not schema.primary_keys:
        return pa.array(is_shown(entries, schema, options))
    postponed = pc.less(entries.column("bucket"), 0)
    if options.get("bucket", "").strip() != _POSTPONED and pc.any(postponed).as_py():
        name = entries.filter(postponed).column("file_name")[0].as_py()
        raise refusal(features.UNDECLARED_POSTPONED_BUCKETS, version=version, postponed=_POSTPONED, file=name)
    if _needs_compaction(options) and not parse_flag(schema.options, _ENABLED):
        _check_switched(entries, version)
    return pa.array(is_shown(entries, schema, options))


def is_shown(entries: pa.Table, schema: PaimonSchema, options: Mapping[str, str]) -> npt.NDArray[np.bool_]:
    """Return `is_included` without its checks, for some of the live entries."""
    if not schema.primary_keys:
        return np.ones(len(entries), np.bool_)
    shown = np.asarray(entries.column("bucket").to_numpy() >= 0, np.bool_)
    if parse_keyword(options, "merge-engine") == "first-row" or _needs_compaction(options):
        shown &= entries.column("level").to_numpy() > 0
    return shown


def _needs_compaction(options: Mapping[str, str]) -> bool:
    return has_vectors(options) and not parse_flag(options, "deletion-vectors.merge-on-read")


def _check_switched(entries: pa.Table, version: int) -> None:
    """Raise for a version that was written before deletion vectors were enabled and needs a merge."""
    levels = pc.unique(entries.column("level")).to_pylist()
    if 0 in levels or len(levels) > 1:
        raise refusal(features.VERSIONS_BEFORE_VECTORS, version=version, option=_ENABLED)


def applied_vectors(
    vectors: Vectors,
    entries: pa.Table,
    schema: PaimonSchema,
    options: Mapping[str, str],
    version: int,
    storage: Storage,
) -> Vectors:
    """Return the deletion vectors that a read applies.

    Paimon applies them only if the newest options turn them on. Otherwise a primary-key table is merged, which has the
    same result, and an append table would return deleted rows, which raises.

    Source: paimon docs, "Deletion Vectors"; paimon SnapshotReaderImpl.
    """
    if not vectors or has_vectors(options):
        return vectors
    names = zip(
        entries.column("partition").to_pylist(),
        entries.column("bucket").to_pylist(),
        entries.column("file_name").to_pylist(),
        strict=True,
    )
    key_with_vector = next((key for key in names if key in vectors), None)
    if key_with_vector is None:
        return {}
    if not schema.primary_keys:
        where = f"the data file {key_with_vector[2]} has one, but the option {_ENABLED} is off"
        raise refusal(features.DISABLED_VECTORS, version=version, where=where)
    storage.warn_once(
        log,
        "version %d has deletion vectors, but the newest options turn them off: its files are merged instead",
        version,
    )
    return {}
