"""Checks for features that are not supported, before any row is read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from snapshot_explorer.arrow.vectors import MOST_ITEMS
from snapshot_explorer.formats.features import Feature, refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, type_text
from snapshot_explorer.formats.paimon.metadata.layout import format_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.settings import parse_flag

FORMATS = ("parquet", "orc", "avro", "blob")
_VECTORS = "vector store"
_SYSTEM_COLUMNS = ("_ROW_ID", "_SEQUENCE_NUMBER")
_FLAGS = {
    feature.keyword: feature
    for feature in (
        features.CHAIN_TABLES,
        features.POSTPONE_MERGE_ON_READ,
        features.CLUSTERING_OVERRIDE,
        features.SNAPSHOT_ORDERING,
    )
}
FALLBACK, PRIMARY = "scan.fallback-branch", "scan.primary-branch"
"""Options that name another branch, which reads combine with this branch."""
_BRANCHES = {FALLBACK: features.FALLBACK_BRANCH_CHANGES, PRIMARY: features.PRIMARY_BRANCH_CHANGES}
_OPTIONS = {
    features.BLOB_DESCRIPTORS.keyword: features.BLOB_DESCRIPTORS,
    features.BLOB_VIEWS.keyword: features.BLOB_VIEWS,
}
_TYPES = {"BLOB": features.BLOB_COLUMNS, "VECTOR": features.LONG_VECTORS}


def check_table(schema: PaimonSchema, options: Mapping[str, str], version: int) -> None:
    """Raise if the options or types of a table need a feature that is not supported."""
    for name, feature in _unread_options(options):
        raise refusal(feature, version=version, option=name, value=options[name])
    evolving = parse_flag(options, "data-evolution.enabled")
    if evolving and schema.primary_keys:
        raise refusal(features.EVOLUTION_WITH_KEYS, version=version)
    for field in schema.fields:
        data_type = _unread(field.type)
        if data_type and not (evolving and field.type.root == "BLOB"):
            raise refusal(_TYPES[data_type.root], version=version, column=field.name, type=type_text(data_type))


def check_single_branch(options: Mapping[str, str], version: int) -> None:
    """Raise if reads combine the table's branch with another one: then its events are not all in this branch."""
    for name, feature in _BRANCHES.items():
        if options.get(name, "").strip():
            raise refusal(feature, version=version, option=name, value=options[name])


def _unread_options(options: Mapping[str, str]) -> Iterator[tuple[str, Feature]]:
    for name, value in options.items():
        if name in _FLAGS and parse_flag(options, name):
            yield name, _FLAGS[name]
        elif name in _OPTIONS and value.strip():
            yield name, _OPTIONS[name]
        elif name.endswith(".map.storage-layout"):
            yield name, features.MAP_LAYOUTS


def _unread(data_type: PaimonDataType) -> PaimonDataType | None:
    if data_type.root == "BLOB" or (data_type.root == "VECTOR" and (data_type.length or 0) > MOST_ITEMS):
        return data_type
    return next((unread for unread in map(_unread, data_type.parts) if unread), None)


def check_write_columns(written: Sequence[str] | None, columns: Iterable[str], file_name: str, version: int) -> None:
    """Raise if a file contains only some columns of its schema: other files contain the remaining columns."""
    if written is None:
        return
    absent = [name for name in columns if name not in written and name not in _SYSTEM_COLUMNS]
    if absent:
        raise refusal(features.PARTIAL_FILES, version=version, file=file_name, column=absent[0])


def check_no_blobs(written: Sequence[str] | None, columns: Iterable[PaimonField], file_name: str, version: int) -> None:
    """Raise if a data file contains a blob column: its contents need not be the values."""
    for column in columns:
        if column.type.root == "BLOB" and (written is None or column.name in written):
            raise refusal(features.BLOBS_IN_OTHER_FILES, version=version, column=column.name, file=file_name)


def file_format(file_name: str, version: int) -> str:
    """Return the format of a data file by its extension: parquet, orc, avro or blob."""
    result = format_in_name(file_name)
    if result == _VECTORS:
        raise refusal(features.VECTOR_FILES, version=version, file=file_name)
    if result not in FORMATS:
        raise refusal(features.OTHER_FILE_FORMATS, version=version, format=result, file=file_name)
    return result


def format_in_name(file_name: str) -> str:
    """Return the format of a data file by its name, supported or not."""
    name = file_name.lower()
    if ".vector." in name:
        return _VECTORS
    return format_of(name) if "." in name else "unknown"
