"""Merge rules: how a primary-key table merges the rows of a key, as records, parsed from the table's options."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.data_types import MAX_LENGTH, PaimonDataType, type_text
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.settings import parse_flag, parse_keyword


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An aggregate function of one column."""

    name: str
    """As in the option `fields.<c>.aggregate-function`; `primary_key` for columns of the key."""
    ignore_retract: bool = False
    distinct: bool = False
    """Whether listagg and collect include each token or element once."""
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    nested_sequence: tuple[str, ...] = ()
    """The sequence fields of the rows in an array. The later row wins a tie."""
    null_keys: str = "merge"
    """How to handle rows in an array whose key contains null: merge (null is a value), ignore or error."""
    count_limit: int | None = None
    """The maximum number of rows of an array; None for no limit."""
    time_field: str | None = None
    """The field of a map's values that contains their time; None for the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGroup:
    """Columns that are updated together, if the sequence fields of a row are not older than the current ones."""

    order: tuple[str, ...]
    fields: tuple[str, ...]
    removes: bool = False
    """Whether a -D row that is not older removes the whole record."""


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """Keeps the newest row."""


@dataclass(frozen=True, slots=True)
class FirstRow:
    """Keeps the oldest row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialUpdate:
    """Keeps the newest value of each column that is not null, or follows its sequence group."""

    groups: tuple[SequenceGroup, ...] = ()
    """The sequence groups. No column is in two of them."""
    functions: Mapping[str, Function] = field(default_factory=dict)
    """The aggregate functions of columns in groups."""
    remove_on_delete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """Aggregates the values of each column with its function."""

    functions: Mapping[str, Function]
    remove_on_delete: bool = False


Engine = Deduplicate | FirstRow | PartialUpdate | Aggregation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The merge rules of a table."""

    keys: tuple[str, ...]
    sequence_fields: tuple[str, ...] = ()
    """Columns that order the rows of a key, before their sequence numbers."""
    descending: bool = False
    """Whether the minimum of a sequence field is the newest. Nulls are always the oldest."""
    ignore_delete: bool = False
    """Whether rows of kind -U and -D are ignored."""
    lookup: bool = False
    """Whether only the row of the lowest level above 0 is merged with a key's rows of level 0."""
    engine: Engine = field(default_factory=Deduplicate)


_IGNORE_DELETE = (
    "ignore-delete",
    "first-row.ignore-delete",
    "deduplicate.ignore-delete",
    "partial-update.ignore-delete",
)
_REMOVE = "partial-update.remove-record-on-delete"
_REMOVE_BY_GROUP = "partial-update.remove-record-on-sequence-group"
_NESTED = ("ARRAY", "MAP", "MULTISET", "ROW", "VARIANT", "VECTOR")
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_ANY = ("primary_key", "last_value", "last_non_null_value", "first_value", "first_non_null_value")
_NULL_KEYS = ("merge", "ignore", "error")
_ALIASES = {"first_not_null_value": "first_non_null_value"}


def merge_rules(schema: PaimonSchema, options: Mapping[str, str], version: int) -> Rules:
    """Return the merge rules of a table.

    Source: paimon docs, "Merge Engine"; paimon PartialUpdateMergeFunction, AggregateMergeFunction.
    """
    if not schema.trimmed_primary_keys:  # pypaimon writes such tables, and no reader of Paimon reads them
        raise refusal(features.PARTITION_KEYS, version=version, keys=", ".join(map(repr, schema.primary_keys)))
    fields = _sequence_fields(schema, options, version)
    return Rules(
        keys=schema.trimmed_primary_keys,
        sequence_fields=fields,
        descending=parse_keyword(options, "sequence.field.sort-order") == "descending",
        ignore_delete=_ignores_deletes(options),
        lookup=_looks_up(options),
        engine=_engine(schema, options, version, fields),
    )


def _looks_up(options: Mapping[str, str]) -> bool:
    """Return whether a file above level 0 contains the merged rows of all lower levels.

    Source: paimon CoreOptions.needLookup.
    """
    return parse_keyword(options, "changelog-producer") == "lookup" or any(
        parse_flag(options, name) for name in ("force-lookup", "deletion-vectors.enabled")
    )


def _ignores_deletes(options: Mapping[str, str]) -> bool:
    return any(parse_flag(options, name) for name in _IGNORE_DELETE)


def _sequence_fields(schema: PaimonSchema, options: Mapping[str, str], version: int) -> tuple[str, ...]:
    fields = tuple(name.strip() for name in options.get("sequence.field", "").split(",") if name.strip())
    for name in fields:
        _check_order(name, f"the option sequence.field={name}", schema, version)
    return fields


