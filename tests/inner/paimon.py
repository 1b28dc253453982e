"""The names of inner modules of `formats/paimon` that tests use."""

from snapshot_explorer.formats.paimon.casts.text import nearest_float32
from snapshot_explorer.formats.paimon.casts.values import NotCastableError, cast, castable
from snapshot_explorer.formats.paimon.expiry.settings import settings_of, sql_name
from snapshot_explorer.formats.paimon.fallback import ClaimedPartitions, FallbackLink, combine_plans
from snapshot_explorer.formats.paimon.files import avro_rows, blobs
from snapshot_explorer.formats.paimon.files.column_groups import side_by_side
from snapshot_explorer.formats.paimon.files.data_files import PaimonColumns, PaimonDataFile, batches
from snapshot_explorer.formats.paimon.files.deletion_vectors import (
    PaimonVector,
    positions,
    read_deleted_positions,
    vectors_of,
)
from snapshot_explorer.formats.paimon.files.evolution import evolve, mapping, same
from snapshot_explorer.formats.paimon.inspect.file_indexes import FileIndex, parse_container
from snapshot_explorer.formats.paimon.inspect.schemas import schema_of
from snapshot_explorer.formats.paimon.inspect.texts import (
    braced_texts,
    format_iso_duration,
    java_texts,
    java_type,
    map_texts,
)
from snapshot_explorer.formats.paimon.merge import aggregates
from snapshot_explorer.formats.paimon.merge.aggregates import total
from snapshot_explorer.formats.paimon.merge.bitmaps import BitmapContainer
from snapshot_explorer.formats.paimon.merge.bitmaps import parse as bitmaps_parse
from snapshot_explorer.formats.paimon.merge.bitmaps import serialize as bitmaps_serialize
from snapshot_explorer.formats.paimon.merge.bitmaps import union as bitmaps_union
from snapshot_explorer.formats.paimon.merge.bitmaps_64 import Bitmap64, Leaf
from snapshot_explorer.formats.paimon.merge.bitmaps_64 import parse as bitmaps_64_parse
from snapshot_explorer.formats.paimon.merge.bitmaps_64 import serialize as bitmaps_64_serialize
from snapshot_explorer.formats.paimon.merge.bitmaps_64 import union as bitmaps_64_union
from snapshot_explorer.formats.paimon.merge.folding import fold_column
from snapshot_explorer.formats.paimon.merge.key_codes import equality_codes, order_codes
from snapshot_explorer.formats.paimon.merge.key_groups import (
    FileSequences,
    columns_needed,
    merge,
    merge_by_files,
    takes_newest,
)
from snapshot_explorer.formats.paimon.merge.nested_aggregates import collect
from snapshot_explorer.formats.paimon.merge.rules import (
    Aggregation,
    Deduplicate,
    FirstRow,
    Function,
    PartialUpdate,
    Rules,
    SequenceGroup,
)
from snapshot_explorer.formats.paimon.merge.steps import (
    ADD,
    ADD_EARLIER,
    CLEAR,
    RETRACT,
    SET,
    SKIP,
    ColumnSteps,
    KeyGroups,
)
from snapshot_explorer.formats.paimon.metadata import binary_row, contents, manifests, record_files
from snapshot_explorer.formats.paimon.metadata.binary_row import decode
from snapshot_explorer.formats.paimon.metadata.contents import read_state
from snapshot_explorer.formats.paimon.metadata.data_types import (
    PaimonDataType,
    PaimonField,
    arrow_field,
    arrow_type,
    parse_type,
    type_text,
)
from snapshot_explorer.formats.paimon.metadata.layout import (
    Layout,
    bucket_folders,
    check_names,
    escape,
    format_of,
    index_path,
    manifest_path,
    number_of,
    parse_hint,
)
from snapshot_explorer.formats.paimon.metadata.manifests import (
    ENTRIES,
    FILE_COLUMNS,
    INDEX_ENTRIES,
    live_entries,
    read_entries,
    read_indexes,
    read_lists,
)
from snapshot_explorer.formats.paimon.metadata.partitions import partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, Schemas, parse_schema, table_schema
from snapshot_explorer.formats.paimon.metadata.snapshots import parse_snapshot, read_snapshots
from snapshot_explorer.formats.paimon.metadata.supported import check_table, file_format
from snapshot_explorer.formats.paimon.metadata.value_texts import legacy_text, sql_text
from snapshot_explorer.formats.paimon.scan import buckets, planning, read
from snapshot_explorer.formats.paimon.scan.plans import PaimonFiles
