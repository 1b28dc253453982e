"""Maintenance settings of a Delta table: file sizes, checkpoints, and the engine's commands."""

from collections.abc import Mapping

from snapshot_explorer.core.records import MaintenanceSettings
from snapshot_explorer.formats.settings import SettingsReader, parse_bytes, parse_count

_MB = 1024 * 1024
_TARGET = 128 * _MB
_INTERVAL = 10


def settings_of(properties: Mapping[str, str], root: str) -> MaintenanceSettings:
    """Return the settings from properties, or Delta's defaults.

    Without a target in the properties, the target of auto compaction is used, 128 MiB. With the 1 GiB up to which
    OPTIMIZE packs files, nearly every file of nearly every table would be small. A file is small below half of the
    target, as for auto compaction. A property whose value is not valid is ignored, with a note.

    Args:
        root: The table's location, as it may be shown.

    Source: delta docs, "Optimizations" and "Best practices"; delta DeltaSQLConf (autoCompact.maxFileSize,
    autoCompact.minFileSize, optimize.maxDeletedRowsRatio), DeltaConfig (checkpointInterval); databricks docs,
    "Configure Delta Lake to control data file size".
    """
    settings = SettingsReader(properties, noun="property", engine="Delta")
    target, target_source = settings.of("delta.targetFileSize", _TARGET, parse_bytes, "the target of auto compaction")
    interval, interval_source = settings.of("delta.checkpointInterval", _INTERVAL, parse_count)
    where = root.replace("`", "``")
    return MaintenanceSettings(
        target_bytes=target,
        target_source=target_source,
        small_bytes=max(1, target // 2),
        small_source="half of the target, as for auto compaction",
        deleted_ratio=0.05,
        deleted_source="Delta's default of optimize.maxDeletedRowsRatio",
        metadata_limit=interval,
        metadata_source=interval_source,
        compact=f"OPTIMIZE delta.`{where}`",
        metadata_command="Have a writer make a checkpoint: Delta on Spark does with a commit that is due, "
        "deltalake by DeltaTable(...).create_checkpoint()",
        repartition_advice="Choose coarser partitions, or none and CLUSTER BY in their place, and rewrite the table",
        notes=tuple(settings.notes),
    )
