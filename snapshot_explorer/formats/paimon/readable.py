"""What a version's rows may need that is not read: found before any row, and refused by name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.metadata.schema import DataType, Field, Schema, spell

FORMATS = ("parquet", "orc", "avro", "blob")
_COMPRESSIONS = ("gz", "bz2", "deflate", "snappy", "lz4", "zst", "zstd", "lzo", "none")
_SYSTEM_COLUMNS = ("_ROW_ID", "_SEQUENCE_NUMBER")
_FLAGS = {
    "chain-table.enabled": "a chain table",
    "postpone.merge-on-read": "rows of postponed buckets",
    "pk-clustering-override": "files clustered by other columns than the key",
    "sequence.snapshot-ordering": "rows ordered by snapshot",
}
_OPTIONS = {
    "scan.fallback-branch": "partitions read from a fallback branch",
    "scan.primary-branch": "partitions read from a primary branch",
    "blob-descriptor-field": "blobs that are stored as descriptors",
    "blob-view-field": "blobs that are views of another table",
}
_TYPES = {"BLOB": "blob columns", "VECTOR": "vector columns"}


def flag(options: Mapping[str, str], name: str) -> bool:
    """Return whether a boolean option is on. A missing option is off."""
    return options.get(name, "false").strip().lower() == "true"


def check_table(schema: Schema, options: Mapping[str, str], version: int) -> None:
    """Refuse a table whose options or types ask for more than is read.

    Raises:
        UnsupportedFeatureError: The message names the option and its value, or the column and its type.
    """
    for name, meaning in _peculiarities(options):
        raise refused(version, meaning, f"the option {name}={options[name]}")
    evolving = flag(options, "data-evolution.enabled")
    if evolving and schema.primary_keys:
        raise refused(version, "data evolution of a table with a primary key", "the option data-evolution.enabled=true")
    for field in schema.fields:
        kind = _unread(field.type)
        if kind and not (evolving and field.type.root == "BLOB"):
            raise refused(version, _TYPES[kind.root], f"the column {field.name!r} of type {spell(kind)}")


def _peculiarities(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each option that asks for more, with what it asks for."""
    for name, value in options.items():
        if name in _FLAGS and flag(options, name):
            yield name, _FLAGS[name]
        elif name in _OPTIONS and value.strip():
            yield name, _OPTIONS[name]
        elif name.endswith(".map.storage-layout"):
            yield name, "maps in a layout of their own"


def _unread(kind: DataType) -> DataType | None:
    """Return the type in a type that is not read."""
    if kind.root in _TYPES:
        return kind
    parts = [part for part in (kind.key, kind.element) if part] + [field.type for field in kind.fields]
    return next((found for found in map(_unread, parts) if found), None)


def check_write_columns(written: Sequence[str] | None, columns: Iterable[str], file_name: str, version: int) -> None:
    """Refuse a file that holds only some columns of its schema: the others are in further files.

    Raises:
        UnsupportedFeatureError: The message names the file.
    """
    if written is None:
        return
    absent = [name for name in columns if name not in written and name not in _SYSTEM_COLUMNS]
    if absent:
        raise refused(
            version,
            "data evolution, which spreads a row over several files",
            f"the data file {file_name}, which is without the column {absent[0]!r}",
        )


def check_no_blobs(written: Sequence[str] | None, columns: Iterable[Field], file_name: str, version: int) -> None:
    """Refuse a data file that holds a blob column itself: what is in it need not be the values.

    Raises:
        UnsupportedFeatureError: The message names file and column.
    """
    for column in columns:
        if column.type.root == "BLOB" and (written is None or column.name in written):
            where = f"the column {column.name!r} of the data file {file_name}"
            raise refused(version, "blobs that are not in blob files", where)


def file_format(file_name: str, version: int) -> str:
    """Return the format of a data file, which its own name tells: parquet, orc, avro or blob.

    Raises:
        UnsupportedFeatureError: It is another one; the message names format and file.
    """
    words = file_name.lower().split(".")
    found = words[-1] if len(words) > 1 else ""
    if found in _COMPRESSIONS and len(words) > 2:  # noqa: PLR2004 - a name, a format and the compression
        found = words[-2]
    if found not in FORMATS or ".vector." in file_name.lower():
        kind = "vector store" if ".vector." in file_name.lower() else found or "unknown"
        raise refused(version, f"files of the format {kind}", f"the data file {file_name}")
    return found


def refused(version: int, feature: str, where: str) -> UnsupportedFeatureError:
    """Return the error that says what is not read, where it was found, and what can be done."""
    return UnsupportedFeatureError(
        f"The rows of version {version} need {feature} ({where}), which is not read yet. Its history, schema, "
        "manifests and files can be looked at; read the rows with Paimon's own engines."
    )
