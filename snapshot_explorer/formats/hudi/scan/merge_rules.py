"""The rules by which records of a file slice are merged, from the table's properties.

Source: hudi HoodieTableConfig.inferMergingConfigsForPreV9Table, inferMergingConfigsForV9TableCreation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig

Ordering = Literal["commit time", "event time"]
Fill = Literal["defaults", "unavailable"]
_EVENT_TIME, _COMMIT_TIME = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"
_STRATEGIES = {
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5": _EVENT_TIME,
    "ce9acb64-bde0-424c-9b91-f6ebba25356d": _COMMIT_TIME,
}
_PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"
_COMPLETION_TIMES = 8
_OPERATION = "_change_operation_type"
_UNAVAILABLE = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiMergeRules:
    """The rules by which records of a slice are merged. Picklable."""

    ordering: Ordering
    """Whether the later record wins, or the record with the greater values of the ordering columns."""
    ordering_fields: tuple[str, ...]
    fill: Fill | None = None
    """The columns of the winner that are filled from the loser: columns with their default, or with a marker."""
    unavailable: str = ""
    delete_field: str = ""
    """The column that marks deleted records; empty if there is none."""
    delete_marker: str = ""
    """The value that marks them, as text."""


@dataclass(frozen=True, slots=True)
class _Payload:
    mode: str
    partial: str = ""
    fields: tuple[str, ...] = ()
    delete_field: str = ""
    delete_marker: str = ""


_PAYLOADS: Mapping[str, _Payload] = {
    "DefaultHoodieRecordPayload": _Payload(_EVENT_TIME),
    "EventTimeAvroPayload": _Payload(_EVENT_TIME),
    "OverwriteWithLatestAvroPayload": _Payload(_COMMIT_TIME),
    "PartialUpdateAvroPayload": _Payload(_EVENT_TIME, "IGNORE_DEFAULTS"),
    "OverwriteNonDefaultsWithLatestAvroPayload": _Payload(_COMMIT_TIME, "IGNORE_DEFAULTS"),
    "AWSDmsAvroPayload": _Payload(_COMMIT_TIME, delete_field="Op", delete_marker="D"),
    "PostgresDebeziumAvroPayload": _Payload(
        _EVENT_TIME, "FILL_UNAVAILABLE", ("_event_lsn",), delete_field=_OPERATION, delete_marker="d"
    ),
    "MySqlDebeziumAvroPayload": _Payload(
        _EVENT_TIME, fields=("_event_bin_file", "_event_pos"), delete_field=_OPERATION, delete_marker="d"
    ),
}


def merge_rules(config: TableConfig) -> HudiMergeRules:
    """Return the merge rules of the table."""
    nested = next((name for name in config.ordering_fields if "." in name), None)
    if nested is not None:
        raise refusal(features.CUSTOM_MERGES, merger=f"the nested column {nested}")
    named = config.text("hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class").rpartition(".")[2]
    payload = _PAYLOADS.get(named)
    mode = _mode(config, named, payload)
    # From table version 9 on the properties contain the rules that the class of older tables implies.
    implied = payload if payload is not None and config.version <= _COMPLETION_TIMES else _Payload(mode)
    partial = config.text("hoodie.table.partial.update.mode", default=implied.partial).upper()
    if partial not in ("", "NONE", "IGNORE_DEFAULTS", "FILL_UNAVAILABLE"):
        raise refusal(features.PARTIAL_UPDATE_MODES, mode=partial)
    fills: Mapping[str, Fill] = {"IGNORE_DEFAULTS": "defaults", "FILL_UNAVAILABLE": "unavailable"}
    return HudiMergeRules(
        ordering="event time" if mode == _EVENT_TIME else "commit time",
        ordering_fields=config.ordering_fields or implied.fields,
        fill=fills.get(partial),
        unavailable=_property(config, "hoodie.payload.partial.update.unavailable.value", "partial.update.unavailable")
        or _UNAVAILABLE,
        delete_field=_property(config, "hoodie.payload.delete.field") or implied.delete_field,
        delete_marker=_property(config, "hoodie.payload.delete.marker") or implied.delete_marker,
    )


def _property(config: TableConfig, *names: str) -> str:
    prefixed = [f"hoodie.record.merge.property.{name}" for name in names]
    return config.text(*prefixed, *names)


def _mode(config: TableConfig, named: str, payload: _Payload | None) -> str:
    strategy = config.text("hoodie.record.merge.strategy.id", "hoodie.compaction.record.merger.strategy")
    mode = config.text("hoodie.record.merge.mode").upper()
    if config.version < _COMPLETION_TIMES:
        mode = ""
    if mode in (_EVENT_TIME, _COMMIT_TIME):
        return mode
    if config.version >= _COMPLETION_TIMES and strategy in _STRATEGIES and not mode:
        return _STRATEGIES[strategy]
    if payload is not None:
        return payload.mode
    if named:
        raise refusal(features.CUSTOM_MERGES, merger=named)
    if mode or (strategy and strategy not in (*_STRATEGIES, _PAYLOAD_STRATEGY)):
        raise refusal(features.CUSTOM_MERGES, merger=mode or strategy)
    if config.version < _COMPLETION_TIMES - 1:
        return _COMMIT_TIME  # OverwriteWithLatestAvroPayload was the default
    return _EVENT_TIME if config.ordering_fields else _COMMIT_TIME
