"""Maintenance settings of an Iceberg table: file sizes, manifests, and the commands of engines."""

from collections.abc import Mapping

from snapshot_explorer.model import MaintenanceSettings

_MB = 1024 * 1024
_TARGET, _TARGET_PROPERTY = 512 * _MB, "write.target-file-size-bytes"
_MANIFESTS, _MANIFESTS_PROPERTY = 100, "commit.manifest.min-count-to-merge"
_MANIFEST_BYTES, _MANIFEST_BYTES_PROPERTY = 8 * _MB, "commit.manifest.target-size-bytes"
_SMALL_RATIO = 0.75
_GREATEST = 2**62


def settings_of(properties: Mapping[str, str], root: str) -> MaintenanceSettings:
    """Return the maintenance settings in properties, with Iceberg's defaults.

    A property with an invalid value is ignored, with a note.

    Args:
        root: The table's location, as it may be shown.

    Source: iceberg docs, "Configuration" and "Spark Procedures" (rewrite_data_files); iceberg TableProperties,
    SizeBasedFileRewritePlanner (MIN_FILE_SIZE_DEFAULT_RATIO), BinPackRewriteFilePlanner (DELETE_RATIO_THRESHOLD).
    """
    notes: list[str] = []
    target, target_source = _setting(properties, _TARGET_PROPERTY, _TARGET, notes)
    manifests, manifests_source = _setting(properties, _MANIFESTS_PROPERTY, _MANIFESTS, notes)
    manifest_bytes, _ = _setting(properties, _MANIFEST_BYTES_PROPERTY, _MANIFEST_BYTES, notes)
    if properties.get("commit.manifest-merge.enabled", "true").strip().lower() == "false":
        notes.append("The table has commit.manifest-merge.enabled=false: its commits never merge manifests.")
    literal = name_of(root).replace("'", "''")
    return MaintenanceSettings(
        target_bytes=target,
        target_source=target_source,
        small_bytes=max(1, int(target * _SMALL_RATIO)),
        small_source=f"{_SMALL_RATIO:g} of the target, Iceberg's default for rewrite_data_files",
        deleted_ratio=0.3,
        deleted_source="Iceberg's default of delete-ratio-threshold for rewrite_data_files",
        runs_trigger=None,
        runs_stop=None,
        metadata_limit=manifests,
        metadata_source=manifests_source,
        metadata_bytes=manifest_bytes,
        compact=f"CALL system.rewrite_data_files(table => '{literal}')",
        metadata_command=f"CALL system.rewrite_manifests(table => '{literal}')",
        repartition_advice="Choose coarser partitions (ALTER TABLE ... REPLACE PARTITION FIELD), and rewrite the "
        f"files: CALL system.rewrite_data_files(table => '{literal}', options => map('rewrite-all', 'true'))",
        notes=tuple(notes),
    )


def name_of(root: str) -> str:
    """Return the likely SQL name of the table in a folder: warehouses store `shop.orders` in `shop/orders`."""
    *_, database, table = ["", *root.rstrip("/").split("/")]
    return f"{database.removesuffix('.db') or 'DATABASE'}.{table}"


def _setting(properties: Mapping[str, str], name: str, default: int, notes: list[str]) -> tuple[int, str]:
    text = properties.get(name)
    if text is None:
        return default, f"Iceberg's default; the property {name} is not set"
    plain = text.strip()
    found = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 20 else 0  # noqa: PLR2004 - 64 bits
    if not 0 < found <= _GREATEST:
        notes.append(f"The property {name}={text[:50]!r} is not valid; its default is used.")
        return default, "Iceberg's default"
    return found, f"the table's property {name}"
