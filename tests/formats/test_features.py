"""Every refusal of a format is declared, the guide's tables are those declarations, and each refusal has its test.

Run this file as a script to write the guide's tables anew: `python tests/formats/test_features.py`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer import open_table
from snapshot_explorer.core.frames import SKIPPED
from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats import features as shared
from snapshot_explorer.formats.delta import features as delta
from snapshot_explorer.formats.ducklake import features as ducklake
from snapshot_explorer.formats.hudi import features as hudi
from snapshot_explorer.formats.iceberg import features as iceberg
from snapshot_explorer.formats.paimon import features as paimon
from tests.inner.core import ReadPlan, Split
from tests.inner.formats import Feature, named_in_errors, refusal, render_listing, render_summary
from tests.inner.paimon import ClaimedPartitions, FallbackLink, Function, collect, combine_plans, total
from tests.support.refusals import DECLARED, FORMATS, RAISED_BELOW, REFUSED, RefusalRecorder, fields

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "notebooks" / "guide" / "formats.md"
PACKAGE = Path(snapshot_explorer.__file__).parent
MODULES = {"paimon": paimon, "delta": delta, "iceberg": iceberg, "hudi": hudi, "ducklake": ducklake, "formats": shared}

READER_FEATURES = {
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
    *("typeWidening", "typeWidening-preview", "variantType", "variantType-preview"),
    *("variantShredding", "variantShredding-preview", "catalogManaged", "catalogOwned-preview"),
    *("geospatial", "geospatial-dev", "redirectReaderWriter-preview", "adaptiveMetadata-preview"),
}
"""The reader features of delta PROTOCOL.md and of Delta's own TableFeature, their previews included."""

UNDECLARED = {
    "corrupt_files.py:column_named_in_errors": "names column and file in front of a declared refusal",
    "paimon/scan/planning.py:_check_file": "names version and file in front of a declared refusal",
    "paimon/scan/read.py:_naming_files": "names the files that are merged in front of a declared refusal",
    "paimon/repairs.py:PaimonRepairs.settings": "a statement that the connector does not run; the table is read",
    "interface.py:TableFormat.row_changes": "a format without the feature",
    "interface.py:TableVersion.health_facts": "a format without the feature",
    "capabilities.py:Maintenance.expiry": "a format without the feature",
    "capabilities.py:Maintenance.named_files": "a format without the feature",
    "capabilities.py:NativeFiles.deleted_positions": "a format without the feature",
    "capabilities.py:RowIdentity.rows_deleted": "a format without the feature",
}
"""Where the error is raised without a declared feature, and why."""


RAISING = ("refusal", "UnsupportedFeatureError")
"""What makes a refusal."""


def sites() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield each call that makes a refusal: module, function and call."""
    for path in [*sorted((PACKAGE / "formats").rglob("*.py")), PACKAGE / "engines" / "collations.py"]:
        text = path.read_text(encoding="utf-8")
        if not any(f"{name}(" in text for name in RAISING):  # most files: walking their trees takes a second
            continue
        for function, call in _calls(ast.parse(text)):
            if _name(call.func) in RAISING:
                home = PACKAGE if path.parent.name == "engines" else PACKAGE / "formats"
                yield path.relative_to(home).as_posix(), function, call


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call with the function that it is in, from top to bottom."""
    left = [("", tree)]
    while left:
        function, node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call):
            yield function, node
        left += [(function, child) for child in ast.iter_child_nodes(node)][::-1]


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
    path = PACKAGE / module if module.startswith("engines/") else PACKAGE / "formats" / module
    names = {_name(node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))}
    direct = {_name(call.args[0]) for other, _, call in REFUSALS if other == module}
    features = [value for name, value in vars(scope).items() if name in names - direct]
    flat = [one for value in features for one in (value if isinstance(value, tuple) else (value,))]
    return [one for one in flat if isinstance(one, Feature) and one.status == "refused"]


SITES = [site for site in sites() if site[0] != "features.py"]
DIRECT = [site for site in SITES if _name(site[2].func) == "UnsupportedFeatureError"]
REFUSALS = [site for site in SITES if _name(site[2].func) == "refusal"]


def places() -> dict[Feature, list[str]]:
    """Return where each feature is refused."""
    found: dict[Feature, list[str]] = {}
    for module, function, call in REFUSALS:
        for feature in declared_at(module, call):
            found.setdefault(feature, []).append(f"{module[:-3].replace('/', '.')}.{function}")
    return {feature: sorted(set(names)) for feature, names in found.items()}


def test_every_refusal_of_a_format_goes_through_a_declared_feature():
    undeclared = {f"{module}:{function}" for module, function, _ in DIRECT}

    assert undeclared == set(UNDECLARED)


@pytest.mark.parametrize(
    ("module", "function", "call"), REFUSALS, ids=[f"{module}:{call.lineno}" for module, _, call in REFUSALS]
)
def test_a_refusal_fills_in_its_message(module, function, call):
    arguments = {argument.arg for argument in call.keywords}

    assert any(fields(feature) == arguments for feature in declared_at(module, call)), function


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


def test_the_refusals_of_a_run_are_recorded():
    recorder = RefusalRecorder()
    assert shared.OPTIONAL_MAP_KEYS in recorder.missing()

    recorder.messages.add(str(refusal(shared.OPTIONAL_MAP_KEYS, path="a.parquet")))

    assert shared.OPTIONAL_MAP_KEYS not in recorder.missing()


def test_a_parquet_type_that_pyarrow_does_not_know_is_refused():
    with (
        pytest.raises(UnsupportedFeatureError, match=r"^The data file a\.parquet contains a type that the installed"),
        named_in_errors("a.parquet", "parquet", AssertionError),
    ):
        raise OSError("LogicalType that is not recognized")


def test_a_parquet_map_with_optional_keys_is_refused():
    with (
        pytest.raises(UnsupportedFeatureError, match=r"^The data file a\.parquet has a map whose keys are optional"),
        named_in_errors("a.parquet", "parquet", AssertionError),
    ):
        raise pa.ArrowInvalid("Map keys must be annotated as required.")


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
    split = Split(files=("a",), raw=True, partition={}, rows=1, size_bytes=1, detail=NoDetail())

    with pytest.raises(UnsupportedFeatureError, match="all files of a partition wait for a compaction"):
        combine_plans(empty, replace(empty, splits=(split,)), taken, 1, FallbackLink(branch="b", is_first=False))


def rewritten(text: str) -> str:
    """Return the page with the tables of today."""
    for name, features in FORMATS.items():
        for kind, table in (
            ("features", render_summary(features)),
            ("all features", render_listing(features, places())),
        ):
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
