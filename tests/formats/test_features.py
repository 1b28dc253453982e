"""Every refusal of a format is declared, the guide's tables are those declarations, and each refusal has its test.

Run this file as a script to write the guide's tables anew: `python tests/formats/test_features.py`.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from string import Formatter

import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer import open_table
from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats import features as shared
from snapshot_explorer.formats.corrupt_files import unreadable
from snapshot_explorer.formats.delta import features as delta
from snapshot_explorer.formats.features import Feature, listing, refusal, summary
from snapshot_explorer.formats.iceberg import features as iceberg
from snapshot_explorer.formats.paimon import features as paimon
from snapshot_explorer.formats.paimon.fallback import ClaimedPartitions, FallbackLink, joined
from snapshot_explorer.formats.paimon.merge.engines import Function
from snapshot_explorer.formats.paimon.merge.nested_aggregates import collect
from snapshot_explorer.formats.paimon.merge.number_aggregates import total
from snapshot_explorer.frames import SKIPPED
from snapshot_explorer.model import ReadPlan, Split

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "notebooks" / "guide" / "formats.md"
PACKAGE = Path(snapshot_explorer.__file__).parent
MODULES = {"paimon": paimon, "delta": delta, "iceberg": iceberg, "formats": shared}
FORMATS = {"paimon": paimon.FEATURES, "delta": delta.FEATURES, "iceberg": iceberg.FEATURES}
DECLARED = tuple(dict.fromkeys(one for features in FORMATS.values() for one in features))
REFUSED = [feature for feature in DECLARED if feature.status == "refused"]

READER_FEATURES = {
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
    *("typeWidening", "typeWidening-preview", "variantType", "variantType-preview"),
    *("variantShredding", "variantShredding-preview", "catalogManaged", "catalogOwned-preview"),
    *("geospatial", "geospatial-dev", "redirectReaderWriter-preview", "adaptiveMetadata-preview"),
}
"""The reader features of delta PROTOCOL.md and of Delta's own TableFeature, their previews included."""

UNDECLARED = {
    "paimon/scan/planning.py:_check_file": "names version and file in front of a declared refusal",
    "paimon/scan/read.py:_naming_files": "names the files that are merged in front of a declared refusal",
    "delta/files/data_files.py:_column": "names column and file in front of a declared refusal",
    "iceberg/files/columns.py:projected": "names column and file in front of a declared refusal",
    "interface.py:TableFormat.expiry": "a format without the feature",
    "interface.py:TableFormat._no_tasks": "a format without the feature",
    "interface.py:TableVersion.maintenance_settings": "a format without the feature",
    "interface.py:TableVersion.deleted_positions": "a format without the feature",
    "interface.py:TableVersion.rows_deleted": "a format without the feature",
}
"""Where the error is raised without a declared feature, and why."""

RAISED_BELOW = {
    shared.OTHER_STORAGES: "storage refuses it, for every format, and storage knows no format",
    delta.CLEANED_VERSIONS: "the version is not found: SnapshotNotFoundError says from which one on versions are there",
}
"""Features that are refused with another message than theirs, and why."""

