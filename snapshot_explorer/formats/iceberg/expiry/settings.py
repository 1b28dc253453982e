"""Maintenance settings of an Iceberg table: file sizes, manifests, and the commands of engines."""

from collections.abc import Mapping
from functools import partial

from snapshot_explorer.core.records import MaintenanceSettings
from snapshot_explorer.formats.settings import SettingsReader, parse_count, parse_flag

_MB = 1024 * 1024
_SMALL_RATIO = 0.75
_number = partial(parse_count, maximum=2**62)


def settings_of(properties: Mapping[str, str], root: str) -> MaintenanceSettings:
    """Return the maintenance settings in properties, with Iceberg's defaults.

    A property with an invalid value is ignored, with a note.

    Args:
        root: The table's location, as it may be shown.

    Source: iceberg docs, "Configuration" and "Spark Procedures" (rewrite_data_files); iceberg TableProperties,
    SizeBasedFileRewritePlanner (MIN_FILE_SIZE_DEFAULT_RATIO), BinPackRewriteFilePlanner (DELETE_RATIO_THRESHOLD).
    """
    settings = SettingsReader(properties, noun="property", engine="Iceberg")
    target, target_source = settings.of("write.target-file-size-bytes", 512 * _MB, _number)
    manifests, manifests_source = settings.of("commit.manifest.min-count-to-merge", 100, _number)
    manifest_bytes, _ = settings.of("commit.manifest.target-size-bytes", 8 * _MB, _number)
    if not parse_flag(properties, "commit.manifest-merge.enabled", default=True):
        settings.notes.append("The table has commit.manifest-merge.enabled=false: its commits never merge manifests.")
    literal = name_of(root).replace("'", "''")
    return MaintenanceSettings(
        target_bytes=target,
        target_source=target_source,
        small_bytes=max(1, int(target * _SMALL_RATIO)),
        small_source=f"{_SMALL_RATIO:g} of the target, Iceberg's default for rewrite_data_files",
        deleted_ratio=0.3,
        deleted_source="Iceberg's default of delete-ratio-threshold for rewrite_data_files",
        metadata_limit=manifests,
        metadata_source=manifests_source,
        metadata_bytes=manifest_bytes,
        compact=f"CALL system.rewrite_data_files(table => '{literal}')",
        metadata_command=f"CALL system.rewrite_manifests(table => '{literal}')",
        repartition_advice="Choose coarser partitions (ALTER TABLE ... REPLACE PARTITION FIELD), and rewrite the "
        f"files: CALL system.rewrite_data_files(table => '{literal}', options => map('rewrite-all', 'true'))",
        notes=tuple(settings.notes),
    )


def advice_on_unmatched_deletes(root: str) -> str:
    """Return the command that removes deletes that apply to no data file; since Iceberg 1.7."""
    literal = name_of(root).replace("'", "''")
    options = "map('remove-dangling-deletes', 'true')"
    return f"CALL system.rewrite_data_files(table => '{literal}', options => {options})"


def name_of(root: str) -> str:
    """Return the likely SQL name of the table in a folder: warehouses store `shop.orders` in `shop/orders`."""
    *_, database, table = ["", *root.rstrip("/").split("/")]
    return f"{database.removesuffix('.db') or 'DATABASE'}.{table}"
