"""Features of table formats: declared once, refused by their declaration, and listed in README.

Each format declares its features in `FEATURES`. This module declares the features that several formats share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message, map_texts

LEAVE_OUT = Hint("", {"columns": [...]})
"""The argument that leaves columns out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature that a table may use, and whether it is supported."""

    name: str
    """A short description."""
    area: str
    """The row of README's table that lists it."""
    status: Literal["read", "refused"]
    """Whether rows that need it are read, or refused with an error that names it."""
    condition: str
    """When rows need it: an option, a metadata field or an argument."""
    since: str = "0.1.0"
    """The version of this package that reads it, or first refuses it by name."""
    keyword: str = ""
    """The option or protocol feature that enables it, if there is one."""
    note: str = ""
    """Limits of the support; empty if there are none."""
    message: str = ""
    """The message of its refusal, with fields in braces, and hints; empty for a feature that is read."""


def declare_supported(name: str, condition: str, *, area: str, keyword: str = "", note: str = "") -> Feature:
    """Declare a feature that is read."""
    return Feature(name=name, condition=condition, area=area, status="read", keyword=keyword, note=note)


def declare_refused(name: str, condition: str, *, area: str, message: str = "", keyword: str = "") -> Feature:
    """Declare a feature that is refused. Without a message, a lower layer raises its own error."""
    return Feature(name=name, condition=condition, area=area, status="refused", keyword=keyword, message=message)


def features_in(names: Mapping[str, object]) -> tuple[Feature, ...]:
    """Return the features among the names of a module, in its order."""
    return tuple(value for value in names.values() if isinstance(value, Feature))


def refusal(feature: Feature, /, **values: object) -> UnsupportedFeatureError:
    """Return the error that refuses a feature.

    Args:
        values: A value for each field of the feature's message.
    """
    return UnsupportedFeatureError(map_texts(feature.message, lambda text: text.format(**values), str))


def render_summary(features: Sequence[Feature]) -> str:
    """Return a Markdown table with one row per area: the features that are read, and those that are refused."""
    lines = ["| | read | refused by name, for now |", "|---|---|---|"]
    for area in dict.fromkeys(feature.area for feature in features):
        cells = [
            "; ".join(_brief(feature) for feature in features if feature.area == area and feature.status == status)
            for status in ("read", "refused")
        ]
        lines.append(_row([area, *cells]))
    return "\n".join(lines)


def render_listing(features: Sequence[Feature], places: Mapping[Feature, Sequence[str]]) -> str:
    """Return a Markdown table with one row per feature.

    Args:
        places: The places in the code that refuse each feature.
    """
    lines = ["| feature | since | needed by | refused in |", "|---|---|---|---|"]
    for feature in features:
        name = feature.name + (f" (`{feature.keyword}`)" if feature.keyword else "")
        checked = ", ".join(f"`{index}`" for index in places.get(feature, ()))
        lines.append(_row([name, f"{feature.status}, {feature.since}", feature.condition, checked]))
    return "\n".join(lines)


def _brief(feature: Feature) -> str:
    shown = f"`{feature.keyword}`" if feature.keyword else feature.name
    return f"{shown} ({feature.note})" if feature.note else shown


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


ENCRYPTED_FILES = declare_refused(
    "encrypted files",
    "a parquet or ORC file is encrypted",
    area="data files",
    message="The data file {path} is encrypted, which is not supported. The table's history and list of files are "
    "available.",
)
DISTANT_TIMES_IN_FILES = declare_refused(
    "timestamps in ORC files outside the years 1677 to 2262",
    "a column of nanoseconds or a nested one contains such a timestamp, or the writer's clock was not in UTC",
    area="data files",
    message=Message(
        "The data file {path} contains a timestamp outside the years 1677 to 2262, which cannot be read from "
        "{file_format}: {reason}. Leave the column out with ",
        LEAVE_OUT,
        ".",
    ),
)
UNKNOWN_ZONES_IN_FILES = declare_refused(
    "ORC files whose writer's time zone is not in the system's database",
    "an ORC file with times was written in a zone that the database lacks, no offset such as GMT+08:00",
    area="data files",
    message="The data file {path} was written in a time zone that the system's database does not have: {reason} "
    "Install the database (in many systems the package tzdata).",
)
UNKNOWN_PARQUET_TYPES = declare_refused(
    "parquet types that the installed pyarrow does not support",
    "a parquet file has a column of a logical type newer than pyarrow",
    area="data files",
    message="The data file {path} contains a type that the installed pyarrow does not support: {reason}. Upgrade "
    "pyarrow.",
)
OPTIONAL_MAP_KEYS = declare_refused(
    "parquet maps whose keys are optional",
    "the keys of a map are optional in a parquet file, as Paimon before 0.8 wrote them",
    area="data files",
    message="The data file {path} has a map whose keys are optional, as Paimon before 0.8 wrote maps to parquet. "
    "pyarrow does not read such files. Read them with Paimon's own engines, or compact the table with a newer Paimon.",
)
OTHER_STORAGES = declare_refused(
    "files on a storage other than the table's", "metadata names a file by a URL of another storage", area="storages"
)