def _check_order(name: str, where: str, schema: PaimonSchema, version: int) -> None:
    """Raise for a sequence field that does not exist or whose values have no order."""
    if name not in {field.name for field in schema.fields}:
        raise refusal(features.ABSENT_SEQUENCE_FIELDS, version=version, name=name, where=where)
    if schema.field(name).type.root in _NESTED:
        raise refusal(features.NESTED_SEQUENCE_FIELDS, version=version, where=where)


def _engine(schema: PaimonSchema, options: Mapping[str, str], version: int, sequence: tuple[str, ...]) -> Engine:
    name = parse_keyword(options, "merge-engine", "deduplicate")
    match name:
        case "deduplicate":
            return Deduplicate()
        case "first-row":
            if sequence:
                raise refusal(features.FIRST_ROW_BY_SEQUENCE, version=version)
            return FirstRow()
        case "partial-update":
            return _partial_update(schema, options, version)
        case "aggregation":
            return _aggregation(schema, options, version, sequence)
    raise refusal(features.MERGE_ENGINES, version=version, name=name)


def _partial_update(schema: PaimonSchema, options: Mapping[str, str], version: int) -> PartialUpdate:
    groups = tuple(_groups(schema, options, version))
    removing = parse_flag(options, _REMOVE)
    by_group = bool(options.get(_REMOVE_BY_GROUP, "").strip())
    if removing and (groups or _ignores_deletes(options)):
        raise refusal(features.REMOVE_WITH_GROUPS, version=version, option=_REMOVE)
    if by_group and _ignores_deletes(options):
        raise refusal(features.REMOVE_BY_GROUP, version=version, option=_REMOVE_BY_GROUP)
    functions = {}
    inside = {name for group in groups for name in group.fields}
    ordering = {name for group in groups for name in group.order}
    for column in schema.fields:
        name = options.get(f"fields.{column.name}.aggregate-function") or options.get(
            "fields.default-aggregate-function"
        )
        if not name or column.name in ordering or column.name in schema.primary_keys:
            continue
        function = _function(column.name, name, options, version)
        if column.name in inside:
            check_function(function, column.name, column.type, version)
            functions[column.name] = function
        elif function.name != "last_non_null_value":
            raise refusal(features.FUNCTIONS_OUTSIDE_GROUPS, version=version, function=name, column=column.name)
    return PartialUpdate(groups=groups, functions=functions, remove_on_delete=removing)


def _groups(schema: PaimonSchema, options: Mapping[str, str], version: int) -> Iterator[SequenceGroup]:
    """Yield the sequence groups. A column is in at most one group, key columns in none."""
    removing = {name for name in options.get(_REMOVE_BY_GROUP, "").split(",") if name}
    known = {field.name for field in schema.fields} - set(schema.primary_keys)
    ordering: set[str] = set()
    for option, value in options.items():
        if not (option.startswith("fields.") and option.endswith(".sequence-group")):
            continue
        order = tuple(option.removeprefix("fields.").removesuffix(".sequence-group").split(","))
        fields = tuple(value.split(","))
        for name in (*order, *fields):
            if name not in known:
                raise refusal(features.GROUP_COLUMNS, version=version, column=name, option=option)
            known.discard(name)
        for name in order:
            _check_order(name, f"the option {option}", schema, version)
        ordering.update(order)
        yield SequenceGroup(order=order, fields=fields, removes=bool(removing.intersection(order)))
    if not removing <= ordering:
        name = min(removing - ordering)
        raise refusal(features.INVALID_REMOVE_FIELDS, version=version, name=name, option=_REMOVE_BY_GROUP)


def _aggregation(
    schema: PaimonSchema, options: Mapping[str, str], version: int, sequence: tuple[str, ...]
) -> Aggregation:
    functions = {}
    removing = parse_flag(options, "aggregation.remove-record-on-delete")
    for column in schema.fields:
        if column.name in sequence:
            function = Function(name="last_value")
        elif column.name in schema.primary_keys:
            function = Function(name="primary_key")
        else:
            name = options.get(f"fields.{column.name}.aggregate-function") or options.get(
                "fields.default-aggregate-function", "last_non_null_value"
            )
            function = _function(column.name, name, options, version)
            check_function(function, column.name, column.type, version)
        if removing and function.ignore_retract:
            raise refusal(features.REMOVE_WITH_IGNORED_RETRACTS, version=version, column=column.name)
        functions[column.name] = function
    return Aggregation(functions=functions, remove_on_delete=removing)


