"""The names of inner modules of `formats/ducklake` that tests use."""

from snapshot_explorer.formats.ducklake import files
from snapshot_explorer.formats.ducklake.metadata import databases
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField
from snapshot_explorer.formats.ducklake.metadata.paths import data_path
