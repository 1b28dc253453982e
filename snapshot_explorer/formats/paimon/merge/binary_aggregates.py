"""Aggregate functions over serialized sets: roaring bitmaps, and sketches of Apache DataSketches."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.errors import MissingDependencyError, UnsupportedFeatureError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.merge import bitmaps, bitmaps_64
from snapshot_explorer.formats.paimon.merge.aggregates import Fold

_Parsed = TypeVar("_Parsed")

_PREAMBLE_BITS = 0x3F
_EMPTY, _SINGLE = 0x04, 0x20
"""Flags of a compact theta sketch."""
_SERIAL_VERSION, _COMPACT_FAMILY = 3, 3
_EMPTY_THETA = bytes.fromhex("01030300001e0000")
_WHOLE = bytes.fromhex("0000803f")
"""The sampling probability 1 as a float: Java writes it where the C++ library leaves zeros."""
_FAILURES = (RuntimeError, ValueError, IndexError, OverflowError)


def bitmap(array: pa.Array) -> Fold:
    """Return `rbm32`: a union of roaring bitmaps of 32 bits.

    Source: paimon FieldRoaringBitmap32Agg.
    """
    return _bitmap(array, bitmaps.parse, bitmaps.union, bitmaps.serialised)


def bitmap_64(array: pa.Array) -> Fold:
    """Return `rbm64`: a union of roaring bitmaps of 64 bits.

    Source: paimon FieldRoaringBitmap64Agg.
    """
    return _bitmap(array, bitmaps_64.parse, bitmaps_64.union, bitmaps_64.serialised)


def _bitmap(
    array: pa.Array,
    parse: Callable[[bytes], _Parsed],
    union: Callable[[_Parsed, _Parsed], _Parsed],
    serialised: Callable[[_Parsed], bytes],
) -> Fold:
    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        left, right = (parse(side) if isinstance(side, bytes) else side for side in (value, item))
        return union(left, right)

    def result(values: Iterable[Any]) -> pa.Array:
        made = (value if value is None or isinstance(value, bytes) else serialised(value) for value in values)
        return pa.array(list(made), array.type)

    return Fold(items=array.to_pylist(), add=add, result=result)


def hll_sketch(array: pa.Array) -> Fold:
    """Return `hll_sketch`: a union of HyperLogLog sketches.

    Source: paimon FieldHllSketchAgg, HllSketchUtil.
    """
    try:
        import datasketches  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise _missing("hll_sketch") from error

    def union(value: bytes, item: bytes) -> bytes:
        newer = datasketches.hll_sketch.deserialize(item)
        made = datasketches.hll_union(newer.lg_config_k)
        made.update(newer)
        made.update(datasketches.hll_sketch.deserialize(value))
        return bytes(made.get_result(datasketches.tgt_hll_type.HLL_4).serialize_compact())

    return _sketch(array, union)


def theta_sketch(array: pa.Array) -> Fold:
    """Return `theta_sketch`: a union of theta sketches.

    Source: paimon FieldThetaSketchAgg, ThetaSketch.
    """
    try:
        import datasketches  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise _missing("theta_sketch") from error

    def union(value: bytes, item: bytes) -> bytes:
        made = datasketches.theta_union()
        for side in (value, item):
            if tuple(side[1:3]) != (_SERIAL_VERSION, _COMPACT_FAMILY):
                raise refusal(features.OTHER_THETA_SKETCHES, bytes=side[:8].hex())
            made.update(datasketches.compact_theta_sketch.deserialize(side))
        return _as_java_writes(bytes(made.get_result().serialize()))

    return _sketch(array, union)


def _as_java_writes(content: bytes) -> bytes:
    """Return a compact theta sketch of the C++ library with the three fields that Java sets differently."""
    if content[0] & _PREAMBLE_BITS > 1:
        return content[:12] + _WHOLE + content[16:]
    if content[5] & _EMPTY:
        return _EMPTY_THETA
    return content[:5] + bytes([content[5] | _SINGLE]) + content[6:]


def _sketch(array: pa.Array, union: Callable[[bytes, bytes], bytes]) -> Fold:
    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        try:
            return union(value, item)
        except UnsupportedFeatureError:
            raise
        except _FAILURES as error:
            raise CorruptBytesError(f"a sketch that cannot be read: {error}") from error

    return Fold(items=array.to_pylist(), add=add, result=lambda values: pa.array(list(values), array.type))


def _missing(function: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"The aggregate function {function} needs the package datasketches, which is not installed: "
        "pip install snapshot-explorer[sketches]. Or leave the column out."
    )
