"""Texts of metadata for display, without the secrets of URLs, which a table's log may contain."""

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import array
from snapshot_explorer.arrow.nesting import with_entries, with_items
from snapshot_explorer.core.url_secrets import hide_url_secrets

_SIGNS = tuple(sign.encode() for sign in "?#;&@%\\")
"""Every text with a secret has one of these. Most columns have none, which is checked first."""
_BYTES_AT_ONCE = 2**22
_SUSPICIOUS = (
    r"[?#;&]|://[^/]*@|://[^/@]*:[^@]*@|[a-zA-Z0-9]\s?:.{0,3}[^/0-9\\][^/]*@|\\u00|%(?:25)*(?:40|3[Ff]|23|3[Bb]|26)"
)
"""A pattern that every text with a secret matches."""


def without_url_secrets(rows: pa.Table, *, exact: Collection[str] = ()) -> pa.Table:
    """Return rows with the secrets of URLs hidden in texts, in lists of texts and in the values of maps.

    Structs stay as they are: they contain values of a table's rows.

    Args:
        exact: Columns that stay as they are.
    """
    for position, field in enumerate(rows.schema):
        if field.name not in exact and _has_texts(field.type):
            old = rows.column(position).chunks
            chunks = [_hide(chunk) for chunk in old]
            if any(new is not chunk for new, chunk in zip(chunks, old, strict=True)):
                rows = rows.set_column(position, field, pa.chunked_array(chunks, field.type))
    return rows


def _has_texts(dtype: pa.DataType) -> bool:
    if pa.types.is_list(dtype):
        return _is_text(dtype.value_type)
    return _is_text(dtype.item_type) if pa.types.is_map(dtype) else _is_text(dtype)


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _hide(values: pa.Array) -> pa.Array:
    """Return values with secrets hidden: the same object if there are none."""
    if pa.types.is_list(values.type):
        items = values.values
        shown = _hide(items)
        return values if shown is items else with_items(values, values.type, shown)
    if pa.types.is_map(values.type):
        items = values.items
        shown = _hide(items)
        return values if shown is items else with_entries(values, values.type, values.keys, shown)
    if not _has_sign(values):
        return values
    suspicious = pc.fill_null(pc.match_substring_regex(values, _SUSPICIOUS), False)  # noqa: FBT003 - of Arrow
    if not pc.any(suspicious).as_py():
        return values
    texts = [hide_url_secrets(text) for text in values.filter(suspicious).to_pylist()]
    return pc.replace_with_mask(values, suspicious, array(texts, values.type))


def _has_sign(values: pa.Array) -> bool:
    """Return whether a text may have a secret."""
    content = values.buffers()[2]
    if content is None or not len(values):
        return False
    offsets = np.frombuffer(values.buffers()[1], np.int64 if pa.types.is_large_string(values.type) else np.int32)
    start, end = int(offsets[values.offset]), int(offsets[values.offset + len(values)])
    parts = (content.slice(at, min(_BYTES_AT_ONCE, end - at)).to_pybytes() for at in range(start, end, _BYTES_AT_ONCE))
    return any(sign in part for part in parts for sign in _SIGNS)
