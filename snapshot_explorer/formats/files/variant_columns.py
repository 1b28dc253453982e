"""Variants in data files, shredded or not."""

import pyarrow as pa

from snapshot_explorer.arrow import variants
from snapshot_explorer.formats.features import SHREDDED_VARIANTS, refusal


def unshred_variants(values: pa.StructArray, target: pa.StructType) -> pa.Array:
    """Return variants as their value and metadata; shredded ones are assembled.

    Source: parquet-format, "Variant Binary Encoding", "Variant Shredding".
    """
    unsupported = variants.unread_type(values.type)
    if unsupported is not None:
        raise refusal(SHREDDED_VARIANTS, stored=unsupported)
    return variants.unshred(values, target)
