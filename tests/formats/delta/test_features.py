"""What a reader must understand: read, or refused by name."""

import json

import pytest

from snapshot_explorer.errors import CorruptTableError, LimitError, UnsupportedFeatureError
from tests.inner.delta import READER_FEATURES, check_readable
from tests.support.delta.log_reader import metadata, protocol
from tests.support.delta.table_builder import schema_json

PLAIN = schema_json([("id", "long")])
ID = "delta.columnMapping.id"
READ = {one.keyword for one in READER_FEATURES if one.status == "read"}
REFUSED = {one.keyword: one.name for one in READER_FEATURES if one.status == "refused"}
MAPPED = {"delta.columnMapping.mode": "id"}


@pytest.mark.parametrize("feature", sorted(READ))
def test_a_known_feature_is_read(feature):
    schema = check_readable(protocol(3, [feature]), metadata(PLAIN))

    assert [field.name for field in schema.fields] == ["id"]


@pytest.mark.parametrize("feature", [*sorted(REFUSED), "somethingNew"])
def test_another_feature_is_refused_by_name(feature):
    with pytest.raises(
        UnsupportedFeatureError, match=f"requires reader features that are not supported: {feature}"
    ) as refusal:
        check_readable(protocol(3, ["deletionVectors", feature]), metadata(PLAIN))

    assert REFUSED.get(feature, "") in str(refusal.value)
    assert "deletionVectors" not in str(refusal.value)


def test_features_of_writers_do_not_matter():
    check_readable(protocol(1), metadata(PLAIN))


@pytest.mark.parametrize("version", [0, 4, 99])
def test_an_unknown_reader_version_is_refused(version):
    with pytest.raises(UnsupportedFeatureError, match=f"requires reader version {version} .* 1, 2 and 3 are supported"):
        check_readable(protocol(version), metadata(PLAIN))


@pytest.mark.parametrize(("version", "features"), [(3, None), (2, ["columnMapping"])])
def test_features_and_reader_version_three_go_together(version, features):
    with pytest.raises(CorruptTableError, match="which version 3 and no other has"):
        check_readable(protocol(version, features), metadata(PLAIN))


def test_another_file_format_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="format 'orc', not parquet"):
        check_readable(protocol(), metadata(PLAIN, provider="orc"))


@pytest.mark.parametrize(
    "kind", ["variant", {"type": "array", "elementType": "variant", "containsNull": True}], ids=["whole", "nested"]
)
def test_variants_are_read_in_a_table_with_shredding(kind):
    said = protocol(3, ["variantShredding", "variantType"])

    assert [one.name for one in check_readable(said, metadata(schema_json([("v", kind)]))).fields] == ["v"]


@pytest.mark.parametrize("kind", ["geography(a, flat)", "interval year", {"type": "udt", "class": "x"}])
def test_a_column_of_an_unknown_type_is_refused_by_name(kind):
    nested = {"type": "struct", "fields": [{"name": "deep", "type": kind, "nullable": True, "metadata": {}}]}

    with pytest.raises(UnsupportedFeatureError, match="The column 'odd' has the type"):
        check_readable(protocol(), metadata(schema_json([("odd", kind)])))
    with pytest.raises(UnsupportedFeatureError, match="The column 'outer' has the type|The column 'outer.deep'"):
        check_readable(protocol(), metadata(schema_json([("outer", nested)])))


@pytest.mark.parametrize(
    ("before", "after", "is_read"),
    [
        ("byte", "short", True),
        ("short", "long", True),
        ("integer", "double", True),
        ("float", "double", True),
        ("date", "timestamp_ntz", True),
        ("decimal(5,2)", "decimal(7,4)", True),
        ("integer", "decimal(12,2)", True),
        ("long", "decimal(22,2)", True),
        ("void", "string", True),
        ("long", "integer", False),
        ("long", "double", False),
        ("integer", "decimal(11,2)", False),
        ("decimal(5,2)", "decimal(6,4)", False),
        ("decimal(5,2)", "decimal(6,1)", False),
        ("date", "timestamp", False),
        ("integer", "string", False),
        ("decimal(99,1)", "decimal(38,1)", False),
    ],
)
def test_only_widening_is_read(before, after, is_read):
    change = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
    table_metadata = metadata(schema_json([("a", "long", change)]))

    if is_read:
        check_readable(protocol(), table_metadata)
    else:
        with pytest.raises(UnsupportedFeatureError, match="The column 'a' was changed from"):
            check_readable(protocol(), table_metadata)


def test_a_refused_change_deep_in_a_column_is_named():
    inner = {
        "name": "b",
        "type": "integer",
        "nullable": True,
        "metadata": {"delta.typeChanges": [{"fromType": "string", "toType": "integer"}]},
    }
    kind = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": True}

    with pytest.raises(UnsupportedFeatureError, match="The column 'a.b' was changed from string to integer"):
        check_readable(protocol(), metadata(schema_json([("a", kind)])))


def test_columns_that_differ_only_in_case_are_refused():
    with pytest.raises(CorruptTableError, match="Several columns are named 'id' ignoring case"):
        check_readable(protocol(), metadata(schema_json([("id", "long"), ("ID", "long")])))


def test_mapping_by_id_needs_an_id_at_every_depth():
    inner = {"type": "struct", "fields": [{"name": "b", "type": "long", "nullable": True, "metadata": {}}]}
    table_metadata = metadata(schema_json([("a", inner, {ID: 1})]), configuration=MAPPED)

    with pytest.raises(CorruptTableError, match="The column 'a.b' has no id"):
        check_readable(protocol(2), table_metadata)


def test_an_unknown_mode_of_column_mapping_is_refused_whatever_the_protocol():
    table_metadata = metadata(PLAIN, configuration={"delta.columnMapping.mode": "color"})

    for said in (protocol(1), protocol(2), protocol(3, ["deletionVectors"]), protocol(3, ["columnMapping"])):
        with pytest.raises(UnsupportedFeatureError, match="has the column mapping mode 'color'"):
            check_readable(said, table_metadata)


def test_a_deep_schema_ends_in_an_error_of_ours():
    kind = "long"
    for _ in range(3000):
        kind = {"type": "array", "elementType": kind, "containsNull": True}
    text = '{"type":"struct","fields":[{"name":"a","type":' + _spelled(kind) + ',"nullable":true,"metadata":{}}]}'

    with pytest.raises(LimitError, match="The schema in the table's metaData action has values within each other to"):
        check_readable(protocol(), metadata(text))


def _spelled(kind):
    depth = 0
    while isinstance(kind, dict):
        kind, depth = kind["elementType"], depth + 1
    return '{"type":"array","containsNull":true,"elementType":' * depth + json.dumps(kind) + "}" * depth
