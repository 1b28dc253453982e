"""The names of inner modules of `formats/delta` that tests use."""

from snapshot_explorer.formats.delta.expiry.settings import settings_of
from snapshot_explorer.formats.delta.features import READER_FEATURES
from snapshot_explorer.formats.delta.files.calendars import Calendar, calendar_of
from snapshot_explorer.formats.delta.files.columns import Origin, conform, stored_fields
from snapshot_explorer.formats.delta.files.deletion_vectors import decode_z85, read_deleted_positions, vector_of
from snapshot_explorer.formats.delta.files.missing_files import Removals
from snapshot_explorer.formats.delta.frames import operations
from snapshot_explorer.formats.delta.frames.operations import Effect, kind_of
from snapshot_explorer.formats.delta.inspect.inspections import DETAIL, HISTORY, table_features
from snapshot_explorer.formats.delta.metadata import actions, batches, checkpoints, log
from snapshot_explorer.formats.delta.metadata.actions import metadata_of, parse_commits, protocol_of
from snapshot_explorer.formats.delta.metadata.checkpoints import NeededColumns, read_checkpoint
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, DeltaField, arrow_type, parse_type
from snapshot_explorer.formats.delta.metadata.hints import CheckpointHint, canonical, read_checksum, read_hint
from snapshot_explorer.formats.delta.metadata.layout import log_files, staged_version
from snapshot_explorer.formats.delta.metadata.locations import decode_path, decode_path_array
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.log_segment import (
    LogListing,
    earliest,
    for_version,
    list_log,
    staged_versions,
)
from snapshot_explorer.formats.delta.metadata.partitions import partition_texts, partitions_of
from snapshot_explorer.formats.delta.metadata.records import ADDS, CDC, REMOVES, DeltaState, Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.replay import (
    ReplayState,
    followed_by,
    join_states,
    keys,
    replay_state_of,
    state_of,
)
from snapshot_explorer.formats.delta.metadata.schema import arrow_schema, schema_of, table_schema
from snapshot_explorer.formats.delta.metadata.supported import check_readable
from snapshot_explorer.formats.delta.metadata.times import Clock, Times, adjust_times, clock_of
from snapshot_explorer.formats.delta.scan import planning, read, removals
from snapshot_explorer.formats.delta.scan.metadata_columns import metadata_schema
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan
from snapshot_explorer.formats.delta.scan.removals import removed_in
from snapshot_explorer.formats.delta.scan.statistics import bounds, bounds_of, parse_columns, rows_of
