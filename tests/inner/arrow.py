"""The names of inner modules of `arrow` that tests use."""

from snapshot_explorer.arrow.bin_packing import bins, pack
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.equal_rows import equal_rows
from snapshot_explorer.arrow.equal_values import exact_keys
from snapshot_explorer.arrow.group_ids import codes_of_maps, distinct_maps
from snapshot_explorer.arrow.int96 import timestamps as int96_timestamps
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.arrow.murmur3 import murmur3
from snapshot_explorer.arrow.orc_tail import check_types, writer_zone
from snapshot_explorer.arrow.orc_tail import column_sizes as orc_column_sizes
from snapshot_explorer.arrow.orc_timestamps import as_java_reads, integers
from snapshot_explorer.arrow.orc_timestamps import timestamps as orc_timestamps_timestamps
from snapshot_explorer.arrow.parquet_batches import batches
from snapshot_explorer.arrow.positions import filter_rows, mask_of, without_deleted
from snapshot_explorer.arrow.python_values import distinct_names
from snapshot_explorer.arrow.thrift import Field, structs
from snapshot_explorer.arrow.uuids import uuid_texts
from snapshot_explorer.arrow.value_text import format_cell, sanitize, text_width, truncate, unit_of
from snapshot_explorer.arrow.variant_texts import has_variant, json_text, json_texts, with_texts