SHARED: tuple[Feature, ...] = (
    ENCRYPTED_FILES,
    DISTANT_TIMES_IN_FILES,
    UNKNOWN_ZONES_IN_FILES,
    UNKNOWN_PARQUET_TYPES,
    OPTIONAL_MAP_KEYS,
    OTHER_STORAGES,
)
"""The features of every format."""

SHREDDED_VARIANTS = declare_refused(
    "variants shredded into types that variants do not have",
    "the type of a typed_value in a parquet file",
    area="data files",
    message="its variants are shredded into {stored}, a type that variants do not have",
)

SHREDDING: tuple[Feature, ...] = (SHREDDED_VARIANTS,)
"""The features of formats with variants."""

FILES_OF_OTHER_TYPES = declare_refused(
    "file columns with a type that cannot represent the table's type",
    "the type of a column in a data file's footer",
    area="data files",
    message="its type in the file is {stored}, which is not supported for {type}",
)

COLUMN_TYPES: tuple[Feature, ...] = (FILES_OF_OTHER_TYPES,)
"""The features of formats whose data files may have columns of other types than the table."""

CHANGE_COLUMN_CONFLICT = declare_refused(
    "row changes of a table that has a column with the name of a change column",
    "the schema has a column `rowkind`, `_change_type` or another column of row changes",
    area="changes",
    message=Message(
        "The table has its own column {column!r}, which is also a column of row changes, so its row changes are not "
        "supported. ",
        Hint("snapshot.file_changes"),
        " returns the changed files.",
    ),
)

ROW_CHANGES: tuple[Feature, ...] = (CHANGE_COLUMN_CONFLICT,)
"""The features of formats whose row changes have columns of their own."""

AVRO_CODECS = declare_refused(
    "Avro codecs other than null, deflate, snappy, zstandard, bzip2 and xz",
    "the codec of an Avro manifest or data file",
    area="metadata",
    message="A file is compressed with the Avro codec {codec!r}, which is not supported; null, deflate, snappy, "
    "zstandard, bzip2 and xz are.",
)
RECURSIVE_AVRO = declare_refused(
    "Avro schemas that refer to themselves",
    "a record of an Avro file contains itself",
    area="metadata",
    message="An Avro schema refers to itself in {word!r}, which is not supported.",
)

AVRO: tuple[Feature, ...] = (AVRO_CODECS, RECURSIVE_AVRO)
"""The features of formats with metadata in Avro."""

COLLATED_CONDITIONS = declare_refused(
    "conditions on columns with a collation",
    "a field of the schema has __COLLATIONS, and a condition reads its column",
    area="rows",
    message="The condition reads the column {column!r}, which has the collation {collation}. Conditions compare texts "
    "by their bytes, so they are not supported on it. Read the rows without a condition on this column, and filter "
    "them then, or filter them with the format's own engines.",
)
COLLATED_QUERIES = declare_refused(
    "SQL that computes with columns with a collation",
    "a field of the schema has __COLLATIONS, and a query does more with its column than return it",
    area="rows",
    message="The query reads the column {column!r} of {what}, which has the collation {collation}; DuckDB compares "
    "texts by their bytes. SELECT from one table may return the column as it is; encode({column}) anywhere stands for "
    "its bytes. Otherwise leave it out, or use the format's own engines.",
)

COLLATIONS: tuple[Feature, ...] = (COLLATED_CONDITIONS, COLLATED_QUERIES)
"""The features of formats whose texts may have a collation."""
