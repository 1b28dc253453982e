"""The names of inner modules of `analysis` that tests use."""

from snapshot_explorer.analysis.compare.files import compare_files, difference_proof, files_frame
from snapshot_explorer.analysis.compare.schemas import compare_properties, compare_schemas
from snapshot_explorer.analysis.diff.changed_splits import differing_splits
from snapshot_explorer.analysis.diff.spilled_rows import SplitRows
from snapshot_explorer.analysis.health.groups import groups_of, levels_frame, partitions_frame
from snapshot_explorer.analysis.health.over_time import medians, over_frame
from snapshot_explorer.analysis.health.symptoms import Symptom
from snapshot_explorer.analysis.profile.anomalies import jumps
from snapshot_explorer.analysis.repair.spark_sql import literal, qualified_name, spark_identifier, text_literal
