"""Every refusal of a format is declared, README's tables are those declarations, and each refusal has its test.

Run this file as a script to write README's tables anew: `python tests/formats/test_features.py`.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import snapshot_explorer
from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats import features as shared
from snapshot_explorer.formats.delta import features as delta
from snapshot_explorer.formats.features import Feature, listing, refusal, summary
from snapshot_explorer.formats.paimon import features as paimon

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PACKAGE = Path(snapshot_explorer.__file__).parent
MODULES = {"paimon": paimon, "delta": delta, "formats": shared}
FORMATS = {"paimon": paimon.FEATURES, "delta": delta.FEATURES}
DECLARED = tuple(dict.fromkeys([*paimon.FEATURES, *delta.FEATURES]))
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
    "paimon/scan/read.py:_telling": "names the files that are merged in front of a declared refusal",
    "delta/files/data_files.py:_column": "names column and file in front of a declared refusal",
}
"""Where the error is raised without a declared feature, and why."""

RAISED_BELOW = {
    shared.OTHER_STORAGES: "storage refuses it, for every format, and storage knows no format",
    delta.CLEANED_VERSIONS: "the version is not found: SnapshotNotFoundError says from which one on versions are there",
}
"""Features that are refused with another message than theirs, and why."""


def sites() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield each call that makes a refusal: module, function and call."""
    for path in sorted((PACKAGE / "formats").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function, call in _calls(tree, ""):
            if _name(call.func) in ("refusal", "UnsupportedFeatureError"):
                yield path.relative_to(PACKAGE / "formats").as_posix(), function, call


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
    where = "{}.{}".format("paimon" if scope is paimon else "delta", module.split("/", 1)[1][:-3].replace("/", "."))
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


def rewritten(text: str) -> str:
    """Return README with the tables of today."""
    for name, features in FORMATS.items():
        for kind, table in (("features", summary(features)), ("all features", listing(features))):
            begin, end = f"<!-- {kind}: {name} -->\n\n", "\n\n<!-- end -->"
            pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
            text, count = pattern.subn(lambda _, new=begin + table + end: new, text)
            assert count == 1, f"README has {count} places for {begin.strip()}"
    return text


def test_the_tables_of_the_readme_are_those_of_the_features():
    text = README.read_text(encoding="utf-8")

    assert text == rewritten(text), "Run python tests/formats/test_features.py"


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