_RAISED = {
    "formats/delta/test_change_data.py": {
        delta.CHANGES_ACROSS_PARTITIONS: "test_files_of_another_partitioning_are_refused",
        delta.CHANGES_ACROSS_SCHEMAS: "test_a_range_without_a_common_schema_is_refused",
        delta.DIFFERENCE: "test_the_mode_diff_is_refused_with_what_there_is_instead",
        delta.TAKEN_CHANGE_COLUMNS: "test_a_column_of_the_tables_own_called_like_ours_is_refused",
    },
    "formats/delta/test_collations.py": {
        shared.COLLATED_CONDITIONS: "test_conditions_on_a_column_with_a_collation_are_refused_everywhere",
        shared.COLLATED_QUERIES: "test_sql_that_may_compare_texts_with_a_collation_is_refused",
    },
    "formats/delta/test_columns.py": {
        delta.FILES_OF_OTHER_TYPES: "test_another_type_is_refused",
        delta.OLD_CALENDARS: "test_timestamps_before_1900_by_the_clocks_of_another_zone_are_refused",
        delta.SHREDDED_FILES: "test_a_variant_in_a_type_that_variants_do_not_have_is_refused",
    },
    "formats/delta/test_deletion_vectors.py": {
        delta.LARGE_DELETION_VECTORS: "test_a_vector_without_a_size_is_not_read",
        delta.OTHER_DELETION_VECTORS: "test_another_way_to_store_is_refused",
    },
    "formats/delta/test_delta.py": {
        delta.STAGED_COMMITS: "test_staged_commits_of_a_catalog_are_refused_unless_they_are_published",
    },
    "formats/delta/test_features.py": {
        delta.COLUMN_MAPPING_MODES: "test_an_unknown_mode_of_column_mapping_is_refused_whatever_the_protocol",
        delta.OTHER_FILE_FORMATS: "test_another_file_format_is_refused",
        delta.OTHER_READER_VERSIONS: "test_an_unknown_reader_version_is_refused",
        delta.TYPE_CHANGES: "test_a_refused_change_deep_in_a_column_is_named",
        delta.UNKNOWN_TYPES: "test_a_column_of_an_unknown_type_is_refused_by_name",
        **dict.fromkeys(
            (one for one in delta.READER_FEATURES if one.status == "refused"),
            "test_another_feature_is_refused_by_name",
        ),
    },
    "formats/delta/test_partitions.py": {
        delta.PARTITION_TYPES: "test_a_struct_is_not_a_partition",
    },
    "formats/delta/test_planning.py": {
        delta.OTHER_READER_FEATURES: "test_what_can_not_be_read_is_refused_before_anything_is_planned",
    },
    "formats/delta/test_schema.py": {
        delta.UNREAD_TYPES: "test_a_type_that_is_not_read_is_shown_but_has_no_arrow_type",
    },
    "formats/iceberg/test_changes.py": {
        iceberg.CHANGES_ACROSS_EXPIRY: "test_changes_of_a_commit_whose_parent_has_expired_are_refused",
        iceberg.TAKEN_CHANGE_COLUMNS: "test_a_column_called_like_the_kind_of_a_change_is_refused",
    },
    "formats/iceberg/test_columns.py": {
        iceberg.ENCRYPTED_DATA: "test_encrypted_files_and_other_formats_are_refused_by_name",
        iceberg.FILES_OF_OTHER_TYPES: "test_a_type_that_is_not_a_form_of_the_tables_is_refused_by_name",
        iceberg.FILES_WITHOUT_IDS: "test_files_without_ids_are_refused_where_the_schema_was_changed",
        iceberg.OTHER_FILE_FORMATS: "test_encrypted_files_and_other_formats_are_refused_by_name",
        iceberg.SHREDDED_VARIANTS: "test_a_variant_in_a_type_that_variants_do_not_have_is_refused",
        iceberg.UNREAD_TYPES: "test_a_column_of_a_type_that_is_not_read_refuses_the_version",
    },
    "formats/iceberg/test_deletes.py": {
        iceberg.EQUALITY_TYPES: "test_equality_deletes_by_a_variant_are_refused_by_name",
    },
    "formats/iceberg/test_opening.py": {
        iceberg.ENCRYPTED_METADATA: "test_an_encrypted_manifest_list_is_refused",
        iceberg.LARGE_NUMBERS: "test_ids_beyond_64_bits_are_refused",
        iceberg.OTHER_FORMAT_VERSIONS: "test_other_format_versions_are_refused_by_name",
        iceberg.OTHER_MANIFEST_FORMATS: "test_a_manifest_in_parquet_is_refused_by_name",
    },
    "formats/paimon/test_avro.py": {
        shared.AVRO_CODECS: "test_an_unknown_codec_is_refused_by_name",
        shared.RECURSIVE_AVRO: "test_a_schema_that_refers_to_itself_is_refused",
    },
    "formats/paimon/test_binary_aggregates.py": {
        paimon.OTHER_THETA_SKETCHES: "test_bytes_that_are_not_a_sketch_are_refused",
    },
    "formats/paimon/test_binary_row.py": {
        paimon.TIMESTAMPS_OUT_OF_RANGE: "test_a_timestamp_too_far_away_is_refused_or_unknown",
    },
    "formats/paimon/test_blobs.py": {
        paimon.BLOBS_OVER_LIMIT: "test_more_blobs_than_the_limit_are_refused_but_other_columns_are_read",
    },
    "formats/paimon/test_column_folds.py": {
        paimon.AMBIGUOUS_NESTED_ROWS: "test_where_releases_differ_over_the_limit_of_nested_rows_it_is_refused",
        paimon.COLLECT_RETRACTS: "test_rows_taken_back_from_joined_lists_are_refused",
    },
    "formats/paimon/test_column_groups.py": {
        paimon.BLOBS_IN_OTHER_FILES: "test_blobs_inside_a_data_file_are_refused",
        paimon.EVOLUTION_WITH_VECTORS: "test_vectors_of_newer_files_of_rows_in_parts_are_refused",
        paimon.PARTIAL_FILES: "test_a_part_of_rows_that_have_no_id_is_refused",
    },
    "formats/paimon/test_deletion_vectors.py": {
        paimon.LARGE_DELETION_VECTORS: "test_a_file_of_impossibly_many_rows_is_refused",
    },
    "formats/paimon/test_evolution.py": {
        paimon.CASTS: "test_a_change_of_type_without_a_proven_cast_is_refused_by_name",
        paimon.CASTS_OF_VALUES: "test_a_value_that_can_not_be_cast_names_file_column_and_value",
    },
    "formats/paimon/test_fallback.py": {
        paimon.ABSENT_BRANCH: "test_a_branch_that_is_not_there_is_refused",
        paimon.EMPTY_BRANCH: "test_a_table_without_versions_does_not_hide_those_of_the_branch",
        paimon.EXPIRED_VERSION_WITH_BRANCH: "test_a_version_that_only_a_tag_holds_is_refused",
        paimon.FALLBACK_BRANCH_CHANGES: "test_changes_of_a_table_with_a_fallback_are_refused",
        paimon.OTHER_BRANCH_COLUMNS: "test_a_branch_of_other_columns_is_refused",
        paimon.AMBIGUOUS_BRANCH_VERSION: "test_versions_of_the_branch_at_one_time_are_refused_where_it_matters",
    },
    "formats/paimon/test_file_indexes.py": {
        paimon.OTHER_FILE_INDEXES: "test_a_container_of_another_version_is_refused",
    },
    "formats/paimon/test_manifests.py": {
        paimon.ENTRY_KINDS: "test_entries_that_are_not_understood_are_refused",
        paimon.OTHER_MANIFEST_FORMATS: "test_entries_that_are_not_understood_are_refused",
    },
    "formats/paimon/test_merge_rules.py": {
        paimon.AGGREGATE_FUNCTIONS: "test_a_function_that_is_not_read_exactly_is_refused_by_name",
        paimon.BLANK_STRINGS: "test_blank_texts_that_releases_join_in_different_ways_are_refused",
        paimon.INVALID_COUNT_LIMITS: "test_a_limit_that_is_not_a_number_of_rows_is_refused",
        paimon.FIRST_ROW_BY_SEQUENCE: "test_first_rows_by_sequence_fields_are_refused",
        paimon.FUNCTIONS_OUTSIDE_GROUPS: "test_partial_updates_that_paimon_refuses_are_refused",
        paimon.INVALID_REMOVE_FIELDS: "test_partial_updates_that_paimon_refuses_are_refused",
        paimon.GROUP_COLUMNS: "test_partial_updates_that_paimon_refuses_are_refused",
        paimon.NESTED_SEQUENCE_FIELDS: "test_partial_updates_that_paimon_refuses_are_refused",
        paimon.REMOVE_WITH_GROUPS: "test_partial_updates_that_paimon_refuses_are_refused",
        paimon.REMOVE_WITH_IGNORED_RETRACTS: "test_a_removal_of_records_beside_ignored_retracts_is_refused",
        paimon.REMOVE_BY_GROUP: "test_partial_updates_that_paimon_refuses_are_refused",
    },
    "formats/paimon/test_paimon.py": {
        paimon.OTHER_SNAPSHOT_FORMATS: "test_a_snapshot_of_a_format_that_is_not_known_is_refused",
        paimon.TABLE_TYPES: "test_a_table_of_another_kind_is_refused_by_name",
    },
    "formats/paimon/test_partition_text.py": {
        paimon.BINARY_PARTITION_FOLDERS: "test_bytes_are_hexadecimal_but_name_no_folder",
    },
    "formats/paimon/test_read_files.py": {
        paimon.SHREDDED_VARIANTS: "test_a_variant_in_a_type_that_variants_do_not_have_is_refused",
        shared.DISTANT_TIMES_IN_FILES: "test_a_timestamp_that_nanoseconds_can_not_hold_is_refused_and_not_wrapped",
        shared.ENCRYPTED_FILES: "test_an_encrypted_file_is_refused",
        shared.UNKNOWN_ZONES_IN_FILES: "test_an_orc_file_of_a_zone_that_is_not_known_is_refused",
    },
    "formats/paimon/test_read_splits.py": {
        paimon.ABSENT_SEQUENCE_FIELDS: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.BLOB_COLUMNS: "test_a_column_of_a_type_that_is_not_read_is_refused_by_name",
        paimon.BLOB_DESCRIPTORS: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.BLOB_FILES: "test_a_file_of_another_format_is_refused_by_name",
        paimon.BLOB_VIEWS: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.CHAIN_TABLES: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.CLUSTERING_OVERRIDE: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.EVOLUTION_WITH_KEYS: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.MAP_LAYOUTS: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.MERGE_ENGINES: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.OTHER_FILE_FORMATS: "test_a_file_of_another_format_is_refused_by_name",
        paimon.POSTPONE_MERGE_ON_READ: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.PRIMARY_BRANCH_CHANGES: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.SNAPSHOT_ORDERING: "test_an_option_that_asks_for_more_is_refused_by_name",
        paimon.UNDECLARED_POSTPONED_BUCKETS: "test_a_postponed_bucket_without_its_option_is_refused_by_its_file",
        paimon.VECTOR_COLUMNS: "test_a_column_of_a_type_that_is_not_read_is_refused_by_name",
    },
    "formats/paimon/test_schema.py": {
        paimon.SPATIAL_TYPES: "test_types_that_are_not_read_are_refused_by_name",
        paimon.UNKNOWN_TYPES: "test_types_that_are_not_read_are_refused_by_name",
    },
    "formats/paimon/test_visibility.py": {
        paimon.DISABLED_VECTORS: (
            "test_vectors_that_the_newest_options_turn_off_are_refused_where_rows_would_come_back"
        ),
        paimon.VERSIONS_BEFORE_VECTORS: "test_a_version_older_than_its_vectors_is_refused_where_it_needs_a_merge",
    },
    "formats/test_features.py": {
        paimon.OVERFLOWING_SUMS: "test_a_sum_of_more_digits_than_its_type_is_refused",
        paimon.CHANGES_OF_POSTPONED_BUCKETS: "test_the_changes_of_postponed_buckets_are_refused",
        paimon.AUDIT_COLUMN_CONFLICT: "test_events_of_a_table_with_a_column_rowkind_are_refused",
        paimon.HIDDEN_BRANCH_PARTITIONS: "test_partitions_beside_hidden_ones_are_refused",
        paimon.CHANGES_OF_EVOLUTION: "test_changes_of_data_evolution_are_refused",
        paimon.NULLS_AMONG_DISTINCT_ROWS: "test_null_among_distinct_rows_is_refused",
        shared.UNKNOWN_PARQUET_TYPES: "test_a_parquet_type_that_pyarrow_does_not_know_is_refused",
        shared.OPTIONAL_MAP_KEYS: "test_a_parquet_map_with_optional_keys_is_refused",
    },
    "retention/test_delta.py": {
        delta.VACUUM_OF_CLEANED_LOGS: "test_a_log_that_begins_after_the_time_is_refused",
        delta.VACUUM_WITHOUT_TIMES: "test_a_storage_that_does_not_say_when_files_were_written_is_refused",
    },
    "retention/test_iceberg.py": {
        iceberg.EXPIRY_WITHOUT_GC: "test_a_table_that_forbids_expiry_is_refused",
    },
    "retention/test_paimon.py": {
        paimon.EXPIRY_OVER_GAPS: "test_expiry_over_a_gap_is_refused",
    },
    "table/test_changes.py": {
        paimon.DIFFERENCE_OF_POSTPONED_BUCKETS: "test_the_difference_of_postponed_buckets_is_refused",
        paimon.DIFFERENCE_OF_REMOVED_FILES: "test_states_without_keys_are_compared_only_where_files_were_only_added",
        paimon.CHANGE_COLUMN_CONFLICT: "test_a_column_called_rowkind_is_refused",
        paimon.UPDATES_WITH_REMOVALS: "test_an_append_that_removes_files_is_refused_as_paimon_refuses_it",
    },
    "table/test_changes_as_paimon.py": {
        paimon.DIFFERENCE_OF_OLDER_ROWS: "test_the_rows_are_what_paimon_reads",
    },
    "table/test_branches.py": {
        paimon.COLUMNS_OF_TWO_BRANCHES: "test_columns_that_two_branches_added_under_one_id_are_not_taken_for_one",
    },
    "table/test_inspect.py": {
        paimon.AUDIT_SEQUENCE_NUMBERS: "test_sequence_numbers_of_rows_without_a_key_are_refused",
    },
}
RAISED_BY = {feature: f"{path}::{name}" for path, tests in _RAISED.items() for feature, name in tests.items()}
"""The test, below `tests`, that has each refused feature raised."""

