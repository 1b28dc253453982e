"""Merging rows of equal key: what a deduplicating primary-key table shows of overlapping files.

Everything works on columns: rows of one key are found by sorting numbers that stand for keys, and only keys with
several rows are looked at more closely.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]

RETRACTS = (1, 3)
"""Row kinds -U and -D."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How rows of one key are merged."""

    keys: tuple[str, ...]
    """The columns of the key inside a bucket."""
    sequence_fields: tuple[str, ...] = ()
    """Columns that order the rows of a key before their sequence numbers do."""
    descending: bool = False
    """Whether the least value of a sequence field is the newest. Nulls are the oldest either way."""
    ignore_delete: bool = False
    """Whether rows of kind -U and -D are passed over."""
    lookup: bool = False
    """Whether, of a key's rows above level 0, only that of the lowest level counts."""


def deduplicate(
    rows: pa.Table,
    rules: Rules,
    *,
    sequence: Codes,
    kinds: npt.NDArray[np.int8],
    levels: npt.NDArray[np.int32],
) -> pa.Array:
    """Return which rows are left after merging, as ascending row numbers.

    The newest row of each key is left, unless it is a retract. All rows are in memory at once.

    Args:
        rows: At least the key columns and the sequence fields, in the read schema.
        rules: How to merge.
        sequence: The `_SEQUENCE_NUMBER` of each row.
        kinds: The `_VALUE_KIND` of each row.
        levels: The level of each row's file.

    Source: paimon DeduplicateMergeFunction, LookupMergeFunction, SortMergeReader.
    """
    adds = ~np.isin(kinds, RETRACTS)
    places = np.flatnonzero(adds) if rules.ignore_delete and not rules.lookup else np.arange(rows.num_rows)
    codes = key_codes(rows, rules.keys)[places]
    by_key = np.argsort(codes, kind="stable")  # files are sorted by key, and this sort gains from sorted runs
    order, starts = places[by_key], _group_starts(codes[by_key])
    sizes = np.diff(np.append(starts, len(order)))
    alone = order[starts[sizes == 1]]
    crowded = order[np.repeat(sizes > 1, sizes)]
    groups = np.repeat(np.arange(int(np.count_nonzero(sizes > 1))), sizes[sizes > 1])
    if rules.lookup:
        crowded, groups = _lowest_levels(crowded, groups, levels[crowded])
    if rules.ignore_delete:
        crowded, groups = crowded[adds[crowded]], groups[adds[crowded]]
    newest = _newest(rows, rules, crowded, groups, (sequence, adds))
    left = np.concatenate([alone, newest])
    return pa.array(np.sort(left[adds[left]]))


def _group_starts(codes: Codes) -> Codes:
    """Return where each run of equal codes begins."""
    if not len(codes):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))


def _lowest_levels(places: Codes, groups: Codes, levels: npt.NDArray[np.int32]) -> tuple[Codes, Codes]:
    """Return the rows of level 0 and, of each key's others, those of the lowest level.

    A file above level 0 was merged with all below it when a table with lookup wrote it, so that it holds what the
    lower ones had.
    """
    upper = np.where(levels > 0, levels, np.iinfo(np.int32).max)
    starts = _group_starts(groups)
    lowest = np.minimum.reduceat(upper, starts)[groups] if len(starts) else upper
    kept = (levels <= 0) | (levels == lowest)
    return places[kept], groups[kept]


def _newest(
    rows: pa.Table,
    rules: Rules,
    places: Codes,
    groups: Codes,
    own: tuple[Codes, npt.NDArray[np.bool_]],
) -> Codes:
    """Return the newest row of each group: by sequence fields, sequence number, and retracts before adds."""
    sequence, adds = own
    if not len(places):
        return places
    fields = [
        order_codes(rows.column(name).take(pa.array(places)), descending=rules.descending)
        for name in rules.sequence_fields
    ]
    order = np.lexsort((adds[places], sequence[places], *reversed(fields), groups))
    ends = np.append(_group_starts(groups[order])[1:], len(order)) - 1
    newest: Codes = places[order][ends]
    return newest


def key_codes(rows: pa.Table, keys: Sequence[str]) -> Codes:
    """Return a number for each row, equal for rows of equal key."""
    codes = np.zeros(rows.num_rows, np.int64)
    for index, name in enumerate(keys):
        column = equality_codes(rows.column(name))
        if not index:
            codes = column
            continue
        codes, column = _dense(codes), _dense(column)
        codes = codes * (int(column.max(initial=0)) + 1) + column
    return codes


def _dense(codes: Codes) -> Codes:
    """Return codes without gaps, in the same order, unless they are small already."""
    least, most = int(codes.min(initial=0)), int(codes.max(initial=0))
    if least >= 0 and most <= max(2 * len(codes), 1 << 16):
        return codes
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def equality_codes(values: pa.ChunkedArray) -> Codes:
    """Return a number for each value, equal for values that are equal to Java: -0.0 is not 0.0, NaN is NaN."""
    whole = _whole_numbers(values)
    if whole is not None and not values.null_count:
        return whole
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    # The chunks share one dictionary: the kernel makes it over all of them.
    return np.concatenate(
        [np.zeros(0, np.int64), *(np.asarray(chunk.indices).astype(np.int64) for chunk in encoded.chunks)]
    )


def order_codes(values: pa.ChunkedArray, *, descending: bool = False) -> Codes:
    """Return a number for each value, in the order of the values as Java compares them, nulls least.

    Floats are ordered by Float.compare (-0.0 before 0.0, NaN greatest), text and bytes by unsigned bytes.
    """
    whole = _whole_numbers(values)
    if whole is None:
        encoded = pc.dictionary_encode(values.combine_chunks())
        encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
        ranks = np.empty(len(encoded.dictionary), np.int64)
        ranks[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
        whole = ranks[np.asarray(encoded.indices.fill_null(0))] if len(ranks) else np.zeros(len(values), np.int64)
    dense = np.unique(whole, return_inverse=True)[1].astype(np.int64)
    ordered = -dense if descending else dense
    nulls = np.asarray(values.is_null())
    return np.where(nulls, np.int64(-len(values) - 1), ordered)


def _whole_numbers(values: pa.ChunkedArray) -> Codes | None:
    """Return values that are numbers, times or truths as integers of the same order; None for other types."""
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return np.asarray(values.cast(pa.int64()).fill_null(0)).astype(np.int64)
    if pa.types.is_temporal(kind):
        plain = values.cast(pa.int32()) if kind.bit_width == 32 else values.cast(pa.int64())  # noqa: PLR2004 - bits
        return np.asarray(plain.cast(pa.int64()).fill_null(0)).astype(np.int64)
    if pa.types.is_floating(kind):
        return _float_bits(np.asarray(values.cast(pa.float64()).fill_null(0.0)))
    return None


def _float_bits(numbers: npt.NDArray[np.float64]) -> Codes:
    """Return floats as integers in the order of Double.compare; every NaN is the same, and greatest."""
    canonical = np.where(np.isnan(numbers), np.float64(np.nan), numbers)
    bits = canonical.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
