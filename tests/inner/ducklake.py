"""The names of inner modules of `formats/ducklake` that tests use."""

from snapshot_explorer.formats.ducklake.files import values
from snapshot_explorer.formats.ducklake.files.values import LakeField
from snapshot_explorer.formats.ducklake.metadata import databases
from snapshot_explorer.formats.ducklake.metadata.paths import data_path
