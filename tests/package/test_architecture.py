"""ARCHITECTURE.md names the packages that there are, and files that exist."""

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "snapshot_explorer"
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
