"""The names of inner modules of `formats/hudi` that tests use."""

from snapshot_explorer.formats.hudi.files.columns import conform
from snapshot_explorer.formats.hudi.metadata import log_format
from snapshot_explorer.formats.hudi.metadata.archive import Archive
from snapshot_explorer.formats.hudi.metadata.commits import read_commits, written_files
from snapshot_explorer.formats.hudi.metadata.log_format import MAGIC, blocks
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig, parse_properties
from snapshot_explorer.formats.hudi.metadata.schema import parse_fields as schema_parse_fields
from snapshot_explorer.formats.hudi.metadata.timeline import timeline_of
from snapshot_explorer.formats.hudi.metadata.types import HudiType, arrow_type, type_text
from snapshot_explorer.formats.hudi.metadata.types import parse_fields as types_parse_fields
