"""What could be freed: by removing versions, tags and branches (`Removal`), and by an expiry (`FreeingExpiry`)."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import compress
from operator import itemgetter

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.retention import Retention, retention_of
from snapshot_explorer.analysis.usage.held_files import HeldFiles, Ints, Mask
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.refs import OfBranch, RefLike, Tag, parse_ref
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.history import History
from snapshot_explorer.results import Frame, non_empty_columns

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([kmgtp]?)b?\s*", re.ASCII | re.IGNORECASE)
_RULES: tuple[Mapping[str, str], ...] = ({"keep": "0d"}, {})
"""Arguments beside `keep_last`: versions are kept for no age, in formats that have an age and a number at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The effect of removing versions, tags and branches, if the engine then deletes what nothing holds."""

    versions: tuple[int, ...]
    """The versions, ascending."""
    others: tuple[str, ...]
    """The tags and branches, such as `tag v1`."""
    freed: Frame
    """FREED: the data files that nothing else holds; empty if `freed_files` is unknown."""
    freed_files: int | None
    """None if something that may hold the files could not be read."""
    freed_bytes: int | None
    """Their size; None if that is unknown."""


def removal_of(files: HeldFiles, without: RefLike | Sequence[RefLike]) -> Removal:
    """Return what would be freed without versions, ranges `A..B`, tags (`tag:v1`) and branches (`branch:dev`)."""
    chosen = np.zeros(len(files.kinds), np.bool_)
    for ref in without if isinstance(without, Sequence) and not isinstance(without, str) else [without]:
        chosen[_numbers(files, ref)] = True
    versions = files.plain[chosen[: len(files.plain)]]
    if len(versions) and versions[-1] == files.plain[-1]:
        raise InvalidArgumentError(
            f"{files.plain[-1]} is the newest version, which is not removed. Choose older versions, tags or branches."
        )
    number_chosen, _ = files.count_holders(chosen)
    freed = (number_chosen > 0) & (number_chosen == files.holder_counts)
    rows = frames.no_rows(frames.FREED) if files.unread else _freed_rows(files, freed)
    sums = files.sums_of([freed])
    title = f"Files of {files.histories[0].source.name} that nothing else holds"
    return Removal(
        versions=tuple(versions.tolist()),
        others=tuple(compress(files.labels, chosen[len(files.plain) :])),
        freed=Frame(rows, title=title, noun="files", drawn=non_empty_columns(rows)),
        freed_files=None if files.unread else sums["files"][0].as_py(),
        freed_bytes=None if files.unread else sums["size_bytes"][0].as_py(),
    )


def _numbers(files: HeldFiles, ref: RefLike) -> Ints:
    """Return the numbers of the holders that a ref or a range names."""
    history, versions = files.histories[0].source, files.plain
    if isinstance(ref, str) and ".." in _QUOTED.sub("", ref):
        return np.flatnonzero(np.isin(versions, list(history.between(ref))))
    parsed = parse_ref(ref, tags=history.tags, branches=history.branch_names)
    if isinstance(parsed, Tag | OfBranch):
        if parsed.back or (isinstance(parsed, OfBranch) and parsed.number is not None):
            raise InvalidArgumentError(
                f"{parsed} is a version. Remove a tag or branch as a whole, or a version by its number."
            )
        label = f"{'tag' if isinstance(parsed, Tag) else 'branch'} {parsed.name}"
        if label not in files.labels:
            known = ", ".join(files.labels[:20]) or "none"
            raise SnapshotNotFoundError(f"There is no {label} beside the open branch. Tags and branches: {known}.")
        return np.array([len(versions) + files.labels.index(label)])
    version = history.resolve(parsed)
    if version not in versions:
        existing = f", from {versions[0]} to {versions[-1]}" if len(versions) else ""
        raise SnapshotNotFoundError(
            f"Version {version} holds no files by itself: it does not exist, or only a tag keeps it. "
            f"Versions: {len(versions):,}{existing}."
        )
    return np.flatnonzero(versions == version)


def _freed_rows(files: HeldFiles, freed: Mask) -> pa.Table:
    """Return FREED of files, by removal and path."""
    parts = []
    positions = files.removal_positions()
    versions = pa.array(files.histories[0].lifetimes.versions, pa.int64())
    for index, history in enumerate(files.histories):
        chosen, rows = files.origins(index, freed)
        at = positions[chosen]
        columns = {
            "what": "data",
            "path": history.lifetimes.intervals.paths(rows),
            "partition": history.lifetimes.intervals.partition(rows),
            "size_bytes": pa.array(files.size_bytes[chosen], mask=files.is_size_unknown[chosen]),
            "removed_version": versions.take(pa.array(at, mask=(at < 0) | (at == len(versions)))),
        }
        parts.append(frames.table_of(frames.FREED, columns))
    return pa.concat_tables(parts).sort_by([("removed_version", "ascending"), ("path", "ascending")])


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeingExpiry:
    """The expiry that keeps the most of the newest versions and frees at least the requested bytes."""

    needed_bytes: int
    """The requested bytes."""
    freed_bytes: int
    """The size of the files that it certainly deletes."""
    is_enough: bool
    """Whether that is at least the requested bytes; otherwise this is the strictest expiry."""
    keep_last: int
    """The number of the newest versions that the expiry keeps by number."""
    hint: Hint
    """The call of `Table.retention` with the same effect."""
    retention: Retention
    """Its versions, files and commands of engines."""


def expiry_that_frees(history: History, needed_bytes: int, versions: int) -> FreeingExpiry | None:
    """Return the expiry that keeps the most versions and frees enough, by bisection; None without versions.

    Computes some 12 retentions for 2,000 versions. A rule that the format refuses frees nothing.

    Args:
        versions: The number of versions that expiry may remove or keep.

    Raises:
        UnsupportedFeatureError: The format refuses every number of versions.
    """
    if not versions:
        return None
    now = datetime.now(UTC)
    table_format, lifetimes = history.table_format, history.lifetimes()

    def expiry(rule: Mapping[str, str], keep_last: int) -> FreeingExpiry | None:
        """Return the effect of a rule; None if the format refuses it."""
        keep, name = rule.get("keep"), history.name
        try:
            retention = retention_of(table_format, lifetimes, keep=keep, keep_last=keep_last, name=name, now=now)
        except InvalidArgumentError:
            return None
        freed = pc.sum(retention.expiry.freed["size_bytes"]).as_py() or 0
        return FreeingExpiry(
            needed_bytes=needed_bytes,
            freed_bytes=freed,
            is_enough=freed >= needed_bytes,
            keep_last=keep_last,
            hint=Hint("table.retention", {**rule, "keep_last": keep_last}),
            retention=retention,
        )

    with step("Computing retentions", total=None), table_format.storage.reading_once():
        strictest = [(result.freed_bytes, rule) for rule in _RULES if (result := expiry(rule, 1)) is not None]
        if not strictest:
            raise UnsupportedFeatureError(
                Message(
                    f"to_free is not supported for {table_format.title} tables: they expire by age alone, and it looks "
                    "for a number of versions. Compare ages with ",
                    Hint("table.retention", {"keep": "7d"}),
                    ".",
                )
            )
        _, rule = max(strictest, key=itemgetter(0))
        enough = bisect_right(
            range(1, versions + 1),
            False,  # noqa: FBT003 - a value
            key=lambda keep_last: (result := expiry(rule, keep_last)) is None or not result.is_enough,
        )
        return expiry(rule, max(1, enough))


def parse_size(value: object) -> int:
    """Return a number of bytes, from a number or text in decimal units, such as `1.5 GB`."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        return int(Decimal(match[1]) * 1000 ** ("", *"kmgtp").index(match[2].lower()))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidArgumentError(
        f"to_free must be a number of bytes, or text such as '500 MB' or '1.5 GB', got {brief_repr(value)}."
    )
