"""The names of inner modules of `formats` that tests use."""

from snapshot_explorer.formats import skipped
from snapshot_explorer.formats.avro.container import parse_shape, read_container
from snapshot_explorer.formats.capabilities import MetadataLayout, NativeFiles
from snapshot_explorer.formats.corrupt_files import named_in_errors
from snapshot_explorer.formats.features import Feature, refusal, render_listing, render_summary
from snapshot_explorer.formats.files.orc_file import OrcFile
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.metadata_tasks import PREFETCHED, RECORDS
from snapshot_explorer.formats.row_groups import runs
from snapshot_explorer.formats.settings import parse_bytes
from snapshot_explorer.formats.statistics import with_bounds
from snapshot_explorer.formats.unread_versions import read_apart, unread_notes
