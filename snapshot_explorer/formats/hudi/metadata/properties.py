"""`hoodie.properties`: the properties of a Hudi table, which have no history.

Source: hudi specification, "Table Properties"; hudi HoodieTableConfig.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from snapshot_explorer.core.errors import CorruptTableError, TableNotFoundError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.storage import Storage

FOLDER = ".hoodie"
"""The folder in a table that contains its metadata."""
PROPERTIES = f"{FOLDER}/hoodie.properties"
_BACKUP = f"{PROPERTIES}.backup"
PROPERTY_FILES = frozenset((PROPERTIES, _BACKUP))
_NEWEST_VERSION = 9
_NEWEST_LAYOUT = 2
_COMPLETION_TIMES = 8
"""The first table version whose timeline has completion times and whose log files are named after their own commit."""
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_NAME = re.compile(r"(?:[^\\:=\s]|\\.)*")

PartialUpdate = Literal["IGNORE_DEFAULTS", "FILL_UNAVAILABLE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """The properties of a table that determine how it is read."""

    values: Mapping[str, str]
    version: int
    layout: int
    """The timeline layout: 1 or 2."""

    def text(self, *names: str, default: str = "") -> str:
        """Return the first of these properties that is set and not empty."""
        return next((self.values[name].strip() for name in names if self.values.get(name, "").strip()), default)

    def names(self, *properties: str) -> tuple[str, ...]:
        """Return the names in the first of these properties that is set, a list with commas."""
        return tuple(part.strip() for part in self.text(*properties).split(",") if part.strip())

    def is_on(self, name: str, *, default: bool = False) -> bool:
        """Return whether a property is `true`."""
        return self.text(name, default=str(default)).lower() == "true"

    @property
    def is_merge_on_read(self) -> bool:
        """Whether updates go to log files."""
        return self.text("hoodie.table.type").upper() == "MERGE_ON_READ"

    @property
    def has_completion_times(self) -> bool:
        """Whether a log file belongs to the file slice at the completion time of its commit."""
        return self.version >= _COMPLETION_TIMES

    @property
    def names_logs_by_commit(self) -> bool:
        """Whether the name of every log file contains the commit that wrote it: since table version 8."""
        initial = self.values.get("hoodie.table.initial.version", "")
        return initial.isdigit() and int(initial) >= _COMPLETION_TIMES

    @property
    def has_meta_fields(self) -> bool:
        """Whether the columns `_hoodie_*` contain values."""
        return self.is_on("hoodie.populate.meta.fields", default=True)

    @property
    def drops_partition_columns(self) -> bool:
        """Whether files lack the partition columns."""
        return self.is_on("hoodie.datasource.write.drop.partition.columns")

    @property
    def has_utc_times(self) -> bool:
        """Whether instants are in UTC; otherwise in the local zone of each writer, which nothing records."""
        return self.text("hoodie.table.timeline.timezone").upper() == "UTC"

    @property
    def logs_changes(self) -> bool:
        """Whether commits record the changes of rows."""
        return self.is_on("hoodie.table.cdc.enabled", default=False)

    @property
    def logs_whole_rows(self) -> bool:
        """Whether recorded changes contain the rows before and after; otherwise keys, which data files must resolve."""
        mode = self.text("hoodie.table.cdc.supplemental.logging.mode", default="data_before_after")
        return mode.lower().endswith("before_after")

    @property
    def record_keys(self) -> tuple[str, ...]:
        """The columns of the record key; empty if the writer generated keys."""
        return self.names("hoodie.table.recordkey.fields")

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The partition columns. Types of a custom key generator's columns, such as `:simple`, are removed."""
        fields = self.names("hoodie.table.partition.fields")
        if self.key_generator != "CUSTOM":
            return fields
        return tuple(field.rpartition(":")[0] or field for field in fields)

    @property
    def partition_types(self) -> tuple[str, ...]:
        """For each partition column how its values become paths: SIMPLE, TIMESTAMP or another word."""
        fields = self.names("hoodie.table.partition.fields")
        generator = self.key_generator
        if generator == "CUSTOM":
            return tuple(field.rpartition(":")[2].upper() if ":" in field else "SIMPLE" for field in fields)
        return (generator,) * len(fields) if generator in ("TIMESTAMP", "OTHER") else ("SIMPLE",) * len(fields)

    @property
    def key_generator(self) -> str:
        """The key generator: SIMPLE, COMPLEX, NON_PARTITION, GLOBAL_DELETE, TIMESTAMP, CUSTOM or OTHER."""
        named = self.text("hoodie.table.keygenerator.type").upper()
        if named:
            return named.removesuffix("_AVRO")
        short = self.text("hoodie.table.keygenerator.class").rpartition(".")[2]
        return _GENERATORS.get(short.replace("Avro", ""), "OTHER" if short else "SIMPLE")

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The columns that determine which of two records with the same key is newer."""
        return self.names("hoodie.table.ordering.fields", "hoodie.table.precombine.field")


_GENERATORS = {
    "SimpleKeyGenerator": "SIMPLE",
    "ComplexKeyGenerator": "COMPLEX",
    "NonpartitionedKeyGenerator": "NON_PARTITION",
    "GlobalDeleteKeyGenerator": "GLOBAL_DELETE",
    "TimestampBasedKeyGenerator": "TIMESTAMP",
    "CustomKeyGenerator": "CUSTOM",
    "SqlKeyGenerator": "COMPLEX",
}


def has_properties(storage: Storage) -> bool:
    """Return whether a folder has the properties of a Hudi table, or their backup.

    One request. If the properties are missing, the backup and the files that are probably read next are requested
    together.
    """
    if storage.exists(PROPERTIES):
        return True
    has_backup, _ = storage.together(
        partial(storage.exists, _BACKUP),
        partial(storage.list_many, [f"{FOLDER}/timeline", f"{FOLDER}/timeline/history"]),
    )
    return has_backup


def read_config(storage: Storage) -> TableConfig:
    """Return the properties of the table. One request, or two if the file is missing or empty."""
    for path in (PROPERTIES, _BACKUP):
        content = storage.read_present([path])[0] or b""
        if content.strip() and b"hoodie." in content:
            break
    else:
        raise TableNotFoundError(
            f"{storage.root} is not a Hudi table: {PROPERTIES} is missing or empty, and so is its backup. Check the "
            "path; if the table was copied, copy its properties too."
        )
    storage.limits.check_value(PROPERTIES, len(content), len(content), "a document")
    return _config(dict(parse_properties(content.decode("utf-8", "replace"))), storage.root)


def _config(values: Mapping[str, str], root: str) -> TableConfig:
    version = _number(values, "hoodie.table.version", 0)
    layout = _number(values, "hoodie.timeline.layout.version", 1 if version < _COMPLETION_TIMES else _NEWEST_LAYOUT)
    if not 1 <= version <= _NEWEST_VERSION:
        raise refusal(features.OTHER_TABLE_VERSIONS, version=version, root=root)
    if not 1 <= layout <= _NEWEST_LAYOUT:
        raise refusal(features.OTHER_LAYOUTS, layout=layout, root=root)
    config = TableConfig(values=values, version=version, layout=layout)
    table_format = config.text("hoodie.table.format", default="native")
    if table_format.lower() != "native":
        raise refusal(features.OTHER_METADATA_FORMATS, format=table_format, root=root)
    generator = config.text("hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type")
    if generator.endswith(("HoodieTableMetadataKeyGenerator", "HOODIE_TABLE_METADATA")):
        raise refusal(features.METADATA_TABLES, root=root)
    return config


def _number(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name, "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise CorruptTableError(
            f"{PROPERTIES} has {name}={text!r}, which is not a number. It may be damaged; compare it with a copy."
        )
    return int(text)


def parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of Java properties.

    Source: java.util.Properties.load.
    """
    for line in _logical_lines(text):
        matched = _NAME.match(line)
        name = "" if matched is None else matched[0]
        rest = line[len(name) :].lstrip(" \t\f")
        value = rest[1:].lstrip(" \t\f") if rest[:1] in (":", "=") else rest
        yield _unescape(name), _unescape(value)


def _logical_lines(text: str) -> Iterator[str]:
    joined = ""
    for line in re.split(r"\r\n|\r|\n", text):
        part = line.lstrip(" \t\f")
        if not joined and (not part or part[0] in "#!"):
            continue
        if (len(part) - len(part.rstrip("\\"))) % 2:
            joined += part[:-1]
            continue
        yield joined + part
        joined = ""
    if joined:
        yield joined


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _CONTROLS.get(escape, escape)

    return _ESCAPE.sub(character, text) if "\\" in text else text
