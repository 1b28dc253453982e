"""ARCHITECTURE.md names the packages that there are, and files that exist; tests import from the fronts of packages."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "snapshot_explorer"
TESTS = PACKAGE.parent / "tests"
IMPORT = re.compile(r"^ *from ([\w.]+) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)
"""The module of an import, and the names."""
TEXT = (PACKAGE / "ARCHITECTURE.md").read_text("utf-8")


def test_every_package_and_module_at_the_top_has_its_layer():
    rows = re.findall(r"^\| \d+ \| (.+?) \|", TEXT, flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert named == there - {"__init__"}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/.]+(?:\.py|/))`", TEXT))))
def test_every_file_that_is_named_exists(path):
    assert any((root / path).exists() for root in (PACKAGE, PACKAGE.parent)) or (
        # The name of a module in the folder of each format, such as `version.py` or `scan/`.
        all((PACKAGE / "formats" / name / path).exists() for name in ("paimon", "delta"))
    )


def imports(path):
    """Return the modules of the `from` imports of a file, each with the names that are imported."""
    found = IMPORT.findall(path.read_text("utf-8"))
    return [(module, re.findall(r"(\w+)(?: as \w+)?", names)) for module, names in found]


def is_front(module):
    """Return whether a module is a room, or a package in a room."""
    parts = module.split(".")
    return len(parts) <= 2 or (len(parts) == 3 and PACKAGE.joinpath(*parts[1:], "__init__.py").exists())


def test_tests_import_from_the_fronts_of_packages():
    folders = [path for path in TESTS.iterdir() if path.is_dir() and path.name not in ("data", "inner")]
    outside = [TESTS / "conftest.py", *(path for folder in folders for path in folder.rglob("*.py"))]
    found = [(path, *item) for path in outside for item in imports(path)]
    used = {(module, name) for _, module, names in found for name in names}

    assert not [
        f"{path.relative_to(TESTS)}: {module}. Import {', '.join(names)} from tests.inner"
        for path, module, names in found
        if module.startswith("snapshot_explorer.") and not is_front(module)
    ]
    for front in sorted((TESTS / "inner").glob("[a-z]*.py")):
        tree = ast.parse(front.read_text("utf-8"))
        names = {
            item.asname or item.name for node in tree.body if isinstance(node, ast.ImportFrom) for item in node.names
        }
        assert names <= {name for module, name in used if module == f"tests.inner.{front.stem}"}, front