UNTESTED = {
    **RAISED_BELOW,
    paimon.REMOVED_INDEXES: "no writer makes such index manifests: only streaming readers expect them",
    paimon.CHANGELOG_OF_LEVEL_0: "no test has such a changelog yet",
    paimon.DIFFERENCE_OF_BUCKET_COUNTS: "no test rescales buckets between two versions yet",
    iceberg.LARGE_DELETION_VECTORS: "no test has so great a deletion vector yet",
}
"""Refused features that no test here raises, and why."""


def sites() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield each call that makes a refusal: module, function and call."""
    for path in [*sorted((PACKAGE / "formats").rglob("*.py")), PACKAGE / "engines" / "collations.py"]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function, call in _calls(tree, ""):
            if _name(call.func) in ("refusal", "UnsupportedFeatureError"):
                home = PACKAGE if path.parent.name == "engines" else PACKAGE / "formats"
                yield path.relative_to(home).as_posix(), function, call


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = f"{function}.{child.name}".lstrip(".")
        if isinstance(child, ast.Call):
            yield inner, child
        yield from _calls(child, inner)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def declared_at(module: str, call: ast.Call) -> list[Feature]:
    """Return the features that a call may refuse: the one that it names, else those that its module looks up."""
    named = call.args[0]
    scope = MODULES.get(module.split("/", maxsplit=1)[0], shared)
    if isinstance(named, ast.Attribute):
        return [getattr(scope, named.attr)]
    if isinstance(named, ast.Name) and named.id.isupper():
        return [getattr(shared, named.id)]
    where = module[:-3].replace("/", ".")
    return [one for one in REFUSED if any(place.startswith(where) for place in one.checked)]


SITES = [site for site in sites() if site[0] != "features.py"]
DIRECT = [site for site in SITES if _name(site[2].func) == "UnsupportedFeatureError"]
REFUSALS = [site for site in SITES if _name(site[2].func) == "refusal"]


def fields(feature: Feature) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(feature.message) if name}


def test_every_refusal_of_a_format_goes_through_a_declared_feature():
    undeclared = {f"{module}:{function}" for module, function, _ in DIRECT}

    assert undeclared == set(UNDECLARED)


@pytest.mark.parametrize(
    ("module", "function", "call"), REFUSALS, ids=[f"{module}:{call.lineno}" for module, _, call in REFUSALS]
)
def test_a_refusal_fills_in_its_message_where_the_table_says_that_it_is_checked(module, function, call):
    found = {argument.arg for argument in call.keywords}
    place = f"{module[:-3].replace('/', '.')}.{function}"
    chosen = [one for one in declared_at(module, call) if place in one.checked]

    assert chosen
    assert any(fields(one) == found for one in chosen)


@pytest.mark.parametrize("feature", DECLARED, ids=lambda one: one.keyword or one.name)
def test_a_feature_says_where_it_is_checked(feature):
    for place in feature.checked:
        assert exists(place), place


def exists(place: str) -> bool:
    """Return whether a module or function is there, in `formats` or in the package."""
    words = place.split(".")
    for top in ("snapshot_explorer.formats", "snapshot_explorer"):
        for cut in range(len(words), 0, -1):
            try:
                module = importlib.import_module(".".join([top, *words[:cut]]))
            except ImportError:
                continue
            if cut == len(words):
                return True
            tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
            return ".".join(words[cut:]) in {name for name, _ in _functions(tree, "")}
    return False


def _functions(node: ast.AST, outer: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        name = outer
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{outer}.{child.name}".lstrip(".")
            yield name, child
        yield from _functions(child, name)


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_every_declared_feature_is_in_the_table(module):
    named = [one for name, one in vars(module).items() if isinstance(one, Feature) and not name.startswith("_")]

    assert [one.name for one in named if one not in DECLARED] == []


def test_a_feature_is_declared_once():
    keys = [(name, one.area, one.keyword, one.name) for name, all_of_it in FORMATS.items() for one in all_of_it]

    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("feature", REFUSED, ids=lambda one: one.keyword or one.name)
def test_a_refused_feature_has_a_message_and_a_place_that_raises_it(feature):
    raised = [one for module, _, call in REFUSALS for one in declared_at(module, call)]

    assert (feature in raised) != (feature in RAISED_BELOW)
    assert bool(feature.message) != (feature in RAISED_BELOW)


@pytest.mark.parametrize("feature", [one for one in DECLARED if one.status == "read"], ids=lambda one: one.name)
def test_a_feature_that_is_read_has_no_refusal(feature):
    assert feature.message == ""


def test_the_reader_features_of_the_protocol_are_all_declared():
    assert {one.keyword for one in delta.READER_FEATURES} == READER_FEATURES


def test_a_refusal_is_the_message_of_its_feature():
    error = refusal(paimon.CHAIN_TABLES, version=3, option="chain-table.enabled", value="{true}")

    assert isinstance(error, UnsupportedFeatureError)
    assert str(error).startswith("The rows of version 3 need a chain table (the option chain-table.enabled={true}),")


@pytest.mark.parametrize("feature", REFUSED, ids=lambda one: one.keyword or one.name)
def test_a_refused_feature_has_a_test_that_raises_it_or_a_reason_why_not(feature):
    assert (feature in RAISED_BY) != (feature in UNTESTED)


@pytest.mark.parametrize("test", sorted(set(RAISED_BY.values())))
def test_a_test_that_raises_a_refusal_is_there(test):
    path, name = test.split("::")
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))

    assert name in {function for function, _ in _functions(tree, "")}


def test_a_parquet_type_that_pyarrow_does_not_know_is_refused():
    error = unreadable("a.parquet", "parquet", OSError("LogicalType that is not recognized"))

    assert isinstance(error, UnsupportedFeatureError)
    assert str(error).startswith("The data file a.parquet contains a type that the installed pyarrow does not support")


def test_a_parquet_map_with_optional_keys_is_refused():
    error = unreadable("a.parquet", "parquet", pa.ArrowInvalid("Map keys must be annotated as required."))

    assert isinstance(error, UnsupportedFeatureError)
    assert str(error).startswith("The data file a.parquet has a map whose keys are optional")


def test_null_among_distinct_rows_is_refused():
    rows = pa.array([[{"a": 1}], [None]], pa.list_(pa.struct([("a", pa.int64())])))
    fold = collect(rows, Function(name="collect", distinct=True))

    with pytest.raises(UnsupportedFeatureError, match="collect and the option distinct contains a null row"):
        fold.add(*fold.items)


def test_a_sum_of_more_digits_than_its_type_is_refused():
    fold = total(pa.array([Decimal(1)], pa.decimal128(38, 0)))

    with pytest.raises(UnsupportedFeatureError, match="The sum of a key has more digits than its type"):
        fold.result([10**100])


def test_the_changes_of_postponed_buckets_are_refused():
    table = open_table(str(ROOT / "tests" / "data" / "paimon" / "postponed"))

    with pytest.raises(UnsupportedFeatureError, match="wrote to postponed buckets"):
        table.row_changes(0, 2, mode="delta")


def test_events_of_a_table_with_a_column_rowkind_are_refused(memory_root):
    from tests.support.paimon.table_builder import PaimonTable

    filesystem, root = memory_root
    PaimonTable(*memory_root).commit([(1, "a")])
    path = f"{root}/schema/schema-0"
    filesystem.pipe_file(path, filesystem.cat_file(path).replace(b'"name": "name"', b'"name": "rowkind"'))

    with pytest.raises(UnsupportedFeatureError, match="which is also the column of audit_log for the kind of an event"):
        open_table(f"memory://{root}").inspect("audit_log")


def test_changes_of_data_evolution_are_refused(memory_root):
    from tests.support.paimon.table_builder import PaimonTable

    PaimonTable(*memory_root, options={"data-evolution.enabled": "true"}).commit([(1, "a")])

    with pytest.raises(UnsupportedFeatureError, match="changes of rows whose columns are in several files"):
        open_table(f"memory://{memory_root[1]}").row_changes(0, 1)


class NoDetail:
    """What a split of an unpartitioned table needs to be distinguished by its partition: nothing."""


def test_partitions_beside_hidden_ones_are_refused():
    empty = ReadPlan(splits=(), skipped=SKIPPED.empty_table)
    taken = ClaimedPartitions(keys=frozenset(), hidden=frozenset({"[]"}), texts=frozenset())
    split = Split(files=("a",), raw=True, partition={}, bucket=None, rows=1, size_bytes=1, detail=NoDetail())

    with pytest.raises(UnsupportedFeatureError, match="all files of a partition wait for a compaction"):
        joined(empty, replace(empty, splits=(split,)), taken, 1, FallbackLink(branch="b", is_first=False))


def rewritten(text: str) -> str:
    """Return the page with the tables of today."""
    for name, features in FORMATS.items():
        for kind, table in (("features", summary(features)), ("all features", listing(features))):
            begin, end = f"<!-- {kind}: {name} -->\n\n", "\n\n<!-- end -->"
            pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
            text, count = pattern.subn(lambda _, new=begin + table + end: new, text)
            assert count == 1, f"{PAGE.name} has {count} places for {begin.strip()}"
    return text


def test_the_tables_of_the_guide_are_those_of_the_features():
    text = PAGE.read_text(encoding="utf-8")

    assert text == rewritten(text), "Run python tests/formats/test_features.py"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