def _function(column: str, name: str, options: Mapping[str, str], version: int) -> Function:
    def of(option: str, default: str = "") -> str:
        return options.get(f"fields.{column}.{option}", default)

    def names(option: str) -> tuple[str, ...]:
        return tuple(item.strip() for item in of(option).split(",") if item.strip())

    return Function(
        name=_ALIASES.get(name, name),
        ignore_retract=parse_flag(options, f"fields.{column}.ignore-retract"),
        distinct=parse_flag(options, f"fields.{column}.distinct"),
        delimiter=of("list-agg-delimiter", ","),
        nested_key=names("nested-key"),
        nested_sequence=names("nested-sequence-field") if name == "nested_update" else (),
        null_keys=of("nested-key-null-strategy").strip().lower() or "merge",
        count_limit=_limit(column, of("count-limit"), version) if name == "nested_update" else None,
        time_field=of("ts-field") or None,
    )


def _limit(column: str, text: str, version: int) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or not int(text):
        raise refusal(features.INVALID_COUNT_LIMITS, version=version, limit=text, column=column)
    return int(text)


def check_function(function: Function, column: str, data_type: PaimonDataType, version: int) -> None:
    """Raise for a function that is unknown, or is not defined for the column's type."""
    reads = function.name in _ANY or {
        "sum": data_type.root in _NUMBERS,
        "product": data_type.root in _NUMBERS,
        "max": data_type.root not in _NESTED,
        "min": data_type.root not in _NESTED,
        "bool_and": data_type.root == "BOOLEAN",
        "bool_or": data_type.root == "BOOLEAN",
        "listagg": data_type.root == "VARCHAR" and data_type.length == MAX_LENGTH,
        "collect": data_type.root == "ARRAY" and _collects(data_type.element, function),
        "merge_map": data_type.root == "MAP" and _is_key(data_type.key),
        "merge_map_with_keytime": data_type.root == "MAP"
        and _is_key(data_type.key)
        and _has_time(data_type.element, function),
        "rbm32": data_type.root == "VARBINARY",
        "rbm64": data_type.root == "VARBINARY",
        "hll_sketch": data_type.root == "VARBINARY",
        "theta_sketch": data_type.root == "VARBINARY",
        "nested_update": _is_table(data_type, function),
        "nested_partial_update": _is_table(data_type, function) and bool(function.nested_key),
    }.get(function.name, False)
    if not reads:
        raise refusal(
            features.AGGREGATE_FUNCTIONS,
            version=version,
            function=function.name,
            column=column,
            type=type_text(data_type),
        )


def _is_key(data_type: PaimonDataType | None) -> bool:
    """Return whether Java compares keys of a type by value, which it does not for byte arrays and rows."""
    return data_type is not None and data_type.root not in (*_NESTED, "BINARY", "VARBINARY")


def _has_time(data_type: PaimonDataType | None, function: Function) -> bool:
    if data_type is None or data_type.root != "ROW" or len(data_type.fields) < 2:  # noqa: PLR2004 - a value and its time
        return False
    times = {field.name: field.type.root for field in data_type.fields}
    return times.get(function.time_field or data_type.fields[-1].name) in ("CHAR", "VARCHAR")


def _collects(data_type: PaimonDataType | None, function: Function) -> bool:
    """Return whether `collect` is defined for a type. Only distinct elements are compared.

    Releases differ in distinct byte arrays, and Java in floats of distinct rows. Retracts of elements that are not
    distinct are checked when they are read.
    """
    if data_type is None or data_type.has("VARIANT"):
        return False
    if not function.distinct:
        return True
    if data_type.root in ("BINARY", "VARBINARY"):
        return False
    return data_type.root not in _NESTED or not data_type.has("FLOAT", "DOUBLE", "MAP", "MULTISET")


def _is_table(data_type: PaimonDataType, function: Function) -> bool:
    """Return whether the type is an array of rows with the fields of the function's options."""
    if data_type.root != "ARRAY" or data_type.element is None or data_type.element.root != "ROW":
        return False
    fields = {field.name: field.type for field in data_type.element.fields}
    named = (*function.nested_key, *function.nested_sequence)
    if any(name not in fields or fields[name].root in _NESTED for name in named):
        return False
    if function.null_keys not in _NULL_KEYS:
        return False
    if not function.nested_key and (function.nested_sequence or function.null_keys != "merge"):
        return False
    # Without a key whole rows are compared, with another comparison of floats than elsewhere in Java.
    return bool(function.nested_key) or not data_type.has("FLOAT", "DOUBLE", "MAP", "MULTISET", "VARIANT")
