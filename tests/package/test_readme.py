"""README's code runs, and names every command."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_in_the_readme_runs(block):
    exec(compile(block, str(README), "exec"), {})


def test_the_reader_features_of_delta_are_told_as_they_are_read():
    from snapshot_explorer.formats.delta.features import READ, REFUSED

    rows = [line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| reader features |")]
    read, refused = (set(re.findall(r"`([^`]+)`", cell)) for cell in rows[0].split("|")[2:4])

    assert read == {name.removesuffix("-preview") for name in READ}
    assert refused == set(REFUSED)


def test_every_command_of_the_magic_is_in_the_readme():
    from snapshot_explorer.jupyter.catalogue import COMMANDS

    text = README.read_text(encoding="utf-8")

    assert [command.name for command in COMMANDS if f"%snapshot {command.name}" not in text] == []
