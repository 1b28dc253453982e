"""Maintenance settings of a Paimon table: file sizes, sorted runs, manifests, and the commands of engines."""

import re

from snapshot_explorer.core.records import MaintenanceSettings
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.settings import SettingsReader, parse_bytes, parse_count, parse_flag

_MB = 1024 * 1024
_TARGETS = {True: 128 * _MB, False: 256 * _MB}
"""By whether the table has a primary key."""
_MORE_TO_STOP = 3
_WORD = re.compile(r"\w+", re.ASCII)


def settings_of(schema: PaimonSchema, name: str) -> MaintenanceSettings:
    """Return the maintenance settings in the options, with Paimon's defaults.

    An option with an invalid value is ignored, with a note.

    Args:
        schema: The newest schema: its options apply to every version.
        name: The SQL name of the table, such as `shop.orders`.

    Source: paimon docs, "Configurations", "Data Distribution", "Procedures"; paimon CoreOptions (targetFileSize,
    compactionFileSize, numSortedRunStopTrigger), ManifestFileMerger.
    """
    options = SettingsReader(schema.options, noun="option", engine="Paimon")
    if parse_flag(schema.options, "write-only"):
        options.notes.append(
            "The table has the option write-only=true: its writers never compact, a job of its own has to."
        )
    keyed = bool(schema.primary_keys)
    kind = "tables with a primary key" if keyed else "tables without a primary key"
    target, target_source = options.of("target-file-size", _TARGETS[keyed], parse_bytes, f"Paimon's default for {kind}")
    ratio, ratio_source = options.of("compaction.small-file-ratio", 0.7, _share)
    deleted, deleted_source = options.of("compaction.delete-ratio-threshold", 0.2, _share)
    manifests, manifests_source = options.of("manifest.merge-min-count", 30, parse_count)
    manifest_bytes, _ = options.of("manifest.target-file-size", 8 * _MB, parse_bytes)
    trigger, _ = options.of("num-sorted-run.compaction-trigger", 5, parse_count)
    stop, _ = options.of("num-sorted-run.stop-trigger", trigger + _MORE_TO_STOP, parse_count)
    strategy = ", compact_strategy => 'full'" if keyed else ""
    return MaintenanceSettings(
        target_bytes=target,
        target_source=target_source,
        small_bytes=max(1, int(target * ratio)),
        small_source=f"{ratio:g} of the target: {ratio_source}",
        deleted_ratio=deleted,
        deleted_source=deleted_source,
        runs_trigger=trigger if keyed else None,
        runs_stop=max(trigger, stop) if keyed else None,
        metadata_limit=manifests,
        metadata_source=manifests_source,
        metadata_bytes=manifest_bytes,
        compact=f"CALL sys.compact(table => '{name}'{strategy})",
        metadata_command=f"CALL sys.compact_manifest(table => '{name}')",
        repartition_advice="Choose coarser partitions, or fewer buckets: "
        f"CALL sys.rescale(table => '{name}', bucket_num => N)",
        notes=tuple(options.notes),
    )


_BUCKETS = {"-1": ("unaware buckets", "dynamic buckets"), "-2": ("postponed buckets", "postponed buckets")}
"""By the option bucket, and whether the table has a primary key."""
_FLAGS = {
    "deletion-vectors.enabled": "deletion vectors",
    "row-tracking.enabled": "row tracking",
    "data-evolution.enabled": "data evolution",
}


def features_in_use(schema: PaimonSchema) -> list[str]:
    """Return how a table stores its rows: file format, merge engine, changelog producer, buckets and features.

    Source: paimon docs, "Configurations", "Data Distribution"; paimon CoreOptions.
    """
    options = {name: value.strip().lower() for name, value in schema.options.items()}
    keyed = bool(schema.primary_keys)
    bucket = options.get("bucket", "-1")
    buckets = _BUCKETS[bucket][keyed] if bucket in _BUCKETS else f"{bucket} bucket{'' if bucket == '1' else 's'}"
    features = [f"{options.get('file.format', 'parquet')} files", buckets]
    if keyed:
        features.append(f"merge engine {options.get('merge-engine', 'deduplicate')}")
        features.append(f"changelog producer {options.get('changelog-producer', 'none')}")
    return [*features, *(word for name, word in _FLAGS.items() if options.get(name) == "true")]


def sql_name(root: str, branch: str | None) -> str:
    """Return the SQL name of a table, from its path `.../shop.db/orders`. Without `.db` its database is DATABASE."""
    parts = [part for part in root.replace("\\", "/").rstrip("/").split("/") if part]
    table = parts[-1] if parts else "TABLE"
    database = parts[-2].removesuffix(".db") if len(parts) > 1 and parts[-2].endswith(".db") else ""
    full = f"{table}$branch_{branch}" if branch else table
    return f"{_quote(database) if database else 'DATABASE'}.{_quote(full)}"


def _quote(word: str) -> str:
    return word if _WORD.fullmatch(word) else "`{}`".format(word.replace("`", "``").replace("'", "\\'"))


def _share(text: str) -> float | None:
    try:
        result = float(text)
    except ValueError:
        return None
    return result if 0 < result <= 1 else None
